"""Calls for people who look back: what belongs to one, and what many came to."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.fakes import FakeClock
from tests.web.conftest import RunningServer, serving
from toolyard.engine.journal import CALL
from toolyard.engine.statistics import MAX_CALLS, statistics
from toolyard.protocol.call import Origin
from toolyard.protocol.store import Record
from toolyard.storage.memory import MemoryStore
from toolyard.web.scope import Scope

pytestmark = pytest.mark.requirement("http:records")


async def test_a_call_shows_its_approval_its_chat_and_its_times(running_server: RunningServer) -> None:
    call = running_server.yard.request(
        "FileOperator", {"command": "WriteFile", "filePath": "a.txt", "content": "x"}, origin=Origin.CHAT
    )
    waiting = asyncio.create_task(running_server.yard.settle(replace(call, chat="talk")))
    async with asyncio.timeout(15):
        while not (found := (await running_server.get("/v1/approvals?state=pending")).json["data"]):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await running_server.post(f"/v1/approvals/{found[0]['id']}/allow")
        await waiting
    shown = (await running_server.get(f"/v1/calls/{call.id}")).json
    assert (shown["command"], shown["chat"], shown["tasks"]) == ("WriteFile", "talk", [])
    assert shown["approval"] == {"id": found[0]["id"], "state": "allowed", "by": "key:owner"}
    assert [step["what"] for step in shown["timeline"]] == ["called", "asked", "allowed", "ended"]
    assert [step["at"] for step in shown["timeline"]] == sorted(step["at"] for step in shown["timeline"])
    assert shown["bytes_out"] > 100
    (listed,) = (await running_server.get("/v1/calls")).json["data"]
    assert (listed["command"], listed["chat"]) == ("WriteFile", "talk")


async def test_a_call_can_be_undone_while_its_files_are_as_it_left_them(running_server: RunningServer) -> None:
    async def called(tool: str, **arguments: str) -> str:
        return (await running_server.post(f"/v1/tools/{tool}", arguments)).headers["X-Call-Id"]

    async def undoable(id_: str) -> bool:
        return bool((await running_server.get(f"/v1/calls/{id_}")).json["undoable"])

    wrote = await called("Write", path="a.txt", content="x")
    assert await undoable(wrote)
    assert not await undoable(await called("LS"))
    (running_server.project / "a.txt").write_text("y")
    assert not await undoable(wrote)
    (running_server.project / "a.txt").write_text("x")
    assert (await running_server.post(f"/v1/calls/{wrote}/undo")).status == 200
    assert not await undoable(wrote)


async def test_calls_are_counted_by_state_tool_and_error(running_server: RunningServer) -> None:
    for path in (".", ".", "none"):
        await running_server.post("/v1/tools/LS", {"path": path})
    key = running_server.make_key(Scope.TOOLS)
    await running_server.post("/v1/tools/Glob", {"pattern": "*"}, key=key)
    told = (await running_server.get("/v1/calls/stats")).json
    assert (told["total"], told["by_state"]) == (4, {"success": 3, "error": 1})
    first = told["by_tool"][0]
    assert (first["tool"], first["calls"], first["errors"]) == ("LS", 3, 1)
    assert 0 <= first["p50_ms"] <= first["max_ms"]
    assert told["errors"] == [{"code": "NOT_FOUND", "count": 1}]
    assert len(told["slow"]) == 4
    own = (await running_server.get("/v1/calls/stats", key=key)).json
    assert [tool["tool"] for tool in own["by_tool"]] == ["Glob"]
    assert (await running_server.get("/v1/calls/stats?since=9999999999")).json["total"] == 0


async def test_statistics_have_a_bound_and_take_the_newest() -> None:
    store, clock = MemoryStore(), FakeClock()
    now = clock.now().timestamp()
    calls = [
        Record(kind=CALL, id=f"call_{n}", state="success", created=now + n, updated=now + n, tool="LS", caller="me",
               body={"time_ms": float(n)})
        for n in range(MAX_CALLS + 600)
    ]  # fmt: skip
    await store.commit(calls)
    told = await statistics(store, since=now, caller=None)
    assert told["total"] == MAX_CALLS
    slow = told["slow"]
    assert isinstance(slow, list)
    assert [call["id"] for call in slow if isinstance(call, dict)][:2] == [
        f"call_{MAX_CALLS + 599}",
        f"call_{MAX_CALLS + 598}",
    ]
    (tool,) = told["by_tool"] if isinstance(told["by_tool"], list) else []
    assert tool == {"tool": "LS", "calls": MAX_CALLS, "errors": 0, "p50_ms": 5600.0, "max_ms": MAX_CALLS + 599.0}


@pytest.mark.requirement("http:records")
async def test_a_call_of_a_plugin_tells_how_its_process_ran_and_no_value_of_its_environment(
    tmp_path: Path, add_plugin: Callable[..., Path]
) -> None:
    code = "import os, sys\nprint('token', os.environ['TOKEN'], file=sys.stderr)\nprint('noise')\nsys.exit(3)\n"
    add_plugin("Loud", code, config="TOKEN=canary-8d1f02\n", configSchema={"TOKEN": {"type": "string"}})
    async with serving(tmp_path) as running:
        id_ = (await running.post("/v1/tools/Loud", {})).headers["X-Call-Id"]
        found = await running.get(f"/v1/calls/{id_}")
        process = found.json["process"]
        assert (process["exit_code"], process["signal"], process["noise"].strip()) == (3, None, "noise")
        assert "TOKEN" in process["environment"]
        assert process["argv"][-1].endswith("main.py")
        assert process["stderr"].startswith("token ")
        assert b"canary-8d1f02" not in found.body
        built_in = (await running.post("/v1/tools/LS", {"path": "."})).headers["X-Call-Id"]
        assert (await running.get(f"/v1/calls/{built_in}")).json["process"] is None
