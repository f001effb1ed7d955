"""``Idempotency-Key`` on tools: a call runs once, however often its request is sent and whoever leaves meanwhile."""

import asyncio
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests import postgres
from tests.fakes import FakeTool
from tests.programs import find_program
from tests.waiting import wait_until
from tests.web.conftest import HttpResponse, RunningServer, run_server
from toolyard.engine.chats.idempotency import IDEMPOTENCY, MAX_RESPONSE
from toolyard.errors import StorageUnwritable
from toolyard.protocol.store import Query
from toolyard.protocol.tool import Checkpoint, Result, ToolCall
from toolyard.web import idempotency
from toolyard.web.security.scope import Scope
from toolyard.web.server.lifecycle import ServerOptions

pytestmark = pytest.mark.requirement("http:idempotency")


@dataclass
class Slow:
    """A tool that counts its runs, and ends when it is let go."""

    runs: int = 0
    started: asyncio.Event = field(default_factory=asyncio.Event)
    go: asyncio.Event = field(default_factory=asyncio.Event)
    text: str = "done"

    async def work(self, call: ToolCall, checkpoint: Checkpoint) -> Result:
        self.runs += 1
        self.started.set()
        await self.go.wait()
        return Result(data={"runs": self.runs}, text=self.text)


@pytest.fixture
def slow(running_server: RunningServer) -> Slow:
    return add_slow(running_server)


def add_slow(running: RunningServer) -> Slow:
    tool = Slow()
    running.yard.tools.add(FakeTool(tool.work, name="Slow"))
    return tool


async def call(
    running: RunningServer, name: str, tool: str = "Slow", query: str = "", *, json: Any = None, **more: Any
) -> HttpResponse:
    headers = {"Idempotency-Key": name}
    return await running.post(f"/v1/tools/{tool}{query}", json or {}, headers=headers, **more)


async def test_a_repeat_gets_the_first_answer_and_nothing_runs(running_server: RunningServer) -> None:
    write = {"path": "a.txt", "content": "x"}
    first = await call(running_server, "k 1", "Write", json=write)
    (running_server.project / "a.txt").unlink()
    again = await call(running_server, "k 1", "Write", json=write)
    assert (first.status, first.json["status"]) == (200, "success")
    assert (again.status, again.body) == (200, first.body)
    assert not (running_server.project / "a.txt").exists()
    headers = ("X-Call-Id", "X-Call-Status", "Content-Type")
    assert [again.headers[name] for name in headers] == [first.headers[name] for name in headers]
    assert again.headers["X-Request-Id"] != first.headers["X-Request-Id"]
    assert ("Idempotency-Replayed" in first.headers, again.headers["Idempotency-Replayed"]) == (False, "true")
    (stored,) = (await running_server.get("/v1/calls")).json["data"]
    assert stored["id"] == first.headers["X-Call-Id"]
    other = await call(running_server, "k 2", "Write", json=write)
    assert other.headers["X-Call-Id"] != stored["id"]
    assert (running_server.project / "a.txt").exists()


async def test_an_envelope_of_an_error_is_an_answer_like_any_other(running_server: RunningServer) -> None:
    first = await call(running_server, "k", "Read", json={"path": "a.txt"})
    assert first.json["error"]["code"] == "NOT_FOUND"
    (running_server.project / "a.txt").write_text("here now")
    assert (await call(running_server, "k", "Read", json={"path": "a.txt"})).body == first.body


async def test_requests_at_the_same_moment_run_once_and_get_the_same(running_server: RunningServer, slow: Slow) -> None:
    asking = [asyncio.create_task(call(running_server, "k")) for _ in range(20)]
    async with asyncio.timeout(60):
        await slow.started.wait()
    slow.go.set()
    answers = await asyncio.gather(*asking)
    assert (slow.runs, {answer.status for answer in answers}, len({answer.body for answer in answers})) == (1, {200}, 1)
    assert sum("Idempotency-Replayed" not in answer.headers for answer in answers) == 1


