"""Turns that end at an awkward moment: stopped twice, not begun yet, with their provider closed under them."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Message

from tests.fakes import Endless, FakeTool
from tests.gateway.serving import ME, QUICK, Gateway, StreamedAnswer, chat_body, gateway, request
from tests.gateway.upstream import Script, provider, replies, says, streamed
from tests.waiting import run_loop_once, wait_until
from toolyard.engine.step_limiter import AT_ONCE
from toolyard.gateway.chat_request import ClientRequest
from toolyard.gateway.faults import ChatFailed
from toolyard.gateway.providers.upstream import HttpUpstream
from toolyard.gateway.providers.upstreams import Upstreams
from toolyard.gateway.tour_model import Tour
from toolyard.gateway.turns.turn import Turn
from toolyard.gateway.turns.turn_log import State
from toolyard.web.chat_response import ChatResponse
from toolyard.web.server.connection import DISCONNECTION, Disconnection

BODY = b'{"messages": []}'
HANGS = Script(streamed("Hi.")[:2], then="hang")


def state(one: Gateway, chat: str) -> object:
    record = one.chat.record(chat, ME)
    assert record is not None
    return record["state"]


@pytest.mark.requirement("chat:interrupt")
@pytest.mark.parametrize("stream", [True, False])
async def test_a_turn_that_is_stopped_twice_in_a_row_still_says_goodbye(tmp_path: Path, stream: bool) -> None:
    endless = Endless()
    async with gateway(tmp_path, replies(request("Endless"))) as one, asyncio.timeout(60):
        one.yard.tools.add(FakeTool(endless, name="Endless"))

        async def last() -> dict[str, Any]:
            return (await one.stream(requestId="r")).events[-1] if stream else await one.complete(requestId="r")

        asking = asyncio.create_task(last())
        await endless.started.wait()
        assert [one.chat.interrupt(caller=ME, request_id="r") for _ in range(2)] == [True, True]
        assert (await asking)["toolyard"] == {"type": "interrupted"}


@pytest.mark.requirement("r:R76")
async def test_a_stream_that_is_closed_before_it_is_read_leaves_the_model(tmp_path: Path) -> None:
    async with gateway(tmp_path, [HANGS]) as one, asyncio.timeout(60):
        run = await one.chat.complete(ClientRequest(chat_body("Hi", stream=True), caller=ME))
        assert run.pieces is not None
        await run.pieces.aclose()
        await one.upstream.gone.wait()
        assert state(one, run.id) == "failed"


@pytest.mark.requirement("r:R76")
async def test_a_client_that_leaves_before_the_head_of_its_answer_is_sent_leaves_the_model(tmp_path: Path) -> None:
    sending = asyncio.Event()

    async def send(message: Message) -> None:
        assert message["type"] == "http.response.start"
        sending.set()
        await asyncio.Event().wait()  # as long as the client reads nothing

    async def receive() -> Message:
        raise AssertionError("the body is here")

    async with gateway(tmp_path, [HANGS]) as one, asyncio.timeout(60):
        departure = Disconnection()
        answer = ChatResponse(one.chat.complete(ClientRequest(chat_body("Hi", stream=True), caller=ME)))
        answering = asyncio.create_task(answer({DISCONNECTION: departure}, receive, send))
        await sending.wait()
        departure.notify()
        await answering
        await one.upstream.gone.wait()


@pytest.mark.requirement("chat:stream-resume")
async def test_a_reply_that_would_survive_ends_with_the_server_also_when_it_has_not_begun(tmp_path: Path) -> None:
    async with gateway(tmp_path, [HANGS]) as one, asyncio.timeout(60):
        asking = asyncio.create_task(
            one.chat.complete(ClientRequest(chat_body("Hi", stream=True), caller=ME, headers={"x-toolyard-chat": "c"}))
        )
        while one.chat._logs.get(ME, "c") is None:
            await run_loop_once()  # not a step longer
        await one.chat.close()  # its task is there, and has not had its first step
        run = await asking
        assert run.pieces is not None
        assert [piece async for piece in run.pieces] == []
        assert state(one, "c") != "running"


@pytest.mark.requirement("chat:stream-resume")
@pytest.mark.parametrize("status", [200, 400])
async def test_a_reply_survives_a_client_that_leaves_before_the_model_has_said_a_word(
    tmp_path: Path, status: int
) -> None:
    begins = asyncio.Event()
    async with gateway(tmp_path, [Script(streamed("Hi."), status=status, begins=begins)]) as one, asyncio.timeout(60):
        body = chat_body("Hi", stream=True)
        asking = asyncio.create_task(
            one.chat.complete(
                ClientRequest(body, caller=ME, headers={"x-toolyard-chat": "c"}, raw=json.dumps(body).encode())
            )
        )
        await wait_until(lambda: one.upstream.bodies)
        asking.cancel()
        await asyncio.wait({asking})
        again = asyncio.create_task(
            one.chat.complete(
                ClientRequest(body, caller=ME, headers={"x-toolyard-chat": "c"}, raw=json.dumps(body).encode())
            )
        )
        await wait_until(lambda: (log := one.chat._logs.get(ME, "c")) is not None and log.state is State.READ)
        following = one.chat.follow("c", 0, ME)
        begins.set()
        assert following is not None
        heard = StreamedAnswer.from_bytes(b"".join([piece async for piece in following]))
        assert (heard.text, len(heard.errors)) == (("Hi.", 0) if status == 200 else ("", 1))
        joined = await again
        assert joined.status == status
        assert len(one.upstream.bodies) == 1
        assert state(one, "c") == ("done" if status == 200 else "failed")


@pytest.mark.requirement("chat:stream-resume")
async def test_what_a_call_adds_to_a_turn_that_has_ended_does_not_upset_what_may_be_kept(tmp_path: Path) -> None:
    async with gateway(tmp_path, replies("Hi.")) as one:
        logs = one.chat._logs
        for _ in range(3):
            await one.chat.complete(ClientRequest(chat_body("Hi"), caller=ME, headers={"x-toolyard-chat": "c"}))
            log = logs.get(ME, "c")
            assert log is not None
            assert logs._ended_size == logs._ended[log.chat]
            log.record.add_work("Say", "success", "late")


@pytest.mark.requirement("chat:upstream")
async def test_a_provider_that_is_closed_is_asked_nothing_any_more() -> None:
    async with provider([Script(late_s=600)]) as model, asyncio.timeout(60):
        upstream = HttpUpstream("model", model.url, None, QUICK)
        asking = asyncio.create_task(upstream.ask(BODY, stream=True, retry=True))
        await wait_until(lambda: model.bodies)
        await upstream.close()
        for asks in (asking, upstream.ask(BODY, stream=True, retry=True), upstream.models()):
            with pytest.raises(ChatFailed, match="cannot be reached"):
                await asks
        assert len(model.bodies) == 1


@pytest.mark.requirement("chat:upstream")
async def test_a_provider_that_was_just_replaced_is_closed_with_the_chat(tmp_path: Path) -> None:
    async with gateway(tmp_path, replies("Hi.")) as one, asyncio.timeout(60):
        await one.complete()
        before, _ = one.chat.upstreams.pick("m")
        one.chat.change_upstreams(Upstreams(Tour(lambda: pytest.fail("nobody asks for the time")), {}))
        await one.chat.close()
        with pytest.raises(ChatFailed, match="closed"):
            await before.ask(BODY, stream=True, retry=True)


@pytest.mark.requirement("chat:upstream")
async def test_those_who_wait_for_their_turn_are_told_when_the_provider_is_closed() -> None:
    async with provider([says("Hi."), Script(late_s=600)]) as model, asyncio.timeout(60):
        upstream = HttpUpstream("model", model.url, None, QUICK)
        (await upstream.ask(BODY, stream=True, retry=False)).close()
        asks = [asyncio.create_task(upstream.ask(BODY, stream=True, retry=True)) for _ in range(AT_ONCE + 8)]
        await run_loop_once()
        await upstream.close()
        assert {type(one) for one in await asyncio.gather(*asks, return_exceptions=True)} == {ChatFailed}


@pytest.mark.requirement("chat:stream-resume")
@pytest.mark.parametrize("ends", ["close", "bug"])
async def test_a_surviving_turn_that_never_begins_is_told_as_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    opening, go = asyncio.Event(), asyncio.Event()

    async def opens(_: Turn) -> None:
        opening.set()
        await go.wait()
        raise RuntimeError("a bug")

    monkeypatch.setattr(Turn, "open", opens)
    async with gateway(tmp_path, [HANGS]) as one, asyncio.timeout(60):
        asking = asyncio.create_task(
            one.chat.complete(ClientRequest(chat_body("Hi", stream=True), caller=ME, headers={"x-toolyard-chat": "c"}))
        )
        await opening.wait()
        asking.cancel()
        await asyncio.wait({asking})
        if ends == "bug":
            go.set()
            await wait_until(lambda: state(one, "c") != "running")
        else:
            await one.chat.close()
        assert state(one, "c") == "failed"
