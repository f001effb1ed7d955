"""Over HTTP a call becomes a test of its plugin; what is written comes from the journal, never from the request."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.folders import make_plugin
from tests.web.conftest import HttpResponse, RunningServer, run_server
from toolyard.plugins.authoring.cases import FILE
from toolyard.web.security.scope import Scope

pytestmark = pytest.mark.requirement("plugin:cli:test:saved", "http:plugins")
CANARY = "canary-91c3ab70de"
GREETS = """
import json, sys
name = json.loads(sys.stdin.read()).get("name")
if name:
    print(json.dumps({"status": "success", "result": "Hello, " + name + "!"}))
else:
    print(json.dumps({"status": "error", "error": "who?"}))
"""


def write_greeter(root: Path, name: str, **more: Any) -> Path:
    folder = make_plugin(root, name, **more)
    (folder / "main.py").write_text(GREETS)
    return folder


async def allow(running: RunningServer, name: str) -> None:
    review = (await running.get(f"/v1/plugins/{name}")).json["review"]
    assert (await running.post(f"/v1/plugins/{name}/allow", {"fingerprint": review["fingerprint"]})).status == 200


async def call(running: RunningServer, tool: str, **arguments: Any) -> str:
    return (await running.post(f"/v1/tools/{tool}", arguments)).headers["X-Call-Id"]


async def save(running: RunningServer, tool: str, id_: str, words: str = "", **more: Any) -> HttpResponse:
    output = {"call": id_, "name": "a name", "text_contains": words}
    return await running.post(f"/v1/plugins/{tool}/cases", output, **more)


async def test_a_call_is_saved_as_it_was_given_and_ended_and_the_plugin_stays_allowed(tmp_path: Path) -> None:
    folder = write_greeter(tmp_path / "home" / "plugins", "Greeter")
    async with run_server(tmp_path) as running:
        await allow(running, "Greeter")
        good = await save(running, "Greeter", await call(running, "Greeter", name="Ada"), "Hello, Ada!")
        bad = await save(running, "Greeter", await call(running, "Greeter", name=""))
        now = (await running.get("/v1/plugins/Greeter")).json
        again = (await running.post("/v1/tools/Greeter", {"name": "Ada"})).json
    assert (good.status, good.json["name"], good.json["file"]) == (201, "a name", str(folder / FILE))
    assert (bad.status, bad.json["name"]) == (201, "a name (2)")
    assert json.loads((folder / FILE).read_text()) == [good.json["case"], bad.json["case"]] == [
        {"name": "a name", "args": {"name": "Ada"}, "expect": {"status": "success", "text_contains": "Hello, Ada!"}},
        {"name": "a name (2)", "args": {"name": ""}, "expect": {"status": "error"}},
    ]  # fmt: skip
    assert (now["state"], now["takes_tests"], again["status"]) == ("ready", True, "success")


@pytest.mark.requirement("s:S-41")
async def test_what_is_no_answer_of_the_plugin_or_not_its_own_becomes_no_test(tmp_path: Path) -> None:
    own = write_greeter(tmp_path / "home" / "plugins", "Greeter")
    given = write_greeter(tmp_path / "given", "Given")
    async with run_server(tmp_path) as running:
        await allow(running, "Greeter")
        id_ = await call(running, "Greeter", name="Ada")
        of_given = await call(running, "Given", name="Ada")
        secret = await call(running, "Greeter", name="Ada", api_key=CANARY)
        body = (await running.get("/v1/plugins/Given")).json
        answers = {
            "no such words": await save(running, "Greeter", id_, "Hello, Grace!"),
            "of another tool": await save(running, "Greeter", of_given),
            "no such call": await save(running, "Greeter", "../../etc/passwd"),
            "no such plugin": await save(running, "..%2fGreeter", id_),
            "elsewhere": await save(running, "Given", of_given),
            "a secret": await save(running, "Greeter", secret),
            "a file": await running.post("/v1/plugins/Greeter/cases", {"call": id_, "name": "x", "file": "main.py"}),
            "too long": await running.post("/v1/plugins/Greeter/cases", {"call": id_, "name": "x" * 81}),
            "no right": await save(running, "Greeter", id_, key=running.make_key(Scope.TOOLS, Scope.CHAT)),
        }
    assert {why: answer.status for why, answer in answers.items()} == {
        "no such words": 400,
        "of another tool": 404,
        "no such call": 404,
        "no such plugin": 404,
        "elsewhere": 400,
        "a secret": 409,
        "a file": 422,
        "too long": 422,
        "no right": 403,
    }
    assert "where Toolyard does not write" in answers["elsewhere"].json["error"]["message"]
    assert body["takes_tests"] is False
    assert not (own / FILE).exists()
    assert not (given / FILE).exists()
