"""``/ws`` and VCPToolBox's channels over real sockets."""

import asyncio
import contextlib
import json
import os
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.fakes import FakeClock
from tests.gateway.metered import Meter
from tests.plugins.folders import make_plugin
from tests.waiting import run_loop_once, wait_for_value, wait_until
from tests.web.conftest import RunningServer, run_server
from tests.web.test_callbacks import start_pending
from tests.web.test_records import request_approval
from toolyard.protocol.store import Event, NewEvent
from toolyard.storage.memory_store import MemoryStore
from toolyard.web.feed import Feed, Follower
from toolyard.web.security.scope import Scope
from toolyard.web.server.lifecycle import ServerOptions
from toolyard.web.server.listener import Listener

SOAK = os.environ.get("HYPOTHESIS_PROFILE") == "soak"


@asynccontextmanager
async def follow(running: RunningServer, path: str = "/ws", **more: Any) -> AsyncIterator[ClientConnection]:
    headers = {"Authorization": f"Bearer {more.pop('key', running.key)}"} if "key" not in more or more["key"] else {}
    more.pop("key", None)
    more = {"additional_headers": headers, "open_timeout": 60, "ping_interval": None, **more}
    async with connect(running.url.replace("http", "ws") + path, compression=None, **more) as connection:
        yield connection


async def receive(connection: ClientConnection, count: int) -> list[dict[str, Any]]:
    async with asyncio.timeout(60):
        return [json.loads(await connection.recv()) for _ in range(count)]


async def emit_events(running: RunningServer, count: int, *, size: int = 0, kind: str = "test.event") -> None:
    now = datetime.now(UTC).timestamp()
    events = [NewEvent(type=kind, at=now, data={"number": n, "pad": "x" * size}) for n in range(count)]
    await running.yard.state.store.commit([], events, lasting=False)


async def _until_closed(connection: ClientConnection) -> AsyncIterator[str | bytes]:
    with contextlib.suppress(ConnectionClosed):
        while True:
            yield await connection.recv()


async def wait_close_code(connection: ClientConnection) -> int:
    async with asyncio.timeout(60):
        await connection.wait_closed()
    return connection.close_code or 0


@pytest.mark.requirement("ws:messages")
async def test_a_call_is_told_when_it_starts_and_when_it_ends(running_server: RunningServer) -> None:
    async with follow(running_server) as connection:
        await running_server.post("/v1/tools/LS", {})
        started, finished = await receive(connection, 2)
        assert (started["type"], finished["type"]) == ("call.started", "call.finished")
        assert list(started) == ["seq", "type", "at", "data"]
        assert finished["seq"] == started["seq"] + 1
        assert finished["data"]["tool"] == "LS"


@pytest.mark.requirement("ws:messages")
async def test_a_plugin_that_is_found_while_somebody_follows_is_an_event(running_server: RunningServer) -> None:
    async with follow(running_server) as connection:
        make_plugin(running_server.home / "plugins", "Newcomer")
        (event,) = await receive(connection, 1)
        assert (event["type"], event["data"]) == ("plugin.changed", {})
        names = [one["name"] for one in (await running_server.get("/v1/plugins")).json["data"]]
        assert "Newcomer" in names


@pytest.mark.requirement("ws:callback-event", "ws:messages")
async def test_every_callback_is_an_event(running_server: RunningServer) -> None:
    one = await start_pending(running_server)
    async with follow(running_server) as connection:
        await one.post({"status": "Succeed", "message": "done"})
        (result,) = await receive(connection, 1)
    assert (result["type"], result["data"]["result"]["message"]) == ("task.succeeded", "done")


@pytest.mark.requirement("ws:messages", "s:S-52")
async def test_an_approver_hears_of_approvals_only_and_others_of_nothing(running_server: RunningServer) -> None:
    async with follow(running_server, key=running_server.make_key(Scope.APPROVE)) as connection:
        waiting, id_ = await request_approval(running_server)
        await running_server.post(f"/v1/approvals/{id_}/deny", {})
        await waiting
        result = await receive(connection, 2)
    assert [one["type"] for one in result] == ["approval.requested", "approval.denied"]
    for scope in (Scope.CHAT, Scope.TOOLS):
        with pytest.raises(InvalidStatus) as refused:
            async with follow(running_server, key=running_server.make_key(scope)):
                pass
        assert refused.value.response.status_code == 403


