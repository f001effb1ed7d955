"""Callbacks of asynchronous plugins over the server's own HTTP."""

import asyncio
import base64
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.web.conftest import HttpResponse, RunningServer, run_server
from tests.web.test_access import list_routes
from toolyard.protocol.records.task_record import PendingCall, Task, TaskState
from toolyard.protocol.tool import ToolCall
from toolyard.web.app import make_api
from toolyard.web.security.access import AttemptLimiter
from toolyard.web.server.lifecycle import ServerOptions

DONE = {"status": "Succeed", "message": "The video is ready."}


class PendingCallback:
    """A call of an asynchronous plugin whose receipt has named a task."""

    def __init__(self, running: RunningServer, expected: PendingCall, task: Task) -> None:
        self.running, self.expected, self.task = running, expected, task

    def path(self, *, token: str = "", plugin: str = "Video", id_: str = "") -> str:
        return f"/plugin-callback/~{token or self.expected.token}/{plugin}/{id_ or self.task.task_id}"

    async def post(self, body: Any = DONE, **more: Any) -> HttpResponse:
        return await self.running.post(self.path(**more), body, key=None)

    async def state(self) -> tuple[TaskState, int]:
        result = await self.running.yard.state.tasks.get(self.task.id)
        assert result is not None
        return result.state, len(result.audit)


async def start_pending(running: RunningServer, id_: str = "req-1", *, named: bool = True) -> PendingCallback:
    desk = running.yard.state.tasks
    expected = desk.expect(ToolCall(id=f"call_{id_}", tool="Video", caller="key:owner"), timeout_s=60)
    receipt = f"see {{{{VCP_ASYNC_RESULT::Video::{id_}}}}}"
    tasks = await desk.store_receipt(expected, receipt, os.getpid()) if named else ()
    return PendingCallback(running, expected, tasks[0] if tasks else None)  # type: ignore[arg-type]


async def list_events(running: RunningServer) -> list[str]:
    return [event.type for event in await running.yard.state.store.events(0, limit=10_000)]


@pytest.mark.requirement("r:R50", "ws:callback-event")
async def test_the_same_callback_again_changes_nothing(running_server: RunningServer) -> None:
    one = await start_pending(running_server)
    first, second = await one.post(), await one.post()
    assert (first.status, first.json) == (200, {"status": "success"})
    assert (second.status, second.json) == (200, {"status": "success", "duplicate": True})
    assert (await list_events(running_server)).count("task.succeeded") == 1
    assert await one.state() == (TaskState.SUCCEEDED, 1)  # that it came again is noted


@pytest.mark.requirement("r:R51", "s:S-03")
async def test_another_body_for_a_finished_task_is_noted_and_refused(running_server: RunningServer) -> None:
    one = await start_pending(running_server)
    await one.post()
    assert (await one.post({"status": "Failed"})).status == 409
    assert await one.state() == (TaskState.SUCCEEDED, 1)


@pytest.mark.requirement("r:R52", "s:S-01")
async def test_what_nobody_expects_is_refused_and_writes_nothing(running_server: RunningServer) -> None:
    one, other = await start_pending(running_server), await start_pending(running_server, "req-2")
    before = await running_server.yard.state.store.event_span()
    assert (await one.post(id_="unknown")).status == 404
    assert (await one.post(plugin="Other")).status == 404
    assert (await one.post(token="forged")).status == 401
    assert (await one.post(token=other.expected.token)).status == 404
    assert (await running_server.post("/plugin-callback/Video/req-1", DONE)).status == 401  # even with the owner's key
    assert await running_server.yard.state.store.event_span() == before
    assert await one.state() == (TaskState.WAITING, 0)
    metrics = (await running_server.get("/metrics")).body.decode()
    assert 'toolyard_callbacks_refused_total{status="401"} 2.0' in metrics
    assert 'toolyard_callbacks_refused_total{status="404"} 3.0' in metrics


@pytest.mark.requirement("r:R53")
async def test_a_callback_before_its_receipt_is_kept_and_counts(running_server: RunningServer) -> None:
    one = await start_pending(running_server, named=False)
    path = f"/plugin-callback/~{one.expected.token}/Video/req-1"
    assert (await running_server.post(path, DONE, key=None)).status == 200
    (task,) = await running_server.yard.state.tasks.store_receipt(
        one.expected, "{{VCP_ASYNC_RESULT::Video::req-1}}", os.getpid()
    )
    assert (task.state, task.result) == (TaskState.SUCCEEDED, DONE)


@pytest.mark.requirement("r:R54")
async def test_a_callback_after_a_cancel_is_only_noted(running_server: RunningServer) -> None:
    one = await start_pending(running_server)
    assert (await running_server.post(f"/v1/tasks/{one.task.id}/cancel")).status == 200
    assert (await one.post()).status == 409
    assert await one.state() == (TaskState.CANCELLED, 1)