async def test_a_call_goes_on_when_its_client_leaves_and_a_repeat_joins_it(
    running_server: RunningServer, slow: Slow
) -> None:
    asking = asyncio.create_task(call(running_server, "k"))
    async with asyncio.timeout(60):
        await slow.started.wait()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    drain = running_server.server.drain
    await wait_until(lambda: drain.running_count == 0)
    joining = asyncio.create_task(call(running_server, "k"))
    await wait_until(lambda: drain.running_count == 1)
    slow.go.set()
    joined = await joining
    assert (slow.runs, joined.json["status"], joined.headers["Idempotency-Replayed"]) == (1, "success", "true")
    assert (await call(running_server, "k")).body == joined.body
    assert slow.runs == 1


async def test_a_call_that_ended_while_nobody_waited_has_its_answer_kept(
    running_server: RunningServer, slow: Slow
) -> None:
    asking = asyncio.create_task(call(running_server, "k"))
    async with asyncio.timeout(60):
        await slow.started.wait()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    slow.go.set()
    await running_server.server.idempotent.wait_idle()
    again = await call(running_server, "k")
    assert (slow.runs, again.json["data"], again.headers["Idempotency-Replayed"]) == (1, {"runs": 1}, "true")


async def test_the_key_of_another_request_is_a_422_in_the_shape_of_openai(running_server: RunningServer) -> None:
    await call(running_server, "k", "LS")
    others = (
        await call(running_server, "k", "LS", json={"path": "."}),
        await call(running_server, "k", "Read"),
        await call(running_server, "k", "LS", "?dialect=mcp"),
    )
    for other in others:
        assert (other.status, other.json["error"]["code"]) == (422, "idempotency_key_reused")
        assert other.json["error"]["type"] == "invalid_request_error"
        assert set(other.json["error"]) == {"message", "type", "code", "message_code", "message_params"}


async def test_each_api_key_has_idempotency_keys_of_its_own(running_server: RunningServer) -> None:
    await call(running_server, "k", "LS")
    other = await call(running_server, "k", "LS", json={"path": "."}, key=running_server.make_key(Scope.TOOLS))
    assert (other.status, "Idempotency-Replayed" in other.headers) == (200, False)


@pytest.mark.parametrize("key", ["", "x" * 256, "tab\there", "ümlaut"])
async def test_a_key_that_makes_no_sense_is_a_400(running_server: RunningServer, key: str) -> None:
    refused = await call(running_server, key, "Write", json={"path": "a.txt", "content": "x"})
    assert (refused.status, refused.json["error"]["code"]) == (400, "invalid_idempotency_key")
    assert "255" in refused.json["error"]["message"]
    assert not (running_server.project / "a.txt").exists()