@pytest.mark.requirement("r:R82", "p:P9")
async def test_a_client_that_comes_back_gets_each_later_event_once(running_server: RunningServer) -> None:
    await emit_events(running_server, 30)
    async with follow(running_server, "/ws?cursor=0") as connection:
        first = await receive(connection, 10)
    saying = asyncio.create_task(emit_events(running_server, 30))
    async with follow(running_server, f"/ws?cursor={first[-1]['seq']}") as connection:
        rest = await receive(connection, 50)
    await saying
    assert [one["seq"] for one in first + rest] == list(range(1, 61))


@pytest.mark.requirement("r:R82", "ws:messages")
async def test_what_is_no_longer_kept_is_told_as_a_gap(tmp_path: Path) -> None:
    async with run_server(tmp_path) as running:
        await emit_events(running, 10)
        assert await running.yard.state.store.forget_events(9e9, limit=6) == 6
    async with run_server(tmp_path) as running:
        async with follow(running, "/ws?cursor=2") as connection:
            gap, *rest = await receive(connection, 5)
        assert (gap["type"], gap["data"], gap["seq"]) == ("gap", {"from": 3, "to": 6}, 6)
        assert [one["seq"] for one in rest] == [7, 8, 9, 10]
        async with follow(running, "/ws?cursor=99") as connection:
            (gap,) = await receive(connection, 1)
            await emit_events(running, 1)
            (after,) = await receive(connection, 1)
        assert (gap["type"], gap["seq"], after["seq"]) == ("gap", 10, 11)


@pytest.mark.requirement("r:R82")
async def test_events_that_nobody_could_read_in_time_are_a_gap_for_those_who_follow(clock: FakeClock) -> None:
    store = MemoryStore()
    feed = Feed(store, clock)
    await feed.start()
    await store.commit([], [NewEvent(type="test.x", at=0.0) for _ in range(10)])
    await store.forget_events(1.0, limit=7)
    running = asyncio.create_task(feed.run())
    messages = feed.follow(Follower(0))
    async with asyncio.timeout(60):
        result = [await anext(messages) for _ in range(4)]
    assert [(one.type, one.seq) for one in result] == [("gap", 7), ("test.x", 8), ("test.x", 9), ("test.x", 10)]
    await messages.aclose()
    running.cancel()