@pytest.mark.requirement("r:R55", "r:R03")
async def test_callbacks_are_taken_while_the_server_ends(running_server: RunningServer) -> None:
    one = await start_pending(running_server)
    running_server.server.drain.refuses_work = True
    refused = await running_server.post("/v1/tools/LS", {})
    assert (refused.status, refused.headers["Retry-After"]) == (503, "5")
    ready = await running_server.get("/readyz", key=None)
    assert (ready.status, ready.headers["Retry-After"]) == (503, "5")
    assert (await running_server.get("/healthz", key=None)).status == 200
    assert (await one.post()).status == 200


@pytest.mark.requirement("r:R56", "s:S-04")
@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"{", "application/json", 400),
        (b"", "application/json", 400),
        (b"[" * 100_000 + b"]" * 100_000, "application/json", 400),
        (b'{"a": ' * 5000 + b"1" + b"}" * 5000, "application/json", 400),
        (b'{"a": NaN}', "application/json", 400),
        (b"a=b", "application/x-www-form-urlencoded", 415),
        (b"{}", "text/plain", 415),
    ],
)
async def test_a_body_that_is_no_sound_json_is_refused(
    running_server: RunningServer, body: bytes, kind: str, status: int
) -> None:
    one = await start_pending(running_server)
    headers = {"Content-Type": kind}
    response = await running_server.request("POST", one.path(), key=None, data=body, headers=headers)
    assert response.status == status
    assert await one.state() == (TaskState.WAITING, 0)
    assert (await one.post()).status == 200


@pytest.mark.requirement("r:R56")
async def test_a_body_that_never_ends_meets_the_limits(tmp_path: Path) -> None:
    def head(running: RunningServer, one: PendingCallback) -> str:
        return f"POST {one.path()} HTTP/1.1\r\nHost: 127.0.0.1:{running.port}\r\nContent-Type: application/json\r\n"

    async with run_server(tmp_path / "hasty", ServerOptions(port=0, body_s=0.3)) as running:
        one = await start_pending(running)
        assert (await running.send_raw(f"{head(running, one)}Content-Length: 9\r\n\r\n{{".encode()))[0] == 408
        assert await one.state() == (TaskState.WAITING, 0)
    async with run_server(tmp_path) as running:
        one = await start_pending(running)
        chunk = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
        assert (await running.send_raw(f"{head(running, one)}Transfer-Encoding: chunked\r\n\r\n".encode() + chunk * 9))[
            0
        ] == 413
        assert (await running.send_raw(f"{head(running, one)}Content-Length: {50 * 2**20}\r\n\r\n".encode()))[0] == 413
        assert await one.state() == (TaskState.WAITING, 0)


@pytest.mark.requirement("r:R57")
async def test_a_thousand_callbacks_for_a_thousand_tasks_are_all_stored(running_server: RunningServer) -> None:
    waiting = [await start_pending(running_server, f"req-{number}") for number in range(1000)]
    gate = asyncio.Semaphore(64)

    async def post(one: PendingCallback) -> int:
        async with gate:
            return (await one.post()).status

    assert set(await asyncio.gather(*map(post, waiting))) == {200}
    assert (await list_events(running_server)).count("task.succeeded") == 1000
    states = {(await one.state())[0] for one in waiting}
    assert states == {TaskState.SUCCEEDED}


