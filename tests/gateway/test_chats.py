"""Replies that survive their client, turns that are stopped, clients that are slow or leave."""

import asyncio
import contextlib
import json
import os
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import aiohttp
import pytest

from tests.fakes import Endless, FakeTool
from tests.gateway.serving import ME, Gateway, StreamedAnswer, chat_body, gateway, request
from tests.gateway.upstream import Script, chunk, replies, says, streamed
from tests.waiting import run_loop_once, wait_until, wait_until_still
from toolyard.gateway.chat_request import ClientRequest
from toolyard.gateway.reply.chunks import Chunk, Head
from toolyard.gateway.turns.turn import Turn
from toolyard.gateway.turns.turn_events import Delta, Gap
from toolyard.gateway.turns.turn_log import MAX_BEHIND, MAX_LOG, MAX_LOGS, LogReader, TurnLog
from toolyard.gateway.turns.turn_plan import ChatRecord

SOON_S = 1.0 if os.environ.get("HYPOTHESIS_PROFILE") == "soak" else 60.0  # a second, where nothing runs beside it
BLOCK = request(text="hello")
KEY = {"Authorization": "Bearer me"}


def make_log(patience_s: float = 60.0) -> TurnLog:
    """The log of a streamed turn that does nothing by itself."""
    turn = Mock(spec=Turn)
    turn.record = ChatRecord(id="c", caller=ME, model="m", started=0.0)
    turn.head, turn.request, turn.calls_run = Head("c", 0, "m"), Mock(streams=True), []
    turn.continues = False
    return TurnLog(turn, patience_s=patience_s)


def text(size: int) -> Delta:
    return Delta([Chunk({}, b"x" * size)])


async def read_all(reader: LogReader) -> list[tuple[int, Any]]:
    read: list[tuple[int, Any]] = []
    while entries := await reader.next():
        first = reader.at - len(entries) + 1
        read += [
            (reader.at if isinstance(entry.event, Gap) else first + number, entry.event)
            for number, entry in enumerate(entries)
        ]
    reader.close()
    return read


async def post(one: Gateway, session: aiohttp.ClientSession, body: Any, **headers: str) -> aiohttp.ClientResponse:
    return await session.post(f"{one.url}/v1/chat/completions", json=body, headers={**KEY, **headers})


async def first_bytes(response: aiohttp.ClientResponse) -> bytes:
    async with asyncio.timeout(60):
        return await response.content.readany()


@pytest.mark.requirement("chat:stream-resume")
async def test_a_client_that_comes_back_gets_every_later_piece_once(tmp_path: Path) -> None:
    answers = [
        Script(streamed(f"One two three.\n{BLOCK}\n"), pause_s=0.01),
        Script(streamed("Four five."), pause_s=0.01),
    ]
    async with gateway(tmp_path, answers, served=True) as one, aiohttp.ClientSession() as session:
        response = await post(one, session, chat_body("Hi", stream=True), **{"X-Toolyard-Chat": "my-chat"})
        raw = b""
        while raw.count(b"\n\n") < 3:
            raw += await first_bytes(response)
        response.close()
        events = raw.split(b"\n\n")[:-1]
        cursor = int(events[-1].split(b"\n")[0].removeprefix(b"id: "))
        url = f"{one.url}/v1/chats/my-chat/stream"
        async with asyncio.timeout(60), session.get(url, params={"cursor": cursor}, headers=KEY) as again:
            rest = await again.read()
        heard = StreamedAnswer.from_bytes(b"\n\n".join([*events, rest]))
        assert heard.text == "One two three.\n\n> ✓ Say: Said it.\n\nFour five."
        assert (heard.finishes, heard.done) == (["stop"], 1)
        async with session.get(url, headers={**KEY, "Last-Event-ID": str(cursor)}) as third:
            assert await third.read() == rest
        async with session.get(url, headers={"Authorization": "Bearer another"}) as stranger:
            assert stranger.status == 404


