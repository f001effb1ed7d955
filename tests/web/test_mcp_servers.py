"""MCP servers over HTTP: written down, looked at, allowed as they were shown, and taken out again."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.mcp.test_client import TINY
from tests.web.conftest import RunningServer, run_server
from toolyard.web.security.scope import Scope

CANARY = "canary-71be02d4"


def write_server(folder: Path, **more: Any) -> dict[str, Any]:
    folder.mkdir(exist_ok=True)
    entry = {"command": sys.executable, "args": [str(TINY), str(folder)], "env": {"API_TOKEN": CANARY}, **more}
    return {"mcpServers": {"tiny": entry}}


@pytest.mark.requirement("http:mcp-servers", "mcp:pinned")
async def test_a_server_is_added_looked_at_and_allowed_exactly_as_it_was_shown(tmp_path: Path) -> None:
    async with run_server(tmp_path) as running:
        added = await running.post("/v1/mcp/servers", write_server(tmp_path / "tiny"))
        started = (tmp_path / "tiny" / "pid").exists()
        twice = await running.post("/v1/mcp/servers", write_server(tmp_path / "tiny"))
        looked = await running.post("/v1/mcp/servers/tiny/look")
        view = {"fingerprint": looked.json["fingerprint"]}
        (tmp_path / "tiny" / "description.txt").write_text("Something else.")
        late = await running.post("/v1/mcp/servers/tiny/allow", view)
        (tmp_path / "tiny" / "description.txt").unlink()
        good = await running.post("/v1/mcp/servers/tiny/allow", view)
        call = await running.post("/v1/tools/mcp__tiny__echo", {"text": "hello"})
        tool = (await running.get("/v1/tools/mcp__tiny__echo")).json
    row = added.json["data"][0]
    assert (added.status, row["state"], row["env"], started) == (201, "needs_review", ["API_TOKEN"], False)
    assert twice.status == 409
    assert "echo" in [one["name"] for one in looked.json["tools"]]
    assert (late.status, good.status, good.json["state"]) == (409, 200, "ready")
    assert call.json["status"] == "success"
    assert (tool["kind"], tool["server"], tool["plugin"]) == ("mcp", "tiny", None)
    assert CANARY.encode() not in added.body + looked.body + good.body


@pytest.mark.requirement("http:mcp-servers")
async def test_a_server_is_disabled_enabled_and_removed_and_its_permission_with_it(tmp_path: Path) -> None:
    async with run_server(tmp_path) as running:
        await running.post("/v1/mcp/servers", write_server(tmp_path / "tiny"))
        fingerprint = (await running.post("/v1/mcp/servers/tiny/look")).json["fingerprint"]
        await running.post("/v1/mcp/servers/tiny/allow", {"fingerprint": fingerprint})
        off = await running.post("/v1/mcp/servers/tiny/disable")
        tools = [tool["name"] for tool in (await running.get("/v1/tools")).json["data"]]
        on = await running.post("/v1/mcp/servers/tiny/enable")
        gone = await running.request("DELETE", "/v1/mcp/servers/tiny")
        await running.post("/v1/mcp/servers", write_server(tmp_path / "tiny", disabled=True))
        again = (await running.get("/v1/mcp/servers")).json["data"][0]["state"]
        enabled = await running.post("/v1/mcp/servers/tiny/enable")
    assert (off.json["state"], on.json["state"], gone.status) == ("disabled", "ready", 200)
    assert [name for name in tools if name.startswith("mcp__")] == []
    assert (again, enabled.json["state"]) == ("disabled", "needs_review")


@pytest.mark.requirement("http:mcp-servers")
async def test_what_makes_no_sense_or_belongs_to_the_project_is_refused(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / ".mcp.json").write_text(json.dumps(write_server(tmp_path / "tiny")))
    async with run_server(tmp_path) as running:
        servers: list[Any] = [{}, {"a b": {"command": "x"}}, {"a": {}}]
        bodies: list[Any] = [{}, *({"mcpServers": one} for one in servers)]
        bad = [await running.post("/v1/mcp/servers", body) for body in bodies]
        theirs = [
            await running.post("/v1/mcp/servers/tiny/disable"),
            await running.request("DELETE", "/v1/mcp/servers/tiny"),
        ]
        missing = await running.post("/v1/mcp/servers/other/look")
    assert [one.status for one in bad] == [400] * 4
    assert [one.status for one in theirs] == [409] * 2
    assert missing.status == 404


@pytest.mark.requirement("http:auth")
@pytest.mark.parametrize("scope", [Scope.CHAT, Scope.TOOLS, Scope.APPROVE])
async def test_mcp_servers_are_the_owners(running_server: RunningServer, scope: Scope) -> None:
    key = running_server.make_key(scope)
    assert (await running_server.get("/v1/mcp/servers", key=key)).status == 403
    for path in ("", "/tiny/look", "/tiny/allow", "/tiny/enable", "/tiny/disable"):
        assert (await running_server.post(f"/v1/mcp/servers{path}", {}, key=key)).status == 403