async def test_two_keys_in_one_request_are_a_400(running_server: RunningServer) -> None:
    headers = [("Authorization", f"Bearer {running_server.key}"), ("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
    async with running_server.client.post(f"{running_server.url}/v1/tools/LS", json={}, headers=headers) as response:
        assert (response.status, (await response.json())["error"]["code"]) == (400, "invalid_idempotency_key")


async def test_the_longest_key_is_taken(running_server: RunningServer) -> None:
    key = "~!" + "x" * 252 + "y"
    assert (await call(running_server, key, "LS")).status == 200
    assert (await call(running_server, key, "LS")).headers["Idempotency-Replayed"] == "true"


async def test_a_request_that_was_refused_before_anything_ran_leaves_its_key_free(
    running_server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = await running_server.request(
        "POST", "/v1/tools/LS", data=b"[1]", headers={"Content-Type": "application/json", "Idempotency-Key": "k"}
    )
    assert bad.status == 400
    assert (await call(running_server, "k", "LS")).status == 200

    async def refuse(*_: object, **__: object) -> None:
        raise StorageUnwritable("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(running_server.yard.state.journal, "record_start", refuse)
        full = await call(running_server, "l", "Write", json={"path": "a.txt", "content": "x"})
        assert full.status == 507
    done = await call(running_server, "l", "Write", json={"path": "a.txt", "content": "x"})
    assert (done.json["status"], "Idempotency-Replayed" in done.headers) == ("success", False)


async def test_a_bug_after_the_tool_has_run_does_not_let_it_run_again(
    running_server: RunningServer, slow: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow.go.set()

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(running_server.yard.results, "express", broken)
        first = await call(running_server, "k")
    again = await call(running_server, "k")
    (ran,) = (await running_server.get("/v1/calls")).json["data"]
    for answer in (first, again):
        assert (answer.status, answer.json["error"]["code"], slow.runs) == (400, "interrupted", 1)
        assert answer.headers["X-Should-Retry"] == "false"
        assert f"{ran['id']} (Slow, success)" in answer.json["error"]["message"]


async def test_of_an_answer_that_is_too_large_a_repeat_is_told_so_and_nothing_runs(
    running_server: RunningServer, slow: Slow
) -> None:
    slow.go.set()
    slow.text = "x" * MAX_RESPONSE
    first = await call(running_server, "k")
    assert (first.status, len(first.body) > MAX_RESPONSE) == (200, True)
    again = await call(running_server, "k")
    assert (again.status, again.json["error"]["code"], slow.runs) == (400, "response_not_kept", 1)
    assert again.headers["X-Should-Retry"] == "false"


async def test_a_cancelled_call_stays_cancelled(running_server: RunningServer, slow: Slow) -> None:
    asking = asyncio.create_task(call(running_server, "k"))
    async with asyncio.timeout(60):
        await slow.started.wait()
    calls: list[Any] = []
    while not calls:  # the start of a call that only reads is recorded a moment later
        calls = (await running_server.get("/v1/calls")).json["data"]
    assert (await running_server.post(f"/v1/calls/{calls[0]['id']}/cancel")).status == 200
    first = await asking
    assert first.json["context"]["reason"] == "CANCELLED"
    assert (await call(running_server, "k")).body == first.body
    assert slow.runs == 1


async def test_the_id_that_an_admin_gives_a_call_is_its_id_and_a_repeat_is_no_second_call(
    running_server: RunningServer,
) -> None:
    given = "call_" + "a" * 32
    first = await call(running_server, "k", "LS", f"?call_id={given}")
    assert first.headers["X-Call-Id"] == given
    again = await call(running_server, "k", "LS", f"?call_id={given}")
    assert (again.status, again.body) == (200, first.body)


async def test_a_call_for_later_is_scheduled_once(running_server: RunningServer) -> None:
    later = {"path": ".", "timely_contact": "2126-01-01T00:00:00Z"}
    first = await call(running_server, "k", "LS", json=later)
    assert first.json["status"] == "success"
    assert (await call(running_server, "k", "LS", json=later)).body == first.body
    assert len((await running_server.get("/v1/schedules")).json["data"]) == 1


async def test_no_more_run_at_once_than_there_is_room_for(
    running_server: RunningServer, slow: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency, "MAX_RUNS", 1)
    asking = asyncio.create_task(call(running_server, "k"))
    async with asyncio.timeout(60):
        await slow.started.wait()
    refused = await call(running_server, "l")
    assert (refused.status, refused.json["error"]["code"]) == (503, "too_many_running")
    assert int(refused.headers["Retry-After"]) > 0
    joining = asyncio.create_task(call(running_server, "k"))
    slow.go.set()
    assert (await joining).body == (await asking).body


@pytest.fixture
async def interrupted_response(tmp_path: Path) -> HttpResponse:
    """The response to a call that ran when its server ended."""
    async with run_server(tmp_path, ServerOptions(port=0, grace_s=0.01, ping_s=600.0)) as running:
        slow = add_slow(running)
        asking = asyncio.create_task(call(running, "k"))
        async with asyncio.timeout(60):
            await slow.started.wait()
        await running.server.stop()
        return await asking


async def test_a_call_that_the_end_of_its_server_cuts_off_is_interrupted_for_good(
    tmp_path: Path, interrupted_response: HttpResponse
) -> None:
    assert (
        interrupted_response.status,
        interrupted_response.json["error"]["code"],
        interrupted_response.headers["X-Should-Retry"],
    ) == (400, "interrupted", "false")
    async with run_server(tmp_path) as running:
        slow = add_slow(running)
        again = await call(running, "k")
        (ran,) = (await running.get("/v1/calls")).json["data"]
        assert (again.status, again.json["error"]["code"], slow.runs) == (400, "interrupted", 0)
        assert f"{ran['id']} (Slow, cancelled)" in again.json["error"]["message"]


async def test_a_run_that_nobody_waits_for_has_the_grace_of_the_server_to_end(tmp_path: Path) -> None:
    async with run_server(tmp_path, ServerOptions(port=0, grace_s=60.0, ping_s=600.0)) as running:
        slow = add_slow(running)
        asking = asyncio.create_task(call(running, "k"))
        async with asyncio.timeout(60):
            await slow.started.wait()
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        stopping = asyncio.create_task(running.server.stop())
        await wait_until(lambda: running.server.drain.is_ending)
        slow.go.set()
        await stopping
    async with run_server(tmp_path) as running:
        again = await call(running, "k")
        assert (again.status, again.json["data"]) == (200, {"runs": 1})


async def test_a_request_that_runs_on_another_host_is_waited_for_or_told_to_be_in_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with postgres.database() as url:
        options = ServerOptions(port=0, grace_s=2.0, ping_s=600.0, database=url)
        async with run_server(tmp_path / "one", options) as one, run_server(tmp_path / "two", options) as two:
            first, second = add_slow(one), add_slow(two)
            asking = asyncio.create_task(call(one, "k"))
            async with asyncio.timeout(60):
                await first.started.wait()
            with monkeypatch.context() as patch:
                patch.setattr(idempotency, "WAIT_S", 0.1)
                busy = await call(two, "k")
            assert (busy.status, busy.json["error"]["code"]) == (409, "idempotency_in_progress")
            assert int(busy.headers["Retry-After"]) > 0
            waiting = asyncio.create_task(call(two, "k"))
            await wait_until(lambda: two.server.drain.running_count == 1)
            first.go.set()
            assert (await waiting).body == (await asking).body
            assert (first.runs, second.runs) == (1, 0)
            assert await one.yard.state.store.count(IDEMPOTENCY, Query()) == 1


async def test_curl_gets_the_same_twice(running_server: RunningServer) -> None:
    async def curl() -> tuple[str, bytes]:
        process = await asyncio.create_subprocess_exec(
            find_program("curl"), "--silent", "--show-error", "--include", f"{running_server.url}/v1/tools/Write",
            "-H", f"Authorization: Bearer {running_server.key}", "-H", "Idempotency-Key: order-66", "--json",
            json.dumps({"path": "a.txt", "content": "x"}), stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, _ = await process.communicate()
        head, _, body = out.partition(b"\r\n\r\n")
        return head.decode().lower(), body

    head, body = await curl()
    (running_server.project / "a.txt").unlink()
    head_again, body_again = await curl()
    assert (body_again, json.loads(body)["status"]) == (body, "success")
    assert ("idempotency-replayed" in head, "idempotency-replayed: true" in head_again) == (False, True)
    assert not (running_server.project / "a.txt").exists()


async def test_the_header_stands_in_the_openapi(running_server: RunningServer) -> None:
    described = (await running_server.get("/openapi.json")).json["paths"]["/v1/tools/{name}"]["post"]["parameters"]
    assert "Idempotency-Key" in [one["name"] for one in described if one["in"] == "header"]


async def test_a_client_that_leaves_while_it_joins_ends_nothing(running_server: RunningServer, slow: Slow) -> None:
    asking = asyncio.create_task(call(running_server, "k"))
    async with asyncio.timeout(60):
        await slow.started.wait()
    drain = running_server.server.drain
    async with aiohttp.ClientSession() as client:
        headers = {"Authorization": f"Bearer {running_server.key}", "Idempotency-Key": "k"}
        joining = asyncio.create_task(client.post(f"{running_server.url}/v1/tools/Slow", json={}, headers=headers))
        await wait_until(lambda: drain.running_count == 2)
        joining.cancel()
        await asyncio.gather(joining, return_exceptions=True)
    await wait_until(lambda: drain.running_count == 1)
    slow.go.set()
    assert (await asking).json["status"] == "success"