@pytest.mark.requirement("chat:stream-resume")
async def test_cursors_go_on_over_the_turns_of_a_chat_and_one_turn_runs_at_a_time(tmp_path: Path) -> None:
    async with gateway(tmp_path, replies("First.", "Second."), served=True) as one, aiohttp.ClientSession() as session:
        body = chat_body("Hi", stream=True, toolyard={"chat": "c", "offer": "none"})
        first = StreamedAnswer.from_bytes(await (await post(one, session, body)).read())
        response = await post(one, session, body)
        cursor = int(response.headers["X-Toolyard-Cursor"])
        assert cursor >= len(first.events) + first.done
        assert StreamedAnswer.from_bytes(await response.read()).text == "Second."
        async with session.get(f"{one.url}/v1/chats/c/stream", headers=KEY) as all_of_it:
            assert StreamedAnswer.from_bytes(await all_of_it.read()).text == "First.Second."
        async with session.get(f"{one.url}/v1/chats/c", headers=KEY) as record:
            answer = await record.json()
            assert (answer["state"], answer["rounds"]) == ("done", [{"sent": chat_body("Hi", stream=True)}])
    async with gateway(tmp_path / "busy", [Script(streamed("Hi.")[:2], then="hang")]) as one:
        run = await one.chat.complete(
            ClientRequest(chat_body("Hi", stream=True), caller=ME, headers={"x-toolyard-chat": "c"})
        )
        assert run.pieces is not None
        await anext(run.pieces)
        assert (
            await one.chat.complete(
                ClientRequest(chat_body("Hi", stream=True), caller=ME, headers={"x-toolyard-chat": "c"})
            )
        ).status == 409
        await run.pieces.aclose()


@pytest.mark.requirement("chat:interrupt", "r:R77")
async def test_interrupt_reaches_the_model_also_when_its_client_does_not_read(tmp_path: Path) -> None:
    pieces = [chunk({"content": "x" * 65536})] * 100
    async with gateway(tmp_path, [Script(pieces, then="hang")]) as one:
        for chat in ("plain", "surviving"):
            one.upstream.gone.clear()
            named: dict[str, Any] = {"toolyard": {"chat": chat}} if chat == "surviving" else {}
            run = await one.chat.complete(
                ClientRequest(chat_body("Hi", stream=True, requestId=chat, **named), caller=ME)
            )
            assert run.pieces is not None
            await anext(run.pieces)
            await wait_until_still(lambda: one.upstream.written)
            assert one.chat.interrupt(caller=ME, request_id=chat)
            async with asyncio.timeout(SOON_S):
                await one.upstream.gone.wait()
            assert b"interrupted" in b"".join([piece async for piece in run.pieces])


@pytest.mark.requirement("r:R76")
@pytest.mark.parametrize("text", ["Hi", "Hi " * 300_000], ids=["short", "long"])  # a long body pauses what is read
@pytest.mark.parametrize("stream", [True, False])
async def test_when_a_plain_client_leaves_the_model_is_left_at_once(tmp_path: Path, stream: bool, text: str) -> None:
    script = Script(streamed("Hi there.")[:3], then="hang")
    async with gateway(tmp_path, [script], served=True) as one, aiohttp.ClientSession() as session:
        asking = asyncio.create_task(post(one, session, chat_body(text, stream=stream)))
        if stream:
            response = await asking
            await first_bytes(response)
            response.close()
        else:
            await wait_until(lambda: one.upstream.bodies)
            asking.cancel()
        async with asyncio.timeout(SOON_S):
            await one.upstream.gone.wait()


@pytest.mark.requirement("r:R76")
async def test_when_a_plain_client_leaves_its_tools_are_stopped(tmp_path: Path) -> None:
    endless = Endless()
    async with gateway(tmp_path, replies(request("Endless")), served=True) as one, aiohttp.ClientSession() as session:
        one.yard.tools.add(FakeTool(endless, name="Endless"))
        response = await post(one, session, chat_body("Hi", stream=True))
        await endless.started.wait()
        response.close()
        async with asyncio.timeout(SOON_S):
            await endless.stopped.wait()


