"""Tasks, schedules, approvals and calls over HTTP."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import Endless, FakeClock, FakeTool
from tests.waiting import wait_for_value
from tests.web.conftest import RunningServer, run_server
from tests.web.test_callbacks import ASYNC, start_pending
from toolyard.errors import StorageError, StorageUnwritable
from toolyard.protocol.records.call_record import CallState
from toolyard.protocol.store import Query
from toolyard.protocol.tool import Origin, Outcome
from toolyard.web.security.scope import Scope
from toolyard.web.server.health import RETRY_S
from toolyard.web.server.lifecycle import ServerOptions, run_restarting

pytestmark = pytest.mark.requirement("http:records")

MIB = 2**20
LIMITS = {  # those that people are promised
    "plugin_stdout_bytes": 16 * MIB,
    "plugin_stderr_bytes": 320 * 1024,
    "body_bytes": 8 * MIB,
    "arguments_bytes": 4 * MIB,
    "approval_seconds": 5 * 60,
    "chat_body_bytes": 32 * MIB,
    "callback_body_bytes": 8 * MIB,
    "plugin_seconds": 60,
    "plugin_receipt_seconds": 60,
    "asynchronous_plugin_seconds": 30 * 60,
    "plugin_kill_seconds": 2,
    "plugins_at_once": 8,
    "calls_per_plugin_at_once": 4,
    "calls_waiting": 1000,
    "websocket_messages": 1000,
    "tool_rounds": 10,
    "provider_event_bytes": 8 * MIB,
    "provider_answer_bytes": 32 * MIB,
    "provider_list_bytes": 4 * MIB,
    "forwarded_answer_bytes": 256 * MIB,
    "model_text_characters": 2 * MIB,
    "json_depth": 200,
    "reply_attachments": 64,
    "reply_attachment_bytes": MIB,
    "search_seconds": 10,
    "whole_file_bytes": 10 * MIB,
    "kept_seconds": 30 * 86_400,
    "kept_bytes": 2 * 2**30,
    "failures_per_address": 10,
}


async def test_tasks_are_listed_shown_and_cancelled(running_server: RunningServer) -> None:
    first, second = await start_pending(running_server, "one"), await start_pending(running_server, "two")
    listed = await running_server.get("/v1/tasks")
    assert [task["task_id"] for task in listed.json["data"]] == ["two", "one"]
    assert listed.json["next"] is None
    response = await running_server.get("/v1/tasks/Video::one")
    assert (response.json["id"], response.json["state"]) == (first.task.id, "waiting_callback")
    assert (await running_server.post(f"/v1/tasks/{first.task.id}/cancel")).status == 200
    assert (await running_server.post(f"/v1/tasks/{first.task.id}/cancel")).status == 409
    waiting = await running_server.get("/v1/tasks?state=waiting_callback")
    assert [task["id"] for task in waiting.json["data"]] == [second.task.id]
    assert (await running_server.get("/v1/tasks/none")).status == 404
    assert (await running_server.post("/v1/tasks/none/retry")).status == 404


@pytest.mark.parametrize("after", ["x", "nan~call_1", "inf~call_1", "1e400~call_1", "5", "5~", "~call_1"])
async def test_a_place_that_no_page_gave_is_refused(running_server: RunningServer, after: str) -> None:
    for kind in ("calls", "tasks", "schedules", "approvals"):
        assert (await running_server.get(f"/v1/{kind}?after={after}")).status == 400


async def test_a_task_can_be_waited_for(running_server: RunningServer) -> None:
    one = await start_pending(running_server)
    asking = asyncio.create_task(running_server.get(f"/v1/tasks/{one.task.id}?wait=60"))
    await one.post()
    async with asyncio.timeout(60):
        assert (await asking).json["state"] == "succeeded"
    other = await start_pending(running_server, "two")
    response = await running_server.get(f"/v1/tasks/{other.task.id}?wait=0.05")
    assert response.json["state"] == "waiting_callback"


async def test_a_task_is_retried_with_the_same_arguments(tmp_path: Path, add_plugin: Callable[..., Path]) -> None:
    add_plugin("Video", ASYNC, pluginType="asynchronous")
    async with run_server(tmp_path) as running:
        receipt = await running.post("/v1/tools/Video", {"prompt": "a cat"})
        again = await running.post(f"/v1/tasks/{receipt.headers['x-call-tasks']}/retry")
        assert (again.json["status"], again.json["context"]["params_input"]) == ("success", {"prompt": "a cat"})
        assert len((await running.get("/v1/tasks")).json["data"]) == 2
        calls = (await running.get("/v1/calls")).json["data"]
        assert [call["retry_of"] for call in calls] == [receipt.headers["x-call-id"], None]


async def test_pages_follow_each_other_without_holes_or_repeats(running_server: RunningServer) -> None:
    for number in range(7):
        await running_server.post("/v1/tools/LS", {"limit": number + 1})
    seen, after = [], ""
    while True:
        result = (await running_server.get(f"/v1/calls?limit=3{after}")).json
        seen += [call["arguments"]["limit"] for call in result["data"]]
        if result["next"] is None:
            break
        after = f"&after={result['next']}"
    assert seen == [7, 6, 5, 4, 3, 2, 1]


async def test_calls_are_filtered_searched_and_shown(running_server: RunningServer) -> None:
    (running_server.project / "findme.txt").write_text("x\n")
    read = await running_server.post("/v1/tools/Read", {"path": "findme.txt"})
    await running_server.post("/v1/tools/Read", {"path": "absent.txt"})
    for request, count in (
        ("tool=Read", 2),
        ("state=error", 1),
        ("search=findme", 1),
        ("tool=LS", 0),
        ("since=9e9", 0),
    ):
        response = await running_server.get(f"/v1/calls?{request}")
        assert (request, len(response.json["data"])) == (request, count)
    for path in ("calls", "tasks", "schedules", "approvals"):
        refused = await running_server.get(f"/v1/{path}?state=nope")
        message = refused.json["error"]["message"]
        assert (path, refused.status, "interrupted" in message) == (path, 422, True)
    for state in CallState:
        assert (await running_server.get(f"/v1/calls?state={state}")).status == 200
    call = await running_server.get(f"/v1/calls/{read.headers['x-call-id']}")
    assert (call.json["envelope"]["status"], call.json["arguments"]) == ("success", {"path": "findme.txt"})
    assert (await running_server.get("/v1/calls/none")).status == 404
    assert (await running_server.post(f"/v1/calls/{read.headers['x-call-id']}/cancel")).status == 409


async def test_what_a_call_wrote_is_undone_once(running_server: RunningServer) -> None:
    (running_server.project / "a.txt").write_text("old\n")
    edit = {"path": "a.txt", "old_string": "old", "new_string": "new"}
    call_id = (await running_server.post("/v1/tools/Edit", edit)).headers["x-call-id"]
    assert (running_server.project / "a.txt").read_text() == "new\n"
    undone = await running_server.post(f"/v1/calls/{call_id}/undo")
    assert (undone.status, undone.json["restored"]) == (200, ["a.txt"])
    assert (running_server.project / "a.txt").read_text() == "old\n"
    assert (await running_server.post(f"/v1/calls/{call_id}/undo")).status in (400, 404, 409)


async def test_schedules_are_added_shown_run_and_cancelled(running_server: RunningServer) -> None:
    new = {"tool": "LS", "arguments": {"path": "."}, "at": "2099-03-05-14:00"}
    made = await running_server.post("/v1/schedules", new)
    assert (made.status, made.json["state"]) == (201, "scheduled")
    id_ = made.json["id"]
    assert (await running_server.post(f"/v1/schedules/{id_}/run")).status == 200
    answer = await wait_for_value(
        lambda: running_server.get(f"/v1/schedules/{id_}"), lambda answer: answer.json["state"] != "running"
    )
    body = answer.json
    assert (body["state"], body["runs"][0]["state"]) == ("done", "done")
    assert (await running_server.post(f"/v1/schedules/{id_}/run")).status == 409
    cron = await running_server.post("/v1/schedules", {"tool": "LS", "cron": "30 8 * * 1-5"})
    assert (await running_server.post(f"/v1/schedules/{cron.json['id']}/cancel")).status == 200
    listed = await running_server.get("/v1/schedules?state=cancelled")
    assert [one["cron"] for one in listed.json["data"]] == ["30 8 * * 1-5"]
    for wrong in ({"tool": "LS"}, {"tool": "LS", "at": "never"}, {"tool": "LS", "at": "2001-01-01-10:00"}):
        assert (await running_server.post("/v1/schedules", wrong)).status == 400
    assert (await running_server.post("/v1/schedules", {"tool": "Nothing", "cron": "* * * * *"})).status == 404
    assert (await running_server.get("/v1/schedules/none")).status == 404


async def test_a_call_can_be_left_for_later(running_server: RunningServer) -> None:
    receipt = await running_server.post("/v1/tools/LS", {"path": ".", "timely_contact": "2099-03-05-14:00"})
    assert receipt.json["data"]["schedule_id"].startswith("schedule_")
    assert len((await running_server.get("/v1/schedules")).json["data"]) == 1


async def test_schedule_task_speaks_as_vcptoolbox_does(running_server: RunningServer) -> None:
    form: dict[str, Any] = {
        "schedule_time": "2099-03-05T14:00:00.000Z",
        "task_id": "task-1",
        "tool_call": {"tool_name": "LS", "arguments": {"path": "."}},
    }
    made = await running_server.post("/v1/schedule_task", form)
    assert (made.status, made.json["status"]) == (200, "success")
    assert made.json["details"]["taskId"] == "task-1"
    assert made.json["details"]["scheduledTime"].startswith("2099-03-05T")
    unnamed = await running_server.post("/v1/schedule_task", {**form, "task_id": ""})
    assert unnamed.json["details"]["taskId"].startswith("schedule_")
    late = await running_server.post("/v1/schedule_task", {**form, "schedule_time": "2001-01-01T00:00:00Z"})
    assert (late.status, late.json["status"]) == (400, "error")
    for bad, place in (
        ({"task_id": "t"}, "schedule_time"),
        ({**form, "tool_call": {"arguments": {}}}, "tool_call.tool_name"),
        ({**form, "tool_call": {"tool_name": "LS", "arguments": "path"}}, "tool_call.arguments"),
        ([form], "body"),
    ):
        refused = await running_server.post("/v1/schedule_task", bad)
        assert (refused.status, refused.json["status"], sorted(refused.json)) == (400, "error", ["error", "status"])
        assert place in refused.json["error"]
    assert len((await running_server.get("/v1/schedules")).json["data"]) == 2


async def request_approval(running: RunningServer) -> tuple[asyncio.Task[Outcome], str]:
    """A call of a chat that waits for its approval, and the id of that."""
    call = running.yard.calls.request("Write", {"path": "a.txt", "content": "x"}, caller="chat", origin=Origin.CHAT)
    waiting = asyncio.create_task(running.yard.calls.settle(replace(call, maid="Nova")))
    answer = await wait_for_value(
        lambda: running.get("/v1/approvals?state=pending"), lambda answer: answer.json["data"]
    )
    return waiting, answer.json["data"][0]["id"]


@pytest.mark.requirement("s:S-52", "r:R102")
async def test_an_approval_is_answered_once_by_who_may(running_server: RunningServer) -> None:
    waiting, id_ = await request_approval(running_server)
    approver, viewer = running_server.make_key(Scope.APPROVE), running_server.make_key(Scope.TOOLS)
    assert (await running_server.post(f"/v1/approvals/{id_}/allow", {}, key=viewer)).status == 403
    response = await running_server.get(f"/v1/approvals/{id_}", key=approver)
    assert response.json["arguments"] == {"path": "a.txt", "content": "x"}
    denied = await running_server.post(f"/v1/approvals/{id_}/deny", {"reason": "not now"}, key=approver)
    assert (denied.status, denied.json["state"]) == (200, "denied")
    late = await running_server.post(f"/v1/approvals/{id_}/allow", key=approver)
    assert (late.status, late.json["error"]["code"]) == (409, "denied")
    async with asyncio.timeout(60):
        envelope = (await waiting).envelope
    assert "not now" in envelope.text
    assert (await running_server.post("/v1/approvals/none/allow", {})).status == 404


async def test_always_makes_a_rule_that_can_be_revoked(running_server: RunningServer) -> None:
    waiting, id_ = await request_approval(running_server)
    assert (await running_server.post(f"/v1/approvals/{id_}/allow", {"always": True})).status == 200
    async with asyncio.timeout(60):
        assert (await waiting).envelope.error is None
    (rule,) = (await running_server.get("/v1/approvals/rules")).json["data"]
    assert (rule["tool"], rule["effect"], rule["by"]) == ("Write", "allow", "key:owner")
    assert (await running_server.request("DELETE", f"/v1/approvals/rules/{rule['id']}")).status == 200
    assert (await running_server.request("DELETE", f"/v1/approvals/rules/{rule['id']}")).status == 404
    made = await running_server.post("/v1/approvals/rules", {"tool": "Write", "effect": "deny"})
    assert (made.status, made.json["command"]) == (201, "")


@pytest.mark.requirement("http:health")
async def test_health_readiness_and_metrics_tell_their_state(running_server: RunningServer) -> None:
    assert (await running_server.get("/healthz", key=None)).json["status"] == "ok"
    ready = await running_server.get("/readyz", key=None)
    assert (ready.status, ready.json) == (200, {"status": "ready"})
    verbose = await running_server.get("/readyz?verbose", key=None)
    assert verbose.json["limits"].items() >= LIMITS.items()
    for path in ("/healthz", "/readyz"):
        head = await running_server.request("HEAD", path, key=None)
        assert (head.status, head.body) == (200, b"")
    await running_server.post("/v1/tools/LS", {})
    metrics = (await running_server.get("/metrics")).body.decode()
    assert 'toolyard_requests_total{method="POST",route="/v1/tools/{name}",status="200"} 1.0' in metrics
    assert "toolyard_request_seconds_bucket" in metrics


@pytest.mark.requirement("r:R62", "http:health")
async def test_a_full_disk_refuses_work_and_is_over_when_there_is_room(
    running_server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(*_: object, **__: object) -> bool:
        raise StorageUnwritable("the disk is full: state.db cannot be written; free some space and try again")

    with monkeypatch.context() as patched:
        patched.setattr(running_server.yard.state.store, "commit", full)
        response = await running_server.post("/v1/tools/LS", {})
        assert (response.status, "disk is full" in response.json["error"]["message"]) == (507, True)
        assert (await running_server.get("/readyz")).status == 503
        assert (await running_server.post("/v1/reply/render", {"text": "x", "to": "html"})).status == 200
        assert (await running_server.get("/readyz")).status == 503  # that has written nothing
    assert (await running_server.post("/v1/tools/LS", {})).status == 200
    assert (await running_server.get("/readyz")).status == 200


@pytest.mark.requirement("r:R62", "http:health")
async def test_a_server_that_nobody_sends_work_to_sees_by_itself_that_there_is_room_again(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[object] = []

    async def full(*changes: object, **__: object) -> bool:
        tried.append(changes)
        raise StorageUnwritable("the disk is full: state.db cannot be written; free some space and try again")

    async with run_server(tmp_path, ServerOptions(port=0, clock=clock)) as running:
        with monkeypatch.context() as patched:
            patched.setattr(running.yard.state.store, "commit", full)
            assert (await running.post("/v1/tools/LS", {})).status == 507
            tried.clear()
            for _ in range(3):
                assert (await running.get("/readyz", key=None)).status == 503
            assert len(tried) == 1  # however often it is asked
            clock.advance(RETRY_S)
            refused = await running.get("/readyz", key=None)
            assert (refused.status, "disk is full" in refused.json["status"], len(tried)) == (503, True, 2)
        assert (await running.get("/readyz", key=None)).status == 503
        for _ in range(2):
            clock.advance(RETRY_S)
            assert (await running.get("/readyz", key=None)).status == 200
        assert (await running.post("/v1/tools/LS", {})).status == 200


@pytest.mark.requirement("r:R03")
async def test_what_does_not_end_within_the_grace_is_cancelled(tmp_path: Path) -> None:
    endless = Endless()
    async with run_server(tmp_path, ServerOptions(port=0, grace_s=0.1)) as running:
        running.yard.tools.add(FakeTool(endless, name="Endless"))
        request = [asyncio.create_task(running.post("/v1/tools/Endless", {})) for _ in range(20)]
        await endless.started.wait()
        running_calls = Query(states=("running",))
        await wait_for_value(lambda: running.yard.state.store.count("call", running_calls), lambda count: count == 20)
        stopping = asyncio.create_task(running.server.stop())
        async with asyncio.timeout(60):
            envelopes = [answer.json for answer in await asyncio.gather(*request)]
            await stopping
    assert {envelope["context"]["reason"] for envelope in envelopes} == {"CANCELLED"}
    async with run_server(tmp_path) as again:
        states = {call["state"] for call in (await again.get("/v1/calls")).json["data"]}
    assert states == {"cancelled"}


@pytest.mark.requirement("r:R62")
async def test_work_beside_the_requests_is_started_again_when_it_failed() -> None:
    tries: list[int] = []

    async def work() -> None:
        tries.append(len(tries))
        if len(tries) < 3:
            raise StorageError("the disk is full")

    async with asyncio.timeout(60):
        await run_restarting(work, "the test", pause_s=0.001)
    assert tries == [0, 1, 2]