@pytest.mark.requirement("r:R82")
async def test_whoever_falls_behind_while_catching_up_misses_nothing_unknowingly(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = MemoryStore()
    feed = Feed(store, clock, most=2)
    follower, works = Follower(3), list[asyncio.Task[None]]()
    read = store.events

    async def events(after: int, *, limit: int) -> list[Event]:
        page = await read(after, limit=limit)
        if not works:  # what it has read is old before it hears of it
            await store.commit([], [NewEvent(type="test.x", at=0.0) for _ in range(5)])
            works.append(asyncio.create_task(feed.run()))
            await wait_until(lambda: feed.last_seq >= 8)
        return page

    await store.commit([], [NewEvent(type="test.x", at=0.0) for _ in range(3)])
    monkeypatch.setattr(store, "events", events)
    async with asyncio.timeout(60):
        assert [one.seq async for one in feed.follow(follower)] == []
    assert follower.dropped.is_set()
    works[0].cancel()


@pytest.mark.requirement("r:R82")
async def test_a_cursor_that_is_no_number_is_refused(running_server: RunningServer) -> None:
    for cursor in ("x", "-1", "1" * 30, "1.5"):
        with pytest.raises(InvalidStatus) as refused:
            async with follow(running_server, f"/ws?cursor={cursor}"):
                pass
        assert refused.value.response.status_code == 400


@pytest.mark.requirement("r:R84")
async def test_a_cursor_is_good_after_a_restart(tmp_path: Path) -> None:
    async with run_server(tmp_path) as running:
        await emit_events(running, 5)
        async with follow(running, "/ws?cursor=0") as connection:
            await receive(connection, 3)
    async with run_server(tmp_path) as running:
        async with follow(running, "/ws?cursor=3") as connection:
            await emit_events(running, 1)
            result = await receive(connection, 3)
        assert [one["seq"] for one in result] == [4, 5, 6]


@pytest.mark.requirement("r:R84", "r:R03")
async def test_clients_are_told_that_the_server_restarts(tmp_path: Path) -> None:
    async with run_server(tmp_path) as running:
        headers = {"Authorization": f"Bearer {running.key}"}
        connection = await connect(
            f"{running.url.replace('http', 'ws')}/ws", additional_headers=headers, open_timeout=60
        )
    assert await wait_close_code(connection) == 1012


@pytest.mark.requirement("r:R80")
async def test_a_client_that_does_not_read_is_dropped_and_others_hear_everything(running_server: RunningServer) -> None:
    total, size = 4000, 4000
    async with follow(running_server) as stuck, follow(running_server) as other:
        stuck.transport.pause_reading()
        heard: list[int] = []
        for _ in range(total // 100):
            await emit_events(running_server, 100, size=size)
            heard += [one["seq"] for one in await receive(other, 100)]
        assert heard == list(range(1, total + 1))
        stuck.transport.resume_reading()
        last = 0
        async with asyncio.timeout(60):
            async for message in _until_closed(stuck):
                last = json.loads(message)["seq"]
        assert stuck.close_code == 1013
    assert last < total
    async with follow(running_server, f"/ws?cursor={last}") as back:
        result = await receive(back, 3)
    assert [one["seq"] for one in result] == [last + 1, last + 2, last + 3]


@pytest.mark.requirement("r:R80", "p:P6")
async def test_the_feed_keeps_no_more_than_its_bounds(clock: FakeClock) -> None:
    store = MemoryStore()
    feed = Feed(store, clock, most=10, most_bytes=2000)
    await feed.start()
    running = asyncio.create_task(feed.run())
    for size in (0, 500):
        await store.commit([], [NewEvent(type="test.x", at=0.0, data={"pad": "x" * size}) for _ in range(30)])
        await wait_for_value(feed.read_newest_seq, lambda newest: feed._last >= newest)
        assert len(feed._recent) <= 10
        assert feed._bytes <= 2000
    slow = Follower(await feed.read_newest_seq(), is_caught_up=True)
    feed._followers.add(slow)
    await store.commit([], [NewEvent(type="test.x", at=0.0) for _ in range(11)])
    async with asyncio.timeout(60):
        await slow.dropped.wait()
    running.cancel()


@pytest.mark.requirement("r:R81")
async def test_a_client_that_answers_no_ping_is_dead(tmp_path: Path) -> None:
    async with run_server(tmp_path, ServerOptions(port=0, ping_s=0.2)) as running:
        reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
        writer.write(
            f"GET /ws HTTP/1.1\r\nHost: 127.0.0.1:{running.port}\r\nAuthorization: Bearer {running.key}\r\n"
            "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            "Sec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        async with asyncio.timeout(60):
            await reader.readuntil(b"\r\n\r\n")
            ping = await reader.readexactly(2)
            assert ping[0] == 0x89
            await reader.read()  # until the server closes it
        await wait_until(lambda: not running.server.feed.client_count)
        writer.close()
    async with run_server(tmp_path, ServerOptions(port=0, ping_s=5)) as running, follow(running) as alive:
        await asyncio.wait_for(await alive.ping(), 60)


@pytest.mark.requirement("r:R81")
def test_a_server_pings_every_20_s_and_waits_20_more() -> None:
    config = Listener(FastAPI(), ping_s=ServerOptions().ping_s).config
    assert (config.ws_ping_interval, config.ws_ping_timeout) == (20.0, 20.0)


@pytest.mark.requirement("r:R83")
async def test_many_clients_hear_everything_and_nobody_waits(running_server: RunningServer) -> None:
    clients, count = (500, 1000) if SOAK else (60, 200)
    meter = Meter()

    async def listen(ready: asyncio.Semaphore) -> int:
        async with follow(running_server, max_queue=None) as connection:
            ready.release()
            return len({one["seq"] for one in await receive(connection, count)})

    ready = asyncio.Semaphore(0)
    listening = [asyncio.create_task(listen(ready)) for _ in range(clients)]
    for _ in range(clients):
        await ready.acquire()
    serialised = 0
    metering = asyncio.create_task(meter.run())
    for _ in range(count // 20):
        await emit_events(running_server, 20)
        serialised += 20
        await run_loop_once()
    assert await asyncio.gather(*listening) == [count] * clients
    metering.cancel()
    assert serialised == count
    assert meter.work_ms < 2000  # the clients share this event loop; bench measures the server alone


@pytest.mark.requirement("r:R83")
async def test_an_event_is_written_as_json_once_for_all(
    running_server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from toolyard.web import feed

    written: list[int] = []
    genuine = feed.to_client_event

    def counted(event: Event) -> feed.ClientEvent:
        written.append(event.seq)
        return genuine(event)

    monkeypatch.setattr(feed, "to_client_event", counted)
    async with follow(running_server) as one, follow(running_server) as two, follow(running_server) as three:
        await emit_events(running_server, 5)
        for connection in (one, two, three):
            await receive(connection, 5)
    assert written == [1, 2, 3, 4, 5]


@pytest.mark.requirement("r:R85")
@pytest.mark.parametrize(
    ("message", "code"),
    [("garbage", 1008), ("[]", 1008), ('{"type": "other"}', 1008), (b"\x00\xff", 1008), ("x" * 70_000, 1009)],
)
async def test_nonsense_and_large_messages_close_the_connection(
    running_server: RunningServer, message: str | bytes, code: int
) -> None:
    async with follow(running_server) as connection:
        await connection.send(message)
        assert await wait_close_code(connection) == code


@pytest.mark.requirement("r:R85")
async def test_a_frame_of_100_mb_and_a_flood_close_the_connection(running_server: RunningServer) -> None:
    async with follow(running_server) as connection:
        connection.transport.write(b"\x82\xff" + (100 * 2**20).to_bytes(8, "big") + b"\0\0\0\0" + b"x" * 100)
        assert await wait_close_code(connection) == 1009
    async with follow(running_server) as connection:
        for _ in range(10_000):
            try:
                await connection.send('{"type": "ping"}')
            except ConnectionClosed:
                break
        assert await wait_close_code(connection) == 1008


@pytest.mark.requirement("s:S-45", "http:browser-session")
async def test_a_ticket_opens_one_websocket(running_server: RunningServer) -> None:
    async def ticket() -> str:
        return str((await running_server.post("/ws-ticket")).json["ticket"])

    by_query = f"/ws?ticket={await ticket()}"
    async with follow(running_server, by_query, key=None):
        pass
    with pytest.raises(InvalidStatus) as refused:
        async with follow(running_server, by_query, key=None):
            pass
    assert refused.value.response.status_code == 401
    words: Any = ["bearer", await ticket()]
    async with follow(running_server, key=None, subprotocols=words) as connection:
        assert connection.subprotocol == "bearer"
    with pytest.raises(InvalidStatus):
        async with follow(running_server, f"/ws?key={running_server.key}", key=None):
            pass


@pytest.mark.requirement("s:S-49", "http:browser-session")
async def test_a_websocket_of_a_session_ends_with_it(
    running_server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolyard.web.server.websocket_client._POLL_S", 0.05)
    access = running_server.server.access
    session = access.sign_in(key=running_server.key, address="a")
    cookie = {"Cookie": f"toolyard_{running_server.port}={session}", "Origin": running_server.url}
    async with follow(running_server, key=None, additional_headers=cookie) as connection:
        access.sign_out(session)
        assert await wait_close_code(connection) == 1008


PUSH = {"enabled": True, "messageType": "video_ready", "targetClientType": "VCPLog"}


@pytest.mark.requirement("ws:vcp-paths", "s:S-45")
async def test_vcp_channels_are_closed_unless_the_owner_opens_them(running_server: RunningServer) -> None:
    for channel in ("VCPlog", "vcpinfo"):
        with pytest.raises(InvalidStatus):
            async with follow(running_server, f"/{channel}/VCP_Key={running_server.key}", key=None):
                pass


@pytest.mark.requirement("s:S-45")
async def test_the_log_has_no_key_of_a_vcp_address(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    async with run_server(tmp_path, settings="vcp_channels = true") as running:
        async with follow(running, f"/VCPlog/VCP_Key={running.key}", key=None) as connection:
            await receive(connection, 1)
        await wait_until(lambda: any(record.message == "websocket" for record in caplog.records))
        own = [record for record in caplog.records if not record.name.startswith("websockets.client")]
        result = [f"{record.getMessage()} {vars(record).get('fields')}" for record in own]
    assert any("/VCPlog/{key:path}" in one for one in result)
    assert [one for one in result if running.key in one] == []


@pytest.mark.requirement("ws:vcp-paths", "ws:vcp-approval-time")
async def test_vcp_log_clients_hear_of_calls_and_answer_approvals(tmp_path: Path) -> None:
    async with run_server(tmp_path, settings='vcp_channels = true\ntime_zone = "Asia/Shanghai"') as running:
        with pytest.raises(InvalidStatus):
            async with follow(running, "/VCPlog/VCP_Key=wrong", key=None):
                pass
        async with follow(running, f"/VCPlog/VCP_Key={running.key}", key=None) as connection:
            assert await receive(connection, 1) == [
                {"type": "connection_ack", "message": "WebSocket connection successful for VCPLog."}
            ]
            await running.post("/v1/tools/LS", {})
            (log,) = await receive(connection, 1)
            assert (log["type"], log["data"]["tool_name"], log["data"]["status"]) == ("vcp_log", "LS", "success")
            waiting, id_ = await request_approval(running)
            (request,) = await receive(connection, 1)
            assert request["type"] == "tool_approval_request"
            assert (request["data"]["requestId"], request["data"]["toolName"]) == (id_, "Write")
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+08:00", request["data"]["timestamp"])
            answer = {"type": "tool_approval_response", "data": {"requestId": id_, "approved": True}}
            await connection.send(json.dumps(answer))
            async with asyncio.timeout(60):
                assert (await waiting).envelope.error is None


@pytest.mark.requirement("ws:vcp-paths")
async def test_an_answer_to_an_approval_counts_also_when_its_client_leaves_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard, goes_on = asyncio.Event(), asyncio.Event()
    async with run_server(tmp_path, settings="vcp_channels = true") as running:
        counts = running.yard.state.approvals.answer

        async def slowly(*args: Any, **more: Any) -> object:
            heard.set()
            await goes_on.wait()
            return await counts(*args, **more)

        monkeypatch.setattr(running.yard.state.approvals, "answer", slowly)
        waiting, id_ = await request_approval(running)
        async with follow(running, f"/VCPlog/VCP_Key={running.key}", key=None) as connection, asyncio.timeout(60):
            await receive(connection, 1)
            answer = {"type": "tool_approval_response", "data": {"requestId": id_, "approved": True}}
            await connection.send(json.dumps(answer))
            await heard.wait()
        async with asyncio.timeout(60):
            while running.server.feed.client_count:  # it is noticed when there is something to tell
                await running.post("/v1/tools/LS", {})
            goes_on.set()
            assert (await waiting).envelope.error is None


@pytest.mark.requirement("ws:push", "ws:vcp-paths")
@pytest.mark.parametrize(
    ("push", "log", "info"),
    [
        (PUSH, True, False),
        ({**PUSH, "targetClientType": None}, True, True),
        ({**PUSH, "targetClientType": "VCPInfo"}, False, True),
        ({**PUSH, "enabled": False}, False, False),
        ({**PUSH, "usePluginResultAsMessage": False}, True, False),
    ],
)
async def test_a_callback_is_pushed_as_its_manifest_says(
    tmp_path: Path, add_plugin: Callable[..., Path], push: dict[str, Any], log: bool, info: bool
) -> None:
    add_plugin("Video", "", pluginType="asynchronous", webSocketPush=push)
    body = {"status": "Succeed", "message": "done", "videoUrl": "http://x"}
    brief = {"plugin": "Video", "id": "req-1", "status": "Succeed", "message": "done"}
    whole = push.get("usePluginResultAsMessage", True)
    expected = {"type": "video_ready", "data": body if whole else brief}
    async with run_server(tmp_path, settings="vcp_channels = true") as running:
        one = await start_pending(running)
        channels = [(f"/VCPlog/VCP_Key={running.key}", log), (f"/vcpinfo/VCP_Key={running.key}", info)]
        for number, (path, heard) in enumerate(channels):
            async with follow(running, path, key=None) as connection:
                await receive(connection, 1)
                waiting = one if number == 0 else await start_pending(running, "req-1")
                await waiting.post(body)
                if heard:
                    assert await receive(connection, 1) == [expected]
                else:
                    await emit_events(running, 1)
                    with pytest.raises(TimeoutError):
                        await asyncio.wait_for(connection.recv(), 0.3)


CANVAS = """<<<[TOOL_REQUEST]>>>
tool_name:「始」FileOperator「末」,
command1:「始」CreateDirectory「末」,
directoryPath1:「始」notes「末」,
command2:「始」CreateCanvas「末」,
fileName2:「始」sketch.md「末」,
content2:「始」A first sketch「末」
<<<[END_TOOL_REQUEST]>>>"""


@pytest.mark.requirement("action:reaches-clients", "ws:vcp-paths", "http:human-tool", "backend:stream")
async def test_a_special_action_reaches_every_kind_of_client(tmp_path: Path) -> None:
    async with (
        run_server(tmp_path, settings="vcp_channels = true") as running,
        follow(running) as plain,
        follow(running, f"/VCPlog/VCP_Key={running.key}", key=None) as log,
        follow(running, f"/vcpinfo/VCP_Key={running.key}", key=None) as info,
        follow(running, "/v1/backend/stream") as backend,
    ):
        headers = {"Content-Type": "text/plain"}
        answer = (await running.request("POST", "/v1/human/tool", data=CANVAS.encode(), headers=headers)).json
        action = {"_specialAction": "create_canvas", "payload": {"filePath": str(running.project / "canvas/sketch.md")}}
        assert action.items() <= answer.items()
        finished = (await receive(plain, 2))[1]
        assert (finished["type"], action.items() <= finished["data"].items()) == ("call.finished", True)
        assert action.items() <= (await receive(log, 2))[1]["data"].items()
        assert (await receive(info, 2))[1] == {
            "type": "special_action",
            "data": {"tool_name": "FileOperator", **action},
        }
        assert action.items() <= (await receive(backend, 1))[0].items()
        call = (await running.get(f"/v1/calls/{finished['data']['id']}")).json
        assert action.items() <= call.items()
        arguments = {"command": "CreateCanvas", "fileName": "b.md", "content": "x"}
        written = {
            dialect: json.dumps((await running.post(f"/v1/tools/FileOperator?dialect={dialect}", arguments)).json)
            for dialect in ("mcp", "openai", "anthropic")
        }
        assert "create_canvas" in json.loads(written["mcp"])["_meta"]["toolyard/specialAction"].values()
        assert [name for name, text in written.items() if "create_canvas" in text] == ["mcp"]


@pytest.mark.requirement("action:reaches-clients")
async def test_a_payload_that_is_too_large_is_left_out_of_what_is_stored_and_pushed(tmp_path: Path) -> None:
    place = make_plugin(tmp_path / "given", "Draw", risk="read")
    answer = {"status": "success", "result": "Drawn.", "_specialAction": "show", "payload": {"svg": "x" * 70_000}}
    (place / "main.py").write_text(f"print({json.dumps(json.dumps(answer))})\n")
    async with (
        run_server(tmp_path) as running,
        follow(running) as plain,
        follow(running, "/v1/backend/stream") as backend,
    ):
        whole = (await running.post("/v1/tools/Draw?dialect=vcp", {})).json
        assert (whole["_specialAction"], whole["payload"]) == ("show", answer["payload"])
        short = {"_specialAction": "show", "payload": None, "payload_left_out": True}
        finished = (await receive(plain, 2))[1]["data"]
        assert short.items() <= finished.items()
        assert short.items() <= (await receive(backend, 1))[0].items()
        assert short.items() <= (await running.get(f"/v1/calls/{finished['id']}")).json.items()


@pytest.mark.requirement("ws:messages")
async def test_plain_clients_of_the_official_library_can_follow(running_server: RunningServer) -> None:
    call = running_server.yard.calls.request("LS", {})
    async with follow(running_server) as connection:
        await running_server.yard.calls.settle(replace(call, maid="Nova"))
        result = await receive(connection, 2)
    assert result[0]["data"]["maid"] == "Nova"


@pytest.mark.requirement("ws:messages", "s:S-45")
async def test_a_websocket_where_there_is_none_is_refused_with_a_reason(
    running_server: RunningServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "toolyard")
    secret = running_server.make_key(Scope.ADMIN)
    paths = ("/nowhere", "/v1/tools", f"/vcplog/VCP_Key={secret}", f"/VCPlog/VCP_Key={secret}")
    for path in paths:
        with pytest.raises(InvalidStatus) as refused:
            async with follow(running_server, path):
                pass
        assert refused.value.response.status_code == 404
        assert "there is no WebSocket here" in json.loads(refused.value.response.body or b"")["error"]["message"]
    await wait_until(lambda: sum(record.message == "websocket" for record in caplog.records) >= len(paths))
    own = [record for record in caplog.records if not record.name.startswith("websockets.client")]
    fields = [vars(record)["fields"] for record in own if record.getMessage() == "websocket"]
    assert {one["status"] for one in fields} == {404}
    assert [record for record in own if record.levelname == "ERROR"] == []
    assert [one for one in fields if secret in one["path"]] == []