@pytest.mark.requirement("chat:interrupt")
@pytest.mark.parametrize("stream", [True, False])
async def test_interrupt_stops_the_tools_at_once(tmp_path: Path, stream: bool) -> None:
    endless = Endless()
    answers = replies(f"Wait.\n{request('Endless')}")
    async with gateway(tmp_path, answers, served=True) as one, aiohttp.ClientSession() as session:
        one.yard.tools.add(FakeTool(endless, name="Endless"))
        asking = asyncio.create_task(post(one, session, chat_body("Hi", stream=stream, requestId="r-1")))
        await endless.started.wait()
        stop = f"{one.url}/v1/interrupt"
        async with session.post(stop, json={"requestId": "r-1"}, headers={"Authorization": "Bearer other"}) as refused:
            assert refused.status == 404
        async with asyncio.timeout(SOON_S):
            async with session.post(stop, json={"requestId": "r-1"}, headers=KEY) as stopped:
                assert (stopped.status, (await stopped.json())["status"]) == (200, "success")
            await endless.stopped.wait()
        body = await (await asking).read()
        assert b"interrupted" in body
        assert (body.endswith(b"data: [DONE]\n\n")) is stream
        answer = body.split(b"\n\n")[-3].removeprefix(b"data: ") if stream else body
        assert {"id", "object", "created", "model", "choices"} <= set(json.loads(answer))
        async with session.post(stop, json={"requestId": "r-1"}, headers=KEY) as late:
            assert late.status == 404
        async with session.post(stop, json={}, headers=KEY) as nothing:
            assert nothing.status == 400


@pytest.mark.requirement("chat:interrupt")
@pytest.mark.parametrize("when", ["first byte", "stream"])
async def test_interrupt_stops_the_model_at_once(tmp_path: Path, when: str) -> None:
    script = Script(streamed("Hi.")[:2], then="hang") if when == "stream" else Script(late_s=600)
    async with gateway(tmp_path, [script], served=True) as one, aiohttp.ClientSession() as session:
        asking = asyncio.create_task(
            post(one, session, chat_body("Hi", stream=True, toolyard={"chat": "c", "show": "raw"}))
        )
        await wait_until(lambda: bool(one.upstream.bodies) and (bool(one.upstream.written) or when != "stream"))
        async with asyncio.timeout(SOON_S):
            async with session.post(f"{one.url}/v1/interrupt", json={"chat": "c"}, headers=KEY) as stopped:
                assert stopped.status == 200
            await one.upstream.gone.wait()
            response = await asking
            assert b"interrupted" in await response.read()


@pytest.mark.requirement("chat:completions")
async def test_comments_keep_a_stream_alive_while_tools_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolyard.web.chat_response.KEEP_ALIVE_S", 0.05)
    endless = Endless()
    async with gateway(tmp_path, replies(request("Endless")), served=True) as one, aiohttp.ClientSession() as session:
        one.yard.tools.add(FakeTool(endless, name="Endless"))
        response = await post(one, session, chat_body("Hi", stream=True))
        raw = b""
        while raw.count(b": keep-alive\n\n") < 3:
            raw += await first_bytes(response)
        response.close()


@pytest.mark.requirement("r:R77")
async def test_a_slow_client_pauses_the_upstream(tmp_path: Path) -> None:
    text = "x" * 65536
    pieces = [chunk({"content": text})] * 640  # 40 MiB
    async with gateway(tmp_path, [Script([*pieces, *streamed("End.")])], served=True) as one:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(one.url.rpartition(":")[2]), limit=2**16)
        body = json.dumps(chat_body("Hi", stream=True)).encode()
        head = ["POST /v1/chat/completions HTTP/1.1", "Host: x", "Authorization: Bearer me"]
        writer.write("\r\n".join([*head, f"Content-Length: {len(body)}", "", ""]).encode() + body)
        await reader.readuntil(b"\r\n\r\n")
        assert await wait_until_still(lambda: one.upstream.written) < 30 * 2**20
        writer.close()
        await writer.wait_closed()


@pytest.mark.requirement("r:R77")
async def test_a_slow_reader_of_a_surviving_chat_pauses_it_and_one_that_left_does_not() -> None:
    log = make_log()
    reader = log.read(0)
    log.append(text(5))
    assert (len(await reader.next()), reader.at) == (1, 1)
    log.append(text(MAX_BEHIND + 1))
    room = asyncio.create_task(log.wait_for_readers())
    _, waiting = await asyncio.wait({room}, timeout=0.05)
    assert waiting
    assert (len(await reader.next()), reader.at) == (1, 2)
    assert log.is_far_ahead, "it may still be on its way to the client"
    coming_back = asyncio.create_task(reader.next())
    async with asyncio.timeout(60):
        await room
        coming_back.cancel()
        log.append(text(MAX_BEHIND + 1))
        room = asyncio.create_task(log.wait_for_readers())
        await run_loop_once()
        reader.close()
        await room
    log.end()


