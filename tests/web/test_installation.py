"""The review of an installation of VCPToolBox over HTTP, and the decision on its plugins."""

from http import HTTPStatus
from pathlib import Path

import pytest

from tests.vcp.conftest import SHOW, add_plugin, make_tree
from tests.web.conftest import run_server

pytestmark = pytest.mark.requirement("http:installation")


async def test_a_review_is_allowed_as_it_was_shown_and_a_change_needs_another_look(tmp_path: Path) -> None:
    tree = make_tree(tmp_path)
    (tree / "VectorStore").mkdir()
    async with run_server(tmp_path, settings=f'vcp = "{tree}"\n') as running:
        shown = (await running.get("/v1/installation")).json
        assert [one["name"] for one in shown["waiting"]] == ["Show", "Store", "VCPLog"]
        assert {one["part"] for one in shown["findings"]} >= {"plugin", "variable", "agent", "key", "client"}
        assert "reads every file of the project" in [line["text"] for line in shown["reach"]]
        (stored,) = (line for line in shown["reach"] if "VectorStore" in line["text"])
        assert stored["plugins"] == ["VCPLog"], "which lives in VCPToolBox's process"
        folder = add_plugin(tree, "Late")
        decision = {"fingerprint": shown["fingerprint"]}
        assert (await running.post("/v1/installation/allow", decision)).status == HTTPStatus.CONFLICT
        decision = {"fingerprint": (await running.get("/v1/installation")).json["fingerprint"]}
        allowed = await running.post("/v1/installation/allow", decision)
        assert (allowed.status, allowed.json["waiting"]) == (HTTPStatus.OK, [])
        (folder / "main.py").write_text(f"{SHOW}\n# changed\n")
        (again,) = (await running.get("/v1/installation")).json["waiting"]
        assert (again["name"], len(again["changed"])) == ("Late", 1)
        (entry,) = (await running.get("/v1/audit?action=plugin.allowed")).json["data"]
        assert (entry["target"], entry["detail"]["plugins"]) == (str(tree), ["Late", "Show", "Store", "VCPLog"])


async def test_without_an_installation_there_is_nothing_to_review(tmp_path: Path) -> None:
    async with run_server(tmp_path) as running:
        assert (await running.get("/v1/installation")).json["folder"] is None
        assert (await running.post("/v1/installation/allow", {"fingerprint": "x"})).status == HTTPStatus.NOT_FOUND
