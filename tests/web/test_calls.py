"""Calls for people who look back: what belongs to one, and what many came to."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import FakeClock
from tests.waiting import wait_for_value
from tests.web.conftest import RunningServer, run_server
from tests.web.test_callbacks import ASYNC
from toolyard.engine.history.statistics import MAX_CALLS, compute_statistics
from toolyard.protocol.json import JsonObject
from toolyard.protocol.records.call_record import CALL
from toolyard.protocol.records.task_record import TaskState
from toolyard.protocol.store import Record
from toolyard.protocol.tool import Origin
from toolyard.storage.memory_store import MemoryStore
from toolyard.web.security.scope import Scope
from toolyard.workspace.changes.file_versions import MAX_TEXT

pytestmark = pytest.mark.requirement("http:records")


async def test_a_call_shows_its_approval_its_chat_and_its_times(running_server: RunningServer) -> None:
    call = running_server.yard.calls.request(
        "FileOperator", {"command": "WriteFile", "filePath": "a.txt", "content": "x"}, origin=Origin.CHAT
    )
    waiting = asyncio.create_task(running_server.yard.calls.settle(replace(call, chat="talk")))
    pending = await wait_for_value(
        lambda: running_server.get("/v1/approvals?state=pending"), lambda answer: answer.json["data"]
    )
    body = pending.json["data"]
    async with asyncio.timeout(60):
        await running_server.post(f"/v1/approvals/{body[0]['id']}/allow")
        await waiting
    view = (await running_server.get(f"/v1/calls/{call.id}")).json
    assert (view["command"], view["chat"], view["tasks"]) == ("WriteFile", "talk", [])
    assert view["approval"] == {"id": body[0]["id"], "state": "allowed", "by": "key:owner"}
    assert [(step["what"], step["by"]) for step in view["timeline"]] == [
        ("called", None),
        ("asked", None),
        ("allowed", "key:owner"),
        ("started", None),
        ("ended", None),
    ]
    assert [step["at"] for step in view["timeline"]] == sorted(step["at"] for step in view["timeline"])
    assert view["bytes_out"] > 100
    assert view["waited_ms"] > 0
    assert view["time_ms"] == view["envelope"]["stats"]["time_ms"] > 0
    (listed,) = (await running_server.get("/v1/calls")).json["data"]
    for field in ("command", "chat", "bytes_out", "tasks", "time_ms", "waited_ms", "retry_of"):
        assert listed[field] == view[field]


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
    put_back = (await running_server.get(f"/v1/calls/{wrote}")).json
    assert put_back["undone"]["by"] == "key:owner"
    last = put_back["timeline"][-1]
    assert (last["what"], last["at"], last["by"]) == ("undone", put_back["undone"]["at"], "key:owner")
    assert put_back["ended"] < put_back["undone"]["at"]
    await running_server.yard.calls.undo(f"undo:{wrote}")
    assert (await running_server.get(f"/v1/calls/{wrote}")).json["undone"] is None


async def test_calls_are_counted_by_state_tool_and_error(running_server: RunningServer) -> None:
    for path in (".", ".", "none"):
        await running_server.post("/v1/tools/LS", {"path": path})
    key = running_server.make_key(Scope.TOOLS)
    await running_server.post("/v1/tools/Glob", {"pattern": "*"}, key=key)
    result = (await running_server.get("/v1/calls/stats")).json
    assert (result["total"], result["by_state"]) == (4, {"success": 3, "error": 1})
    first = result["by_tool"][0]
    assert (first["tool"], first["calls"], first["errors"]) == ("LS", 3, 1)
    assert 0 <= first["p50_ms"] <= first["max_ms"]
    assert result["errors"] == [{"code": "NOT_FOUND", "count": 1}]
    assert len(result["slow"]) == 4
    own = (await running_server.get("/v1/calls/stats", key=key)).json
    assert [tool["tool"] for tool in own["by_tool"]] == ["Glob"]
    assert (await running_server.get("/v1/calls/stats?since=9999999999")).json["total"] == 0


@pytest.mark.requirement("activity:codes")
async def test_calls_are_found_by_codes_and_reasons_tool_time_and_page(running_server: RunningServer) -> None:
    for tool, path in (("LS", "none"), ("Read", "none"), ("LS", "."), ("Read", "gone"), ("LS", "../..")):
        await running_server.post(f"/v1/tools/{tool}", {"path": path})
    (running_server.project / "a.txt").write_text("a\n")
    await running_server.post("/v1/tools/Edit", {"path": "a.txt", "old_string": "zzz", "new_string": "y"})

    async def find(query: str) -> list[str]:
        ids: list[str] = []
        after = ""
        while page := (await running_server.get(f"/v1/calls?limit=1&{query}{after}")).json:
            ids += [f"{one['tool']} {one['reason'] or one['error']['code']}" for one in page["data"]]
            if page["next"] is None:
                break
            after = f"&after={page['next']}"
        return ids

    assert await find("code=NOT_FOUND") == ["Read NOT_FOUND", "Read NOT_FOUND", "LS NOT_FOUND"]
    assert await find("code=NOT_FOUND&tool=LS") == ["LS NOT_FOUND"]
    assert await find("code=ACCESS_DENIED&code=NOT_FOUND&tool=LS") == ["LS ACCESS_DENIED", "LS NOT_FOUND"]
    assert await find("code=NOT_FOUND&search=gone") == ["Read NOT_FOUND"]
    assert await find("code=NOT_FOUND&since=1&before=2") == []
    assert await find("code=NOT_FOUND&before=9999999999&state=success") == []
    last = (await running_server.get("/v1/calls?limit=1")).json["data"][0]
    assert await find(f"code={last['reason']}") == [f"Edit {last['reason']}"]  # a reason is found by its name,
    assert f"Edit {last['reason']}" in await find(f"code={last['error']['code']}")  # and under its code
    assert (await running_server.get("/v1/calls?code=NO_SUCH_CODE")).status == 422


async def test_statistics_have_a_bound_and_take_the_newest() -> None:
    store, clock = MemoryStore(), FakeClock()
    now = clock.now().timestamp()
    calls = [
        Record(kind=CALL, id=f"call_{n}", state="success", created=now + n, updated=now + n, tool="LS", caller="me",
               body={"time_ms": float(n)})
        for n in range(MAX_CALLS + 600)
    ]  # fmt: skip
    await store.commit(calls)
    result = await compute_statistics(store, since=now, caller=None)
    assert (result["total"], result["is_capped"], result["counted_since"]) == (MAX_CALLS, True, now + 600)
    slow = result["slow"]
    assert isinstance(slow, list)
    assert [call["id"] for call in slow if isinstance(call, dict)][:2] == [
        f"call_{MAX_CALLS + 599}",
        f"call_{MAX_CALLS + 598}",
    ]
    (tool,) = result["by_tool"] if isinstance(result["by_tool"], list) else []
    times = {"p50_ms": 5600.0, "max_ms": MAX_CALLS + 599.0}
    assert tool == {"tool": "LS", "calls": MAX_CALLS, "errors": 0, "cancelled": 0, **times}


@pytest.mark.parametrize("more", [-1, 0, 1])
async def test_statistics_say_whether_they_are_capped(more: int) -> None:
    store = MemoryStore()
    calls = [
        Record(kind=CALL, id=f"call_{n}", state="success", created=n, updated=n, tool="LS")
        for n in range(MAX_CALLS + more)
    ]
    await store.commit(calls)
    result = await compute_statistics(store, since=0, caller=None)
    assert (result["is_capped"], result["counted_since"]) == (more > 0, max(more, 0))


async def test_what_a_person_stopped_or_did_not_allow_is_no_error() -> None:
    store = MemoryStore()
    ends: list[tuple[str, JsonObject]] = [
        ("success", {}),
        ("error", {"reason": "CRASHED", "error": {"code": "EXECUTION_ERROR", "message": ""}}),
        ("error", {"reason": "CANCELLED", "error": {"code": "EXECUTION_ERROR", "message": ""}}),
        ("error", {"reason": "DENIED", "error": {"code": "ACCESS_DENIED", "message": ""}}),
    ]
    await store.commit(
        [
            Record(kind=CALL, id=f"call_{at}", state=state, created=at, updated=at, tool="Fake", body=body)
            for at, (state, body) in enumerate(ends)
        ]
    )
    result: Any = await compute_statistics(store, since=0, caller=None)
    assert result["by_state"] == {"success": 1, "error": 1, "cancelled": 2}
    assert result["errors"] == [{"code": "EXECUTION_ERROR", "count": 1}]
    assert [(one["calls"], one["errors"], one["cancelled"]) for one in result["by_tool"]] == [(4, 1, 2)]


async def test_a_retry_names_the_call_that_it_repeats_and_is_named_by_it(running_server: RunningServer) -> None:
    async def called(query: str = "", key: str = "") -> str:
        return (await running_server.post(f"/v1/tools/LS?{query}", {}, key=key)).headers["X-Call-Id"]

    async def chain(id_: str, key: str = "") -> tuple[str | None, list[str]]:
        body = (await running_server.get(f"/v1/calls/{id_}", key=key)).json
        return body["retry_of"], [one["id"] for one in body["retries"]]

    key = running_server.make_key(Scope.TOOLS)
    first = await called(key=key)
    second = await called(f"retry_of={first}", key)
    third = await called(f"retry_of={first}")
    assert await chain(first) == (None, [third, second])
    assert await chain(first, key) == (None, [second])
    assert await chain(second, key) == (first, [])
    for other in (third, "call_unknown"):  # of somebody else, or of nobody
        assert await chain(await called(f"retry_of={other}", key), key) == (None, [])


@pytest.mark.requirement("journal:undo")
async def test_the_files_of_a_call_are_shown_whole_before_and_after_it_while_they_are_kept(
    running_server: RunningServer,
) -> None:
    project, key = running_server.project, running_server.make_key(Scope.TOOLS)
    running_server.yard.mask.add(["canary-33aa71"])
    gone = {"state": "gone", "bytes": None, "text": None}
    none = {"state": "none", "bytes": None, "text": None}

    def side(text: str, size: int = 0) -> JsonObject:
        return {"state": "text", "bytes": size or len(text.encode()), "text": text}

    async def files(id_: str) -> Any:
        return (await running_server.get(f"/v1/calls/{id_}/files")).json["data"]

    async def called(tool: str, **arguments: str) -> str:
        return (await running_server.post(f"/v1/tools/{tool}?force=true", arguments)).headers["X-Call-Id"]

    wrote = await called("Write", path="a.txt", content="eins\nzwei\n")
    assert await files(wrote) == [{"path": "a.txt", "before": none, "after": side("eins\nzwei\n")}]
    edited = await called("Edit", path="a.txt", old_string="zwei", new_string="canary-33aa71")
    changed = {"path": "a.txt", "before": side("eins\nzwei\n"), "after": side("eins\n[masked]\n", 19)}
    assert await files(edited) == [changed]
    assert await files(wrote) == [{"path": "a.txt", "before": gone, "after": gone}]
    await running_server.post(f"/v1/calls/{edited}/undo")
    assert await files(edited) == [changed]
    assert (await files(wrote))[0]["after"] == side("eins\nzwei\n")
    (project / "b.txt").write_text("alt\n", "utf-16")
    assert (await files(await called("Write", path="b.txt", content="neu")))[0]["before"] == side("alt\n", 10)
    binary = (await files(await called("Write", path="c.bin", content="a\0b")))[0]
    assert (binary["before"], binary["after"]) == (none, {"state": "binary", "bytes": 3, "text": None})
    large = (await files(await called("Write", path="d.txt", content="x" * (MAX_TEXT + 1))))[0]["after"]
    assert large == {"state": "too_large", "bytes": MAX_TEXT + 1, "text": None}
    assert await files(await called("LS")) == []
    assert (await running_server.get(f"/v1/calls/{wrote}/files", key=key)).status == 404


@pytest.mark.requirement("http:records")
async def test_a_call_of_a_plugin_tells_how_its_process_ran_and_no_value_of_its_environment(
    tmp_path: Path, add_plugin: Callable[..., Path]
) -> None:
    code = "import os, sys\nprint('token', os.environ['TOKEN'], file=sys.stderr)\nprint('noise')\nsys.exit(3)\n"
    add_plugin("Loud", code, config="TOKEN=canary-8d1f02\n", configSchema={"TOKEN": {"type": "string"}})
    async with run_server(tmp_path) as running:
        id_ = (await running.post("/v1/tools/Loud", {})).headers["X-Call-Id"]
        result = await running.get(f"/v1/calls/{id_}")
        process = result.json["process"]
        assert (process["exit_code"], process["signal"], process["noise"].strip()) == (3, None, "noise")
        assert "TOKEN" in process["environment"]
        assert process["argv"][-1].endswith("main.py")
        assert process["stderr"].startswith("token ")
        assert b"canary-8d1f02" not in result.body
        built_in = (await running.post("/v1/tools/LS", {"path": "."})).headers["X-Call-Id"]
        assert (await running.get(f"/v1/calls/{built_in}")).json["process"] is None
        assert running.yard.runs.take(id_) is None
    async with run_server(tmp_path) as again:
        result = (await again.get(f"/v1/calls/{id_}")).json
        assert result["process"] == process
        steps = {step["what"]: step["at"] for step in result["timeline"]}
        assert [*steps] == ["called", "started", "first_output", "ended"]
        assert (steps["started"], steps["first_output"]) == (process["started"], process["first_output"])


async def test_a_call_of_an_asynchronous_plugin_tells_of_its_first_process_and_of_each_callback(
    tmp_path: Path, add_plugin: Callable[..., Path]
) -> None:
    add_plugin("Video", ASYNC, pluginType="asynchronous")
    async with run_server(tmp_path) as running:
        called = await running.post("/v1/tools/Video", {"prompt": "a cat"})
        id_, task_id = called.headers["X-Call-Id"], called.headers["X-Call-Tasks"]
        assert (await running.get("/v1/calls")).json["data"][0]["tasks"] == [task_id]
        async with asyncio.timeout(60):
            assert (await running.yard.state.tasks.wait(task_id)).state is TaskState.SUCCEEDED
        result = (await running.get(f"/v1/calls/{id_}")).json
        assert result["process"]["argv"][-1].endswith("main.py")
        assert (result["process"]["exit_code"], result["process"]["first_output"] is None) == (None, False)
        steps = {step["what"]: step for step in result["timeline"]}
        assert {*steps} == {"called", "started", "first_output", "ended", "callback"}
        assert (steps["callback"]["task"], steps["callback"]["result"]) == (task_id, "accepted")