@pytest.mark.requirement("chat:stream-resume")
async def test_what_is_recorded_is_bounded_and_a_gap_is_told() -> None:
    log = make_log()
    reader = log.read(0)
    for _ in range(10):
        log.append(text(MAX_LOG // 4))
    assert log.size <= MAX_LOG
    assert isinstance((await reader.next())[0].event, Gap)
    await reader.next()
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(reader.next(), 0.01)  # it has read all there is,
    assert not log.is_far_ahead  # so what it missed holds nothing up
    reader.close()
    log.end()
    events = await read_all(log.read(0))
    assert events[0] == (6, Gap(0, 6))
    assert [cursor for cursor, _ in events[1:]] == [7, 8, 9, 10]


@pytest.mark.requirement("chat:stream-resume")
async def test_a_cursor_of_another_recording_gets_a_gap_and_then_everything() -> None:
    log = make_log()
    log.append(Delta([Chunk({}, b"a"), Chunk({}, b"b")]))
    log.end()
    assert await read_all(log.read(3)) == [
        (0, Gap(3, 0)),
        (1, Delta([Chunk({}, b"a")])),
        (2, Delta([Chunk({}, b"b")])),
    ]
    assert await read_all(log.read(2)) == []


@pytest.mark.requirement("chat:stream-resume")
async def test_only_so_many_chats_are_kept(tmp_path: Path) -> None:
    async with gateway(tmp_path, replies("Hi.")) as one:
        ids = [(await one.chat.complete(ClientRequest(chat_body("Hi"), caller=ME))).id for _ in range(MAX_LOGS + 5)]
        assert [one.chat.record(id_, ME) is None for id_ in (ids[0], ids[4], ids[5], ids[-1])] == [
            True,
            True,
            False,
            False,
        ]


@pytest.mark.requirement("chat:completions")
@pytest.mark.parametrize(
    "body",
    [{}, {"messages": []}, {"messages": "x"}, {"messages": [{}], "model": 1}, chat_body("x", toolyard={"show": "y"}),
     chat_body("x", toolyard={"chat": "../x"}), chat_body("x", stream="true"), chat_body("x", stream=1),
     chat_body("x", more=json.loads("[" * 300 + "]" * 300))],
)  # fmt: skip
async def test_requests_that_make_no_sense_are_refused(tmp_path: Path, body: Any) -> None:
    async with gateway(tmp_path, [says("Hi.")]) as one:
        run = await one.chat.complete(ClientRequest(body, caller=ME))
        assert run.status == 400
        fields = {"message", "type", "param", "code"}
        assert set(json.loads(run.body)["error"]) == fields | {"message_code", "message_params"}
        assert one.upstream.bodies == []


@pytest.mark.requirement("chat:completions")
async def test_what_is_null_is_as_if_it_were_not_said(tmp_path: Path) -> None:
    async with gateway(tmp_path, [says("Hi.", stream=False)]) as one:
        nothing = {"chat": None, "show": None, "tools": None}
        for body in (chat_body("x", stream=None), chat_body("x", toolyard=None), chat_body("x", toolyard=nothing)):
            assert (await one.chat.complete(ClientRequest(body, caller=ME))).status == 200


@pytest.mark.requirement("chat:stream-resume")
async def test_cursors_go_on_also_over_a_turn_that_is_not_streamed(tmp_path: Path) -> None:
    async with gateway(tmp_path, replies("Hi.")) as one:
        options = {"chat": "c"}
        first = await one.stream(toolyard=options)
        await one.complete(toolyard=options)
        run = await one.chat.complete(ClientRequest(chat_body("x", stream=True, toolyard=options), caller=ME))
        assert run.pieces is not None
        before = int(run.headers["X-Toolyard-Cursor"])
        ids = [int(piece.split()[1]) async for piece in run.pieces]
        assert len(ids) == len(first.events) + first.done
        assert before < ids[0]
        assert ids == sorted(set(ids))


@pytest.mark.requirement("chat:stream-resume")
async def test_a_last_event_id_that_is_no_cursor_is_as_none(tmp_path: Path) -> None:
    async with gateway(tmp_path, [says("Hi.")], served=True) as one, aiohttp.ClientSession(one.url) as session:
        named = {"Authorization": "Bearer me", "X-Toolyard-Chat": "c"}
        async with session.post("/v1/chat/completions", json=chat_body("x", stream=True), headers=named) as response:
            events = await response.read()
        for seen in ("x", "-1", "9" * 5000):
            async with session.get("/v1/chats/c/stream", headers={**named, "Last-Event-ID": seen}) as response:
                assert (response.status, await response.read()) == (200, events)