@pytest.mark.requirement("r:R58", "s:S-02")
@pytest.mark.parametrize(
    "id_",
    ["..", "%2e%2e", "x%2f..%2f..%2fPlugin%2fmanifest", "%252e%252e%252f", "..%5c..", "%00", "%e2%88%95", "a" * 300,
     "a" * 10_000, "%20", "a%0ab"],
)  # fmt: skip
async def test_an_id_is_no_path(running_server: RunningServer, id_: str) -> None:
    one = await start_pending(running_server)
    before = sorted(path for path in running_server.home.parent.rglob("*") if path.suffix != ".pyc")
    head = (
        f"POST /plugin-callback/~{one.expected.token}/Video/{id_} HTTP/1.1\r\nHost: 127.0.0.1:{running_server.port}\r\n"
        "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    )
    assert (await running_server.send_raw(head.encode()))[0] == 400
    after = sorted(path for path in running_server.home.parent.rglob("*") if path.suffix != ".pyc")
    assert after == before


ASYNC = """
import json, os, sys, urllib.request
sys.stdin.read()
print(json.dumps({"status": "success", "result": "{{VCP_ASYNC_RESULT::Video::v-1}}"}), flush=True)
url = f"{os.environ['CALLBACK_BASE_URL']}/{os.environ['PLUGIN_NAME_FOR_CALLBACK']}/v-1"
body = json.dumps({"status": "Succeed", "message": url}).encode()
urllib.request.urlopen(urllib.request.Request(url, body, {"Content-Type": "application/json"}))
"""


@pytest.mark.requirement("s:S-73", "s:S-01")
async def test_a_plugin_calls_back_to_this_server_whatever_its_configuration_says(
    tmp_path: Path, add_plugin: Callable[..., Path]
) -> None:
    add_plugin("Video", ASYNC, config="CALLBACK_BASE_URL=https://evil.example/x\n", pluginType="asynchronous")
    async with run_server(tmp_path) as running:
        receipt = await running.post("/v1/tools/Video", {})
        (task_id,) = receipt.headers["x-call-tasks"].split(",")
        response = await running.get(f"/v1/tasks/{task_id}?wait=20")
        while response.json["state"] == "waiting_callback":
            response = await running.get(f"/v1/tasks/{task_id}?wait=20")
        assert response.json["state"] == "succeeded"
        assert response.json["result"]["message"].startswith(f"{running.url}/plugin-callback/~")
        output = json.dumps((await running.get("/v1/tasks")).json)
        assert "token_hash" not in output


def list_every_route(running: RunningServer) -> list[tuple[str, str]]:
    """Every route as method and path, those outside of the OpenAPI document and WebSockets included."""
    app = make_api(running.yard, running.server._make_parts(running.server._make_reloader()))
    named = {
        (method, re.sub(r"\{[^}]+\}", "x", str(getattr(route, "path", ""))))
        for route in app.routes
        for method in getattr(route, "methods", None) or ("GET",)
        if method != "HEAD"
    }
    every = sorted(named | set(list_routes(running)) | {("POST", "/mcp"), ("GET", "/ws"), ("GET", "/vcpinfo/x")})
    assert len(every) > 60
    return every


@pytest.mark.requirement("trust:callback-token")
async def test_the_token_of_a_callback_is_no_credential_of_any_route(running_server: RunningServer) -> None:
    one, access = await start_pending(running_server), running_server.server.access
    token, cookie = one.expected.token, f"toolyard_{running_server.port}"
    basic = base64.b64encode(f"owner:{token}".encode()).decode()
    upgrade = {
        "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": base64.b64encode(b"0" * 16).decode(),
    }  # fmt: skip
    places: list[dict[str, Any]] = [
        {"headers": {"Authorization": f"Bearer {token}"}},
        {"headers": {"Authorization": f"Bearer ~{token}"}},
        {"headers": {"Authorization": f"Basic {basic}"}},
        {"headers": {"X-API-Key": token, "Api-Key": token, "X-CSRF-Token": token}},
        {"headers": {"Cookie": f"{cookie}={token}", "X-CSRF-Token": token}},
        {"params": dict.fromkeys(("key", "token", "ticket", "link", "api_key", "signature"), token)},
        {"headers": {**upgrade, "Authorization": f"Bearer {token}"}},
        {"headers": {**upgrade, "Sec-WebSocket-Protocol": f"bearer, {token}"}},
        {"headers": upgrade, "params": {"ticket": token}},
    ]
    for path in (f"/VCPlog/VCP_Key={token}", f"/vcpinfo/VCP_Key={token}", f"/ws?ticket={token}"):
        assert (await running_server.request("GET", path, key=None, headers=upgrade)).status == 401
    for path in (f"/pw={token}/images/x.png", f"/pw={token}/files/x.txt", f"/media/x?expires=9&signature={token}"):
        assert (await running_server.request("GET", path, key=None)).status in (403, 404)
    for field in ("key", "link"):
        assert (await running_server.request("POST", "/login", key=None, data={field: token})).status == 401
    for method, path in list_every_route(running_server):
        for place in places:
            access.limiter = AttemptLimiter(lambda: 0.0)  # else most answers would be to wait
            answer = await running_server.request(method, path, key=None, **place)
            if running_server.rules.find(path).is_public and not path.startswith("/plugin-callback/"):
                without = await running_server.request(method, path, key=None)
                assert answer.status >= 400 or answer.status == without.status, (method, path, place)
            else:
                assert answer.status in (401, 403, 405), (method, path, place, answer.status)
    assert await one.state() == (TaskState.WAITING, 0)


@pytest.mark.requirement("trust:callback-token")
async def test_the_token_of_a_callback_ends_no_task_of_another_call(running_server: RunningServer) -> None:
    one, other = await start_pending(running_server), await start_pending(running_server, "req-2")
    for path in (one.path(id_="req-2"), one.path(plugin="Other", id_="req-2"), one.path(plugin="Other")):
        answer = await running_server.post(path, DONE, key=None)
        assert answer.status in (401, 403, 404), path
    assert await other.state() == (TaskState.WAITING, 0)
    assert (await one.post()).status == 200
    assert await one.state() == (TaskState.SUCCEEDED, 0)
