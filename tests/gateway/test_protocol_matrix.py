"""Every scenario of the gateway, with each protocol of a client in front of each protocol of a provider."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiohttp
import pytest

from tests.fakes import FakeTool
from tests.gateway.client_protocols import CALLS, LENGTH, PATHS, REFUSED, STOPPED, ask, body_of, results_of
from tests.gateway.native_providers import PROTOCOLS, Protocol, Reply, ToolUse, events, scripted, to_script, using
from tests.gateway.serving import ME, Gateway, gateway, request
from tests.sampling import SOAK
from tests.waiting import wait_for_value, wait_until
from toolyard.gateway.turns.turn_log import State
from toolyard.protocol.content import Media
from toolyard.protocol.envelope import Extras
from toolyard.protocol.tool import Checkpoint, Result, ToolCall

SAY = ToolUse("Say", {"text": "hello"})
DONE = Reply(text="Done.")
PICTURE = Media("image/png", b"\x89PNG\r\n\x1a\n" + b"x" * 50, "chart.png")
OURS = {"x-toolyard-offer": "native"}  # asks for our tools beside those of the client


def combined(number: int, *, forms: bool = True) -> pytest.MarkDecorator:
    """The protocols of client and provider, and with ``forms`` streamed and whole; three of them outside a soak.

    ``number``: another one leaves out others, so that all tests together leave out none.
    """
    cases = []
    for row, client in enumerate(PROTOCOLS):
        for column, provider in enumerate(PROTOCOLS):
            is_sampled = (row + column + number) % 3 == 0
            streams = [(row + number) % 2 == 0] if is_sampled and not SOAK else [True, False]
            for stream in (streams if forms else [True]) if SOAK or is_sampled else ():
                form = f"-{'streamed' if stream else 'whole'}" if forms else ""
                values = (client, provider, stream) if forms else (client, provider)
                cases.append(pytest.param(*values, id=f"{client}-{provider}{form}"))
    return pytest.mark.parametrize(("client", "provider", *(["stream"] if forms else [])), cases)


@asynccontextmanager
async def between(place: Path, provider: Protocol, *replies: Reply) -> AsyncIterator[Gateway]:
    """A gateway in front of a provider that gives these replies."""
    async with (
        gateway(place, scripted(provider, *replies), settings=using(provider), served=True) as one,
        asyncio.timeout(60),
    ):
        yield one


def tool_names(body: Mapping[str, Any]) -> list[str]:
    """The tools that a provider was offered."""
    return [tool.get("function", tool)["name"] for tool in body.get("tools", [])]


def asked_of(one: Gateway) -> str:
    """The newest request to the provider."""
    return json.dumps(one.upstream.bodies[-1], ensure_ascii=False)


@pytest.mark.requirement("protocols:matrix")
@combined(1)
async def test_a_tool_is_offered_and_runs_once_and_the_usage_is_that_of_all_rounds(
    tmp_path: Path, client: Protocol, provider: Protocol, stream: bool
) -> None:
    async with between(tmp_path, provider, Reply(text="I look.", calls=(SAY,)), DONE) as one:
        heard = await ask(one, client, stream=stream)
        assert "Say" in tool_names(one.upstream.bodies[0])
        assert (heard.text.startswith("I look."), heard.text.endswith("Done.")) == (True, True)
        assert heard.ours == (["Say"] if client == "responses" else [])
        assert ("> ✓ Say: Said it." in heard.text) == (client != "responses")
        assert (heard.finish, heard.calls, len(one.ran)) == (STOPPED, [], 1)
        assert (heard.sent, heard.answered) == (22, 14)
        assert "Said it." in asked_of(one)


@pytest.mark.requirement("protocols:matrix")
@combined(2, forms=False)
async def test_parallel_calls_run_together_and_each_result_reaches_the_model(
    tmp_path: Path, client: Protocol, provider: Protocol
) -> None:
    both = (ToolUse("Say", {"text": "a"}, id="call_1"), ToolUse("Say", {"text": "b"}, id="call_2"))
    async with between(tmp_path, provider, Reply(calls=both), DONE) as one:
        heard = await ask(one, client, stream=True)
        assert sorted(str(call.arguments["text"]) for call in one.ran) == ["a", "b"]
        assert heard.text.endswith("Done.")
        assert asked_of(one).count("Said it.") == 2


@pytest.mark.requirement("protocols:matrix")
@combined(3)
async def test_a_call_of_the_clients_own_tool_is_handed_over(
    tmp_path: Path, client: Protocol, provider: Protocol, stream: bool
) -> None:
    call = ToolUse("weather", {"city": "Bern"})
    async with between(tmp_path, provider, Reply(text="I look.", calls=(call,))) as one:
        heard = await ask(one, client, stream=stream, tool="weather")
        assert tool_names(one.upstream.bodies[0]) == ["weather"], (
            "a client with tools of its own gets ours when it asks"
        )
        assert (heard.text, heard.calls, heard.finish) == ("I look.", [("weather", {"city": "Bern"})], CALLS)
        assert len(one.upstream.bodies) == 1


@pytest.mark.requirement("protocols:matrix")
@combined(21)
async def test_parallel_calls_of_the_clients_tools_come_whole_and_their_results_go_back(
    tmp_path: Path, client: Protocol, provider: Protocol, stream: bool
) -> None:
    cities = ({"city": "Bern"}, {"city": "Basel on the Rhine"})
    both = tuple(ToolUse("weather", city, id=f"call_{at}") for at, city in enumerate(cities))
    async with between(tmp_path, provider, Reply(calls=both, size=3), DONE) as one:
        heard = await ask(one, client, stream=stream, tool="weather")
        assert (heard.calls, heard.finish) == ([("weather", city) for city in cities], CALLS)
        said = results_of(client, heard, "Rain is likely.")
        again = await ask(one, client, "And?", stream=stream, tool="weather", said=said)
        assert again.text == "Done."
        assert asked_of(one).count("Rain is likely.") == 2
        assert "Basel on the Rhine" in asked_of(one)


@pytest.mark.requirement("protocols:matrix")
@combined(22)
async def test_what_our_tool_said_reaches_the_model_again_with_the_next_question(
    tmp_path: Path, client: Protocol, provider: Protocol, stream: bool
) -> None:
    async with between(tmp_path, provider, Reply(text="I look.", calls=(SAY,)), DONE) as one:
        heard = await ask(one, client, stream=stream)
        said = [{"role": "user", "content": "Hi."}, *heard.said]
        await ask(one, client, "And now?", stream=stream, said=said)
        assert asked_of(one).count("Said it.") == 1
        assert "✓" not in asked_of(one), "the model does not read the line for people"


@pytest.mark.requirement("protocols:matrix")
@combined(4, forms=False)
async def test_our_tool_runs_beside_the_clients_own(tmp_path: Path, client: Protocol, provider: Protocol) -> None:
    theirs = Reply(calls=(ToolUse("weather", {"city": "Bern"}, id="call_9"),))
    async with between(tmp_path, provider, Reply(calls=(SAY,)), theirs) as one:
        heard = await ask(one, client, stream=True, tool="weather", headers=OURS)
        assert {"weather", "Say"} <= {*tool_names(one.upstream.bodies[0])}
        assert (len(one.ran), heard.calls, heard.finish) == (1, [("weather", {"city": "Bern"})], CALLS)


@pytest.mark.requirement("protocols:matrix")
@pytest.mark.parametrize("is_allowed", [True, False], ids=["allowed", "denied"])
@combined(5)
async def test_a_call_that_changes_something_waits_for_a_person(
    tmp_path: Path, client: Protocol, provider: Protocol, stream: bool, is_allowed: bool
) -> None:
    write = ToolUse("Write", {"path": "a.txt", "content": "x"})
    async with between(tmp_path, provider, Reply(calls=(write,)), DONE) as one:
        asking = asyncio.create_task(ask(one, client, stream=stream))
        waiting = await _find_approval(one)
        assert not (tmp_path / "project/a.txt").exists()
        await one.yard.state.approvals.answer(waiting, allowed=is_allowed, by=ME, reason="not there")
        heard = await asking
        assert heard.text.endswith("Done.")
        assert (tmp_path / "project/a.txt").exists() == is_allowed
        assert ("not there" in asked_of(one)) == (not is_allowed)


async def _find_approval(one: Gateway) -> str:
    approvals = one.yard.state.approvals
    return (await wait_for_value(lambda: approvals.page(("pending",), limit=1)))[0].id


@pytest.mark.requirement("protocols:matrix", "repeat:told")
@combined(23, forms=False)
async def test_an_answer_in_one_piece_says_what_it_waits_for_and_the_same_request_goes_on(
    tmp_path: Path, client: Protocol, provider: Protocol
) -> None:
    write = ToolUse("Write", {"path": "a.txt", "content": "x"})
    async with between(tmp_path, provider, Reply(calls=(write,)), DONE) as one:
        one.chat.rules = replace(one.chat.rules, approval_wait_s=0.05)
        early = await ask(one, client, stream=False)
        waiting = await _find_approval(one)
        assert f"approval allow {waiting}" in early.text
        going_on = asyncio.create_task(ask(one, client, stream=True))
        await one.yard.state.approvals.answer(waiting, allowed=True, by=ME)
        assert (await going_on).text.endswith("Done.")
        assert (tmp_path / "project/a.txt").exists()
        assert len(one.upstream.bodies) == 2


@pytest.mark.requirement("protocols:matrix")
@combined(6, forms=False)
async def test_a_model_that_asks_for_tools_without_end_is_stopped(
    tmp_path: Path, client: Protocol, provider: Protocol
) -> None:
    async with between(tmp_path, provider, Reply(calls=(SAY,))) as one:
        heard = await ask(one, client, stream=True)
        assert "Toolyard stopped here: the model asked for tools in more than 10 rounds." in heard.text
        assert len(one.ran) == 10


@pytest.mark.requirement("protocols:matrix")
@combined(7)
async def test_a_provider_that_refuses_is_told_in_the_shape_of_the_client(
    tmp_path: Path, client: Protocol, provider: Protocol, stream: bool
) -> None:
    refused = Reply(status=400, error="temperature is out of range", error_type="invalid_request_error")
    async with between(tmp_path, provider, refused) as one:
        heard = await ask(one, client, stream=stream)
        assert heard.error is not None
        assert (heard.status, heard.error["type"]) == (400, "invalid_request_error")
        assert "temperature is out of range" in heard.error["message"]


@pytest.mark.requirement("protocols:matrix")
@pytest.mark.parametrize("status", [401, 429, 500, 529])
@combined(24, forms=False)
async def test_a_provider_that_fails_before_any_tool_is_told_with_its_status(
    tmp_path: Path, client: Protocol, provider: Protocol, status: int
) -> None:
    async with between(tmp_path, provider, Reply(status=status, error="not today")) as one:
        heard = await ask(one, client, stream=True)
        assert heard.error is not None
        assert (heard.status, one.ran) == (502 if status == 401 else status, [])
        assert "not today" in heard.error["message"]
        assert len(one.upstream.bodies) == (1 if status == 401 else 3)


@pytest.mark.requirement("protocols:matrix")
@pytest.mark.parametrize(
    "fault",
    [Reply(status=500, error="down"), Reply(status=429, error="slow down"), Reply(cut_after=0)],
    ids=["500", "429", "cut"],
)
@combined(8)
async def test_two_failures_in_a_later_round_are_survived_and_the_tool_has_run_once(
    tmp_path: Path, client: Protocol, provider: Protocol, stream: bool, fault: Reply
) -> None:
    async with between(tmp_path, provider, Reply(calls=(SAY,)), fault, fault, DONE) as one:
        heard = await ask(one, client, stream=stream)
        assert (heard.status, heard.error, len(one.ran)) == (200, None, 1)
        assert heard.text.endswith("Done.")


@pytest.mark.requirement("protocols:matrix", "repeat:continue")
@combined(9)
async def test_a_provider_that_fails_for_good_after_a_tool_leaves_a_turn_that_the_same_request_continues(
    tmp_path: Path, client: Protocol, provider: Protocol, stream: bool
) -> None:
    down = Reply(status=500, error="down")
    async with between(tmp_path, provider, Reply(calls=(SAY,)), *[down] * 3, DONE) as one:
        heard = await ask(one, client, stream=stream)
        assert heard.error is not None
        assert "without running them again" in heard.error["message"]
        if not stream:
            assert (heard.status, heard.headers.get("x-should-retry")) == (400, "false")
        again = await ask(one, client, stream=not stream)
        assert again.text.endswith("Done.")
        assert len(one.ran) == 1


def _cuts() -> list[tuple[Protocol, Protocol, int]]:
    reply = Reply(text="A short text.", reasoning="I think.", calls=(ToolUse("weather", {"city": "Bern"}),))
    counts = {protocol: len(list(events(reply, protocol))) for protocol in PROTOCOLS}
    return [
        (client, provider, at)
        for row, client in enumerate(PROTOCOLS)
        for provider in PROTOCOLS
        for at in range(1, counts[provider])
        if SOAK or at % 3 == row
    ]


@pytest.mark.requirement("protocols:matrix")
@pytest.mark.parametrize(("client", "provider", "at"), _cuts())
async def test_a_stream_that_is_cut_at_any_event_never_looks_complete(
    tmp_path: Path, client: Protocol, provider: Protocol, at: int
) -> None:
    call = ToolUse("weather", {"city": "Bern"})
    cut = Reply(text="A short text.", reasoning="I think.", calls=(call,), cut_after=at)
    whole = Reply(text="A short text.", reasoning="I think.", calls=(call,))
    async with between(tmp_path, provider, cut, cut, cut, whole) as one:
        heard = await ask(one, client, stream=True, tool="weather")
        if heard.error is None:  # asked again, or only its last words were missing
            assert (heard.text, heard.calls, heard.finish) == ("A short text.", [("weather", {"city": "Bern"})], CALLS)
        else:
            assert heard.finish in ("", REFUSED) or client == "responses"


def _later_cuts() -> list[tuple[Protocol, Protocol, int]]:
    counts = {protocol: len(list(events(Reply(text="All is done."), protocol))) for protocol in PROTOCOLS}
    return [
        (client, provider, at)
        for row, client in enumerate(PROTOCOLS)
        for provider in PROTOCOLS
        for at in range(1, counts[provider])
        if SOAK or at % 4 == row
    ]


@pytest.mark.requirement("protocols:matrix", "repeat:continue")
@pytest.mark.parametrize(("client", "provider", "at"), _later_cuts())
async def test_a_later_round_that_is_cut_at_any_event_repeats_no_tool_however_often_it_is_asked_for(
    tmp_path: Path, client: Protocol, provider: Protocol, at: int
) -> None:
    whole = Reply(text="All is done.")
    cut = replace(whole, cut_after=at)
    async with between(tmp_path, provider, Reply(calls=(SAY,)), cut, cut, cut, whole) as one:
        answers = [await ask(one, client, stream=True)]
        while answers[-1].error is not None and len(answers) < 4:
            answers.append(await ask(one, client, stream=True))
        assert answers[-1].text.endswith("All is done.")
        assert len(one.ran) == 1


@pytest.mark.requirement("protocols:matrix", "repeat:retry")
@combined(10, forms=False)
async def test_a_request_that_is_sent_again_while_its_tool_runs_joins_the_turn(
    tmp_path: Path, client: Protocol, provider: Protocol
) -> None:
    started, release, effects = asyncio.Event(), asyncio.Event(), list[str]()

    async def work(call: ToolCall, checkpoint: Checkpoint) -> Result:
        effects.append(call.id)
        started.set()
        await release.wait()
        return Result(data={}, text="Worked.")

    async with between(tmp_path, provider, Reply(calls=(ToolUse("Work"),)), DONE) as one:
        one.yard.tools.add(FakeTool(work, name="Work"))
        first = asyncio.create_task(ask(one, client, stream=True))
        await started.wait()
        again = asyncio.create_task(ask(one, client, stream=False))
        (log,) = one.chat._logs.running()
        await wait_until(lambda: len(log._readers) == 2)
        release.set()
        texts = [(await heard).text for heard in (first, again)]
        assert texts[0] == texts[1]
        assert texts[0].endswith("Done.")
        assert (len(effects), len(one.upstream.bodies)) == (1, 2)


@pytest.mark.requirement("protocols:matrix", "repeat:continue")
@combined(11, forms=False)
async def test_a_client_that_leaves_while_its_tool_runs_and_comes_back_causes_one_effect(
    tmp_path: Path, client: Protocol, provider: Protocol
) -> None:
    started, effects = asyncio.Event(), list[str]()

    async def work(call: ToolCall, checkpoint: Checkpoint) -> Result:
        effects.append(call.id)
        started.set()
        await asyncio.Event().wait()
        raise AssertionError

    async with between(tmp_path, provider, Reply(calls=(SAY, ToolUse("Work", id="call_2"))), DONE) as one:
        one.yard.tools.add(FakeTool(work, name="Work"))
        async with aiohttp.ClientSession(one.url, headers={"Authorization": "Bearer me"}) as session:
            asking = asyncio.create_task(session.post(PATHS[client], json=body_of(client, "Hi.", stream=True)))
            await started.wait()
            await wait_until(lambda: one.ran)
            (log,) = one.chat._logs.running()
            (await asking).close()
            await wait_until(lambda: log.state is State.FAILED)
        heard = await ask(one, client, stream=False)
        assert heard.text.endswith("Done.")
        assert (len(one.ran), len(effects)) == (1, 1)


MARKS: dict[Protocol, dict[str, str]] = {
    "chat": {"x-stainless-retry-count": "1"},
    "responses": {"x-codex-turn-metadata": '{"turn_id": "t1"}'},
    "messages": {"x-stainless-retry-count": "1"},
}


@pytest.mark.requirement("protocols:matrix", "repeat:retry")
@combined(25)
async def test_after_a_good_end_only_a_request_that_says_it_is_repeated_is_the_same_turn(
    tmp_path: Path, client: Protocol, provider: Protocol, stream: bool
) -> None:
    call = Reply(calls=(SAY,))
    async with between(tmp_path, provider, call, DONE, call, DONE) as one:
        first = MARKS[client] if client == "responses" else {}  # a turn has its name from the beginning
        heard = await ask(one, client, stream=stream, headers=first)
        again = await ask(one, client, stream=not stream, headers=MARKS[client])
        assert (again.text, len(one.ran), len(one.upstream.bodies)) == (heard.text, 1, 2)
        await ask(one, client, stream=stream)
        assert (len(one.ran), len(one.upstream.bodies)) == (2, 4)


@pytest.mark.requirement("protocols:matrix")
@combined(26, forms=False)
async def test_an_answer_whose_client_has_left_is_followed_from_a_cursor(
    tmp_path: Path, client: Protocol, provider: Protocol
) -> None:
    started, release, effects = asyncio.Event(), asyncio.Event(), list[str]()

    async def work(call: ToolCall, checkpoint: Checkpoint) -> Result:
        effects.append(call.id)
        started.set()
        await release.wait()
        return Result(data={}, text="Worked.")

    named = {"X-Toolyard-Chat": "c1"} if client != "responses" else {}
    more = {"background": True} if client == "responses" else {}
    async with between(tmp_path, provider, Reply(calls=(ToolUse("Work"),)), DONE) as one:
        one.yard.tools.add(FakeTool(work, name="Work"))
        async with aiohttp.ClientSession(one.url, headers={"Authorization": "Bearer me"}) as session:
            body = body_of(client, "Hi.", stream=True, more=more)
            asking = asyncio.create_task(session.post(PATHS[client], json=body, headers=named))
            await started.wait()
            got = await asking
            first = await got.content.readuntil(b"\n\n")
            got.close()
            path = "/v1/chats/c1/stream?cursor=1"
            if client == "responses":
                id_ = json.loads(first.split(b"data: ")[1])["response"]["id"]
                path = f"/v1/responses/{id_}?stream=true&starting_after=1"
            following = asyncio.create_task(session.get(path))
            release.set()
            rest = await (await following).read()
        assert b"Done." in rest
        assert len(effects) == 1


@pytest.mark.requirement("protocols:matrix", "http:idempotency")
@combined(12)
async def test_a_request_with_a_key_runs_once_and_its_repeat_gets_the_same_bytes(
    tmp_path: Path, client: Protocol, provider: Protocol, stream: bool
) -> None:
    key = {"Idempotency-Key": uuid4().hex}
    async with between(tmp_path, provider, Reply(calls=(SAY,)), DONE) as one:
        first, again = [await ask(one, client, stream=stream, headers=key) for _ in range(2)]
        assert first.raw == again.raw
        assert (len(one.ran), again.headers.get("idempotency-replayed")) == (1, "true")


@pytest.mark.requirement("protocols:matrix")
@combined(13, forms=False)
async def test_a_picture_of_a_tool_reaches_the_model(tmp_path: Path, client: Protocol, provider: Protocol) -> None:
    async def draw(call: ToolCall, checkpoint: Checkpoint) -> Result:
        return Result(data={}, text="Drawn.", extras=Extras(parts=(PICTURE,)))

    async with between(tmp_path, provider, Reply(calls=(ToolUse("Draw"),)), DONE) as one:
        one.yard.tools.add(FakeTool(draw, name="Draw"))
        heard = await ask(one, client, stream=True)
        assert heard.text.endswith("Done.")
        assert PICTURE.base64() in asked_of(one)


@pytest.mark.requirement("protocols:matrix")
@combined(27, forms=False)
async def test_a_picture_of_the_user_reaches_the_model(tmp_path: Path, client: Protocol, provider: Protocol) -> None:
    async with between(tmp_path, provider, DONE) as one:
        heard = await ask(one, client, "What is it?", stream=True, picture=PICTURE.base64())
        assert heard.text == "Done."
        assert (PICTURE.base64() in asked_of(one), "What is it?" in asked_of(one)) == (True, True)


@pytest.mark.requirement("protocols:matrix")
@combined(14)
async def test_a_refusal_of_the_model_is_told_as_one(
    tmp_path: Path, client: Protocol, provider: Protocol, stream: bool
) -> None:
    async with between(tmp_path, provider, Reply(refusal="I must not.", cut_for="content_filter")) as one:
        heard = await ask(one, client, stream=stream)
        assert heard.finish == REFUSED
        assert "I must not." in heard.text + heard.refusal or provider == "messages"


@pytest.mark.requirement("protocols:matrix")
@combined(15)
async def test_an_answer_that_was_cut_for_its_length_is_told_as_such(
    tmp_path: Path, client: Protocol, provider: Protocol, stream: bool
) -> None:
    async with between(tmp_path, provider, Reply(text="And then", cut_for="length")) as one:
        heard = await ask(one, client, stream=stream)
        assert (heard.text, heard.finish) == ("And then", LENGTH)


@pytest.mark.requirement("protocols:matrix")
@combined(16)
async def test_a_request_for_json_reaches_the_provider_as_one_and_is_offered_no_tools(
    tmp_path: Path, client: Protocol, provider: Protocol, stream: bool
) -> None:
    async with between(tmp_path, provider, Reply(text='{"answer": "42"}')) as one:
        heard = await ask(one, client, stream=stream, json=True)
        assert json.loads(heard.text) == {"answer": "42"}
        body = one.upstream.bodies[0]
        found: dict[Protocol, Callable[[], Any]] = {
            "chat": lambda: body["response_format"]["json_schema"]["schema"],
            "responses": lambda: body["text"]["format"]["schema"],
            "messages": lambda: body["output_config"]["format"]["schema"],
        }
        assert found[provider]()["required"] == ["answer"]
        assert tool_names(body) == []


@pytest.mark.requirement("protocols:matrix")
@combined(17)
async def test_reasoning_is_shown_and_its_tokens_and_cached_ones_are_counted(
    tmp_path: Path, client: Protocol, provider: Protocol, stream: bool
) -> None:
    thought = Reply(text="42.", reasoning="Six times seven.", cached=5)
    async with between(tmp_path, provider, thought) as one:
        heard = await ask(one, client, stream=stream)
        assert (heard.text, heard.reasoning) == ("42.", "Six times seven.")
        assert (heard.sent, heard.cached, heard.answered, heard.thought) == (11, 5, 7, 3)


@pytest.mark.requirement("protocols:matrix")
@combined(20)
async def test_a_page_that_the_model_cites_is_cited_to_the_client(
    tmp_path: Path, client: Protocol, provider: Protocol, stream: bool
) -> None:
    async with between(tmp_path, provider, Reply(text="It is so.", cited="https://example.org/a")) as one:
        heard = await ask(one, client, stream=stream)
        assert (heard.text, heard.cited) == ("It is so.", ["https://example.org/a"])


@pytest.mark.requirement("protocols:matrix")
@pytest.mark.parametrize(("alias", "offers"), [("+plain", False), ("+tools", True)])
@combined(18, forms=False)
async def test_the_aliases_of_a_model_decide_about_the_offer(
    tmp_path: Path, client: Protocol, provider: Protocol, alias: str, offers: bool
) -> None:
    async with between(tmp_path, provider, DONE) as one:
        passed = client == provider and not offers
        heard = await ask(one, client, stream=True, tool="weather", model=f"scripted{alias}", passed=passed)
        assert heard.text == "Done."
        body = one.upstream.bodies[-1] if one.upstream.bodies else one.upstream.calls[-1].fields
        assert body["model"] == "scripted"
        assert ("Say" in tool_names(body)) == offers


@pytest.mark.requirement("protocols:matrix")
@combined(28)
async def test_tools_that_are_offered_as_text_run(
    tmp_path: Path, client: Protocol, provider: Protocol, stream: bool
) -> None:
    async with between(tmp_path, provider, Reply(text=f"I look.\n{request(text='hello')}\n"), DONE) as one:
        heard = await ask(one, client, stream=stream, headers={"X-Toolyard-Offer": "text"})
        first = one.upstream.bodies[0]
        assert (tool_names(first), "Say" in json.dumps(first)) == ([], True)
        assert ("TOOL_REQUEST" in heard.text, heard.text.endswith("Done."), len(one.ran)) == (False, True, 1)
        assert "Said it." in asked_of(one)


@pytest.mark.requirement("protocols:matrix")
@combined(29)
async def test_without_tools_bytes_pass_unchanged_where_both_sides_speak_the_same_protocol(
    tmp_path: Path, client: Protocol, provider: Protocol, stream: bool
) -> None:
    reply = Reply(text="Hello, you.", reasoning="Hm.")
    async with between(tmp_path, provider, reply) as one:
        passed, off = client == provider, {"X-Toolyard-Offer": "none"}
        heard = await ask(one, client, stream=stream, headers=off, passed=passed)
        assert (heard.text, heard.reasoning) == ("Hello, you.", "Hm.")
        assert "tools" not in one.upstream.bodies[0]
        if passed:
            assert heard.raw == b"".join(to_script(reply, provider, stream=stream).pieces)
            assert json.loads(one.upstream.raw[0]) == body_of(client, "Hi.", stream=stream)
