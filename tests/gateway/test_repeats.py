"""No effect happens twice: failures after tools have run, and clients that send the same request again."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import openai
import pytest

from tests.fakes import Endless, FakeTool
from tests.gateway.serving import ME, Gateway, StreamedAnswer, chat_body, gateway, request
from tests.gateway.test_chats import make_log
from tests.gateway.upstream import DONE, Script, chunk, completion, replies, says, streamed
from tests.programs import find_program
from tests.waiting import run_loop_once, wait_until
from toolyard.gateway.chat_request import ClientRequest
from toolyard.gateway.turns.rendering import ClientAnswer
from toolyard.gateway.turns.turn_log import State
from toolyard.protocol.json import JsonObject
from toolyard.protocol.tool import Checkpoint, Result, ToolCall

BLOCK = request(text="hello")
RETRY = {"x-stainless-retry-count": "1"}
BROKEN = {
    "429": Script([b"{}"], status=429, kind="application/json"),
    "500": Script([b"{}"], status=500, kind="application/json"),
    "503": Script([b"{}"], status=503, kind="application/json"),
    "closed": Script([b"data: "], then="cut"),
}
WEATHER: list[JsonObject] = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
OFFERED = {"offer": "native"}  # also to a request with tools of its own


async def send(one: Gateway, body: JsonObject, headers: Mapping[str, str] = {}) -> ClientAnswer:
    return await one.chat.complete(ClientRequest(body, caller=ME, raw=json.dumps(body).encode(), headers=headers))


def content(run: ClientAnswer) -> str:
    return content_of(run.body)


def content_of(body: bytes) -> str:
    return str(json.loads(body)["choices"][0]["message"]["content"])


@pytest.mark.requirement("r:R72")
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("fault", BROKEN)
async def test_a_later_round_that_fails_is_asked_again_and_its_tool_has_run_once(
    tmp_path: Path, fault: str, times: int, stream: bool
) -> None:
    scripts = [says(BLOCK, stream=stream), *[BROKEN[fault]] * times, says("Done.", stream=stream)]
    async with gateway(tmp_path, scripts, served=True) as one:
        async with openai.AsyncOpenAI(base_url=f"{one.url}/v1", api_key="me") as client:  # it repeats by itself
            text = await _ask(client, stream=stream)
        assert (text, len(one.ran)) == ("> ✓ Say: Said it.\n\nDone.", 1)


@pytest.mark.requirement("r:R72", "r:R74b")
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("fault", BROKEN)
async def test_a_later_round_that_fails_for_good_tells_the_client_that_tools_have_run(
    tmp_path: Path, fault: str, stream: bool
) -> None:
    async with gateway(tmp_path, [says(BLOCK, stream=stream), BROKEN[fault]], served=True) as one:
        async with openai.AsyncOpenAI(base_url=f"{one.url}/v1", api_key="me") as client:
            with pytest.raises(openai.APIError, match="goes on from there without running them again") as caught:
                await _ask(client, stream=stream)
        assert (caught.value.code, len(one.ran)) == ("tools_have_run", 1)
        assert not re.search(
            r"\d{3}|overload|unavailable|temporar|timeout|rate|retry|try again", str(caught.value.body)
        )
        if isinstance(caught.value, openai.APIStatusError):
            assert caught.value.status_code == 400
            assert caught.value.response.headers["x-should-retry"] == "false"


async def _ask(client: openai.AsyncOpenAI, *, stream: bool) -> str:
    messages: Any = [{"role": "user", "content": "Hi."}]
    if not stream:
        answer = await client.chat.completions.create(model="m", messages=messages)
        return str(answer.choices[0].message.content)
    pieces = await client.chat.completions.create(model="m", messages=messages, stream=True)
    return "".join([piece.choices[0].delta.content or "" async for piece in pieces if piece.choices])


@pytest.mark.requirement("r:R72")
async def test_a_bug_after_a_tool_has_run_is_no_answer_that_clients_repeat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with gateway(tmp_path, replies(BLOCK, "Done.")) as one:

        def broken(*_: object) -> list[JsonObject]:
            raise ZeroDivisionError

        monkeypatch.setattr("toolyard.gateway.turns.tool_work.build_round_messages", broken)
        run = await send(one, chat_body("Hi."))
        error = json.loads(run.body)["error"]
        assert (run.status, error["code"], run.headers["x-should-retry"]) == (400, "tools_have_run", "false")
        assert error["message"].startswith("The answer could not be completed")


@pytest.mark.requirement("r:R72")
async def test_a_round_is_not_asked_again_once_something_of_it_was_sent(tmp_path: Path) -> None:
    async with gateway(tmp_path, [Script(streamed("Hello, world.")[:3], then="cut"), says("No.")]) as one:
        heard = await one.stream()
        assert ([error["code"] for error in heard.errors], len(one.upstream.bodies)) == (["upstream_cut_off"], 1)


@pytest.mark.requirement("r:R70")
async def test_text_before_an_error_event_in_the_same_read_is_delivered_before_the_error(tmp_path: Path) -> None:
    error = b'data: {"error": {"message": "overloaded"}}\n\n'
    read = b"".join([*streamed("All of this was said. <<")[:-2], error])
    async with gateway(tmp_path, [Script([read])]) as one:
        heard = await one.stream()
        assert heard.text == "All of this was said. <<"
        assert [error["message"] for error in heard.errors] == ["overloaded"]
        message = "The model provider 'upstream' sent an error: overloaded"
        assert heard.events[-1]["error"].pop("toolyard")["message"] == message
        assert heard.events[-1] == {"error": {"message": "overloaded", "code": "upstream_error"}}


@pytest.mark.requirement("repeat:retry")
async def test_an_sdk_that_times_out_and_asks_again_joins_the_first_turn(tmp_path: Path) -> None:
    started, release, effects = asyncio.Event(), asyncio.Event(), list[str]()

    async def work(call: ToolCall, checkpoint: Checkpoint) -> Result:
        effects.append(call.id)
        started.set()
        await release.wait()
        return Result(data={}, text="Worked.")

    async with gateway(tmp_path, replies(request("Work"), "Done."), served=True) as one, asyncio.timeout(60):
        one.yard.tools.add(FakeTool(work, name="Work"))
        async with openai.AsyncOpenAI(base_url=f"{one.url}/v1", api_key="me", timeout=1.5, max_retries=2) as client:
            asking = asyncio.create_task(_ask(client, stream=False))
            await started.wait()
            (log,) = one.chat._logs.running()
            await wait_until(lambda: log.state is State.UNREAD)  # it has timed out,
            await wait_until(lambda: log.state is State.READ)  # and come back
            release.set()
            assert (await asking, len(effects), len(one.upstream.bodies)) == ("> ✓ Work: Worked.\n\nDone.", 1, 2)


@pytest.mark.requirement("repeat:form")
@pytest.mark.parametrize("stream", [True, False])
async def test_a_client_that_asks_again_in_another_form_while_a_tool_runs_reads_the_same_turn(
    tmp_path: Path, stream: bool
) -> None:
    started, release, effects = asyncio.Event(), asyncio.Event(), list[str]()

    async def work(call: ToolCall, checkpoint: Checkpoint) -> Result:
        effects.append(call.id)
        started.set()
        await release.wait()
        return Result(data={}, text="Worked.")

    replied = [says(request("Work"), stream=stream), says("Done.", stream=stream)]
    async with gateway(tmp_path, replied) as one, asyncio.timeout(60):
        one.yard.tools.add(FakeTool(work, name="Work"))
        first, again = chat_body("Hi.", stream=stream, seed=1), chat_body("Hi.", stream=not stream, seed=1)
        answers = [asyncio.create_task(_hear(one, first))]
        await started.wait()
        answers.append(asyncio.create_task(_hear(one, dict(reversed(again.items())))))
        (log,) = one.chat._logs.running()
        await wait_until(lambda: len(log._readers) == 2)
        release.set()
        texts = [await answer for answer in answers]
        assert texts == ["> ✓ Work: Worked.\n\nDone."] * 2
        assert (len(effects), len(one.upstream.bodies)) == (1, 2)


async def _hear(one: Gateway, body: JsonObject) -> str:
    run = await send(one, body)
    return (
        content(run) if run.pieces is None else _read_text(b"".join([piece async for piece in run.pieces]), stream=True)
    )


@pytest.mark.requirement("repeat:form")
@pytest.mark.parametrize("stream", [True, False])
async def test_a_retry_in_another_form_gets_the_finish_reason_the_usage_and_the_calls_of_the_client(
    tmp_path: Path, stream: bool
) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    if stream:
        last = Script([chunk({"tool_calls": [{"index": 0, **call}]}), chunk({}, "tool_calls", usage=usage), DONE])
    else:
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        last = Script([completion(message, "tool_calls", usage=usage)], kind="application/json")
    async with gateway(tmp_path, [says(BLOCK, stream=stream), last]) as one:
        body = chat_body("Hi.", stream=stream, tools=WEATHER, toolyard=OFFERED)
        await _drain(await send(one, body))
        again = await send(one, body | {"stream": not stream}, RETRY)
        if again.pieces is None:
            answer = json.loads(again.body)
            choice, spent = answer["choices"][0], answer["usage"]
            calls, finish = choice["message"]["tool_calls"], choice["finish_reason"]
        else:
            heard = StreamedAnswer.from_bytes(b"".join([piece async for piece in again.pieces]))
            deltas = [choice["delta"] for event in heard.events for choice in event["choices"]]
            calls = [
                {k: v for k, v in one.items() if k != "index"} for d in deltas for one in d.get("tool_calls") or []
            ]
            (finish,), spent = heard.finishes, next(e["usage"] for e in heard.events if e.get("usage"))
        assert (calls, finish, spent["completion_tokens"]) == ([call], "tool_calls", 4)
        assert (len(one.ran), len(one.upstream.bodies)) == (1, 2)


async def _drain(run: ClientAnswer) -> None:
    if run.pieces is not None:
        _ = [piece async for piece in run.pieces]


@pytest.mark.requirement("repeat:retry")
async def test_a_retry_gets_the_answer_of_a_turn_that_has_ended_and_another_request_does_not(tmp_path: Path) -> None:
    async with gateway(tmp_path, replies(BLOCK, "One.", BLOCK, "Two.", BLOCK, "Three.")) as one:
        first = await send(one, chat_body("Hi."))
        assert (await send(one, chat_body("Hi."), RETRY)).body == first.body
        assert (len(one.ran), len(one.upstream.bodies)) == (1, 2)
        assert content(await send(one, chat_body("Hi."))).endswith("Two.")  # a person asks again: that is another turn
        assert content(await send(one, chat_body("Hi!"), RETRY)).endswith("Three.")


@pytest.mark.requirement("repeat:retry", "r:R76")
@pytest.mark.parametrize("headers", [{}, RETRY], ids=["unmarked", "marked"])
@pytest.mark.parametrize("stream", [True, False])
async def test_a_client_that_leaves_ends_its_turn_and_the_same_request_continues_it(
    tmp_path: Path, stream: bool, headers: Mapping[str, str]
) -> None:
    endless = Endless()
    block = f"I begin.\n{BLOCK}\n{request('Endless')}\n"
    async with gateway(tmp_path, replies(block, "So be it."), served=True) as one, asyncio.timeout(60):
        one.yard.tools.add(FakeTool(endless, name="Endless"))
        body = chat_body("Hi.", stream=stream)
        async with aiohttp.ClientSession(one.url, headers={"Authorization": "Bearer me"}) as client:
            asking = asyncio.create_task(client.post("/v1/chat/completions", json=body))
            await endless.started.wait()
            await wait_until(lambda: one.ran)
            (log,) = one.chat._logs.running()
            asking.cancel()
            if stream:
                (await asking).close()
            await endless.stopped.wait()
            endless.started.clear()
            async with client.post("/v1/chat/completions", json=body, headers=headers) as again:
                text = _read_text(await again.read(), stream=stream)
        assert text.startswith("I begin.")
        assert text.endswith("So be it.")
        assert "✓ Say: Said it." in text
        assert "✗ Endless: " in text
        assert (len(one.ran), endless.started.is_set(), len(one.upstream.bodies)) == (1, False, 2)
        assert log.state is State.FAILED


def _read_text(raw: bytes, *, stream: bool) -> str:
    return StreamedAnswer.from_bytes(raw).text if stream else content_of(raw)


@pytest.mark.requirement("repeat:continue")
@pytest.mark.parametrize("native", [True, False], ids=["native", "text"])
@pytest.mark.parametrize("stream", [True, False])
async def test_a_turn_that_failed_after_its_tools_is_continued_by_the_same_request_without_running_them_again(
    tmp_path: Path, stream: bool, native: bool
) -> None:
    calls = [{"id": "n1", "type": "function", "function": {"name": "Say", "arguments": '{"text": "hello"}'}}]
    message = {"role": "assistant", "content": "I say it.", "tool_calls": calls}
    indexed = [{"index": 0, **calls[0]}]
    first = says(f"I say it.\n{BLOCK}\n", stream=stream)
    if native and stream:
        first = Script([chunk({"content": "I say it.", "tool_calls": indexed}), chunk({}, "tool_calls"), DONE])
    elif native:
        first = Script([completion(message, "tool_calls")], kind="application/json")
    more: dict[str, Any] = {"toolyard": OFFERED} if native else {}
    async with gateway(tmp_path, [first, *[BROKEN["503"]] * 6, says("Done.", stream=stream)]) as one:
        body = chat_body("Hi.", stream=stream, **more)
        for _ in range(2):  # the provider is still down when it is sent again
            failed = await send(one, body)
            raw = b"".join([piece async for piece in failed.pieces]) if failed.pieces else failed.body
            assert b"tools_have_run" in raw
        run = await send(one, body)
        raw = b"".join([piece async for piece in run.pieces]) if run.pieces else run.body
        text = _read_text(raw, stream=stream)
        assert (text.startswith("I say it."), text.endswith("> ✓ Say: Said it.\n\nDone.")) == (True, True)
        assert (len(one.ran), len(one.upstream.bodies)) == (1, 8)
        assert "Said it." in json.dumps(one.upstream.bodies[-1]["messages"][-1])
        fresh = await send(one, body)  # that turn has ended well: the same wish again is another turn
        async for _ in fresh.pieces or _nothing():
            pass
        assert len(one.upstream.bodies) == 9


async def _nothing() -> AsyncIterator[bytes]:
    for piece in list[bytes]():
        yield piece


@pytest.mark.requirement("repeat:continue")
@pytest.mark.parametrize("how", ["--fail", "--max-time"])
async def test_curl_that_repeats_by_itself_has_no_effect_twice(tmp_path: Path, how: str) -> None:
    """By any error, or because it gave up while the tool ran."""
    slow = how == "--max-time"
    answers = [says(f"I say it.\n{BLOCK}\n", stream=False)]
    answers += [Script(late_s=600)] if slow else [BROKEN["500"]] * 3
    words = ["--max-time", "2"] if slow else ["--fail"]
    async with gateway(tmp_path, [*answers, says("Done.", stream=False)], served=True) as one, asyncio.timeout(120):
        command = [
            find_program("curl"), "--silent", *words, "--retry", "3", "--retry-all-errors", "--retry-delay", "1",
            "-H", "Authorization: Bearer me", "--json", json.dumps(chat_body("Hi.")),
            f"{one.url}/v1/chat/completions",
        ]  # fmt: skip
        curl = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        out, _ = await curl.communicate()
        assert content_of(out).endswith("> ✓ Say: Said it.\n\nDone.")
        assert len(one.ran) == 1


@pytest.mark.requirement("repeat:continue")
async def test_a_turn_that_failed_before_any_tool_simply_runs_again(tmp_path: Path) -> None:
    broken = Script([b"{}"], status=400, kind="application/json")
    async with gateway(tmp_path, [broken, says(BLOCK, stream=False), says("Done.", stream=False)]) as one:
        assert (await send(one, chat_body("Hi."))).status == 400
        assert content(await send(one, chat_body("Hi."))).endswith("Done.")
        assert (len(one.ran), len(one.upstream.bodies)) == (1, 3)


@pytest.mark.requirement("repeat:continue")
async def test_several_repetitions_of_a_failed_turn_at_once_continue_it_together(tmp_path: Path) -> None:
    first = says(BLOCK, stream=False)
    async with gateway(tmp_path, [first, *[BROKEN["500"]] * 3, says("Done.", stream=False)]) as one:
        assert (await send(one, chat_body("Hi."))).status == 400
        answers = await asyncio.gather(*(send(one, chat_body("Hi.")) for _ in range(3)))
        assert {content(run) for run in answers} == {"> ✓ Say: Said it.\n\nDone."}
        assert (len(one.ran), len(one.upstream.bodies)) == (1, 5)


@pytest.mark.requirement("repeat:continue")
async def test_a_marked_retry_after_a_stream_that_ended_gets_the_same_bytes(tmp_path: Path) -> None:
    async with gateway(tmp_path, replies(BLOCK, "Done.", BLOCK, "Again.")) as one:
        body = chat_body("Hi.", stream=True)
        answers = []
        for headers in ({}, RETRY, {}):
            run = await send(one, body, headers)
            assert run.pieces is not None
            answers.append(b"".join([piece async for piece in run.pieces]))
        assert answers[0] == answers[1]
        assert StreamedAnswer.from_bytes(answers[2]).text.endswith("Again.")
        assert len(one.ran) == 2


@pytest.mark.requirement("repeat:continue")
async def test_what_a_person_stopped_is_not_continued(tmp_path: Path) -> None:
    endless = Endless()
    async with gateway(tmp_path, replies(request("Endless"), BLOCK, "Done.")) as one, asyncio.timeout(60):
        one.yard.tools.add(FakeTool(endless, name="Endless"))
        body = chat_body("Hi.", requestId="r")
        asking = asyncio.create_task(send(one, body))
        await endless.started.wait()
        assert one.chat.interrupt(caller=ME, request_id="r")
        await asking
        assert content(await send(one, body)).endswith("Done.")


@pytest.mark.requirement("repeat:continue")
async def test_two_clients_with_the_same_wish_at_the_same_time_have_two_turns(tmp_path: Path) -> None:
    async with gateway(tmp_path, replies(BLOCK, BLOCK, "One.", "Two.")) as one:
        answers = await asyncio.gather(*(send(one, chat_body("Hi.")) for _ in range(2)))
        assert {content(run)[-4:] for run in answers} == {"One.", "Two."}
        assert len(one.ran) == 2


@pytest.mark.requirement("repeat:retry")
async def test_a_retry_of_a_named_stream_follows_it_from_its_first_event(tmp_path: Path) -> None:
    release = asyncio.Event()
    script = Script(streamed("Hello."), waits=release)
    headers = {"x-toolyard-chat": "c"}
    async with gateway(tmp_path, [script]) as one, asyncio.timeout(60):
        first = await send(one, chat_body("Hi.", stream=True), headers)
        second = await send(one, chat_body("Hi.", stream=True), headers | RETRY)
        release.set()
        assert first.pieces is not None
        assert second.pieces is not None
        heard = [b"".join([piece async for piece in run.pieces]) for run in (first, second) if run.pieces]
        assert heard[0] == heard[1]
        assert len(one.upstream.bodies) == 1


@pytest.mark.requirement("repeat:approval")
@pytest.mark.parametrize("answer", ["allow", "deny"])
async def test_a_whole_answer_that_waits_for_approval_comes_early_and_the_same_request_attaches(
    tmp_path: Path, answer: str
) -> None:
    block = request("Write", path="a.txt", content="x")
    async with gateway(tmp_path, replies(f"I write.\n{block}\n", "Done.")) as one, asyncio.timeout(60):
        one.chat.rules = replace(one.chat.rules, approval_wait_s=0.05)
        early = await send(one, chat_body("Hi."))
        body = json.loads(early.body)
        (waiting,) = body["toolyard"]["approvals"]
        assert (body["toolyard"]["type"], waiting["tool"]) == ("approval_required", "Write")
        assert content(early).startswith("I write.\n\n> ⏸ Write (a.txt) waits for approval")
        assert f"toolyard approval allow {waiting['id']}" in content(early)
        assert content(await send(one, chat_body("Hi."))) == content(early)  # it still waits
        attached = asyncio.create_task(send(one, chat_body("Hi.")))
        await one.yard.state.approvals.answer(waiting["id"], allowed=answer == "allow", by=ME)
        text = content(await attached)
        while "Done." not in text:
            text = content(await send(one, chat_body("Hi.")))
        assert (tmp_path / "project/a.txt").exists() == (answer == "allow")
        assert len(one.upstream.bodies) == 2


@pytest.mark.requirement("repeat:told")
@pytest.mark.parametrize("answer", ["allow", "deny", "wait"])
async def test_the_next_message_after_an_early_answer_tells_the_model_what_was_done(
    tmp_path: Path, answer: str
) -> None:
    block = request("Write", path="a.txt", content="x")
    async with gateway(tmp_path, replies(f"I write.\n{block}\n", "Written.", "I see.")) as one, asyncio.timeout(60):
        one.chat.rules = replace(one.chat.rules, approval_wait_s=0.05)
        early = await send(one, chat_body("Hi."))
        (waiting,) = json.loads(early.body)["toolyard"]["approvals"]
        assert waiting["about"] == "a.txt"
        assert "> ⏸ Write (a.txt) waits for approval" in content(early)
        if answer != "wait":
            await one.yard.state.approvals.answer(waiting["id"], allowed=answer == "allow", by=ME, reason="not there")
            await wait_until(lambda: not one.chat._logs.running())
        body = chat_body("Hi.")
        assert isinstance(body["messages"], list)
        body["messages"] += [{"role": "assistant", "content": content(early)}, {"role": "user", "content": "And now?"}]
        await send(one, body)
        told = json.dumps(one.upstream.bodies[-1]["messages"])
        assert ("not there" in told, "has not run" in told) == (answer == "deny", answer == "wait")
        assert ("Wrote" in told or "Created" in told) is (answer == "allow")
        assert (tmp_path / "project/a.txt").exists() is (answer == "allow")


@pytest.mark.requirement("repeat:mixed")
@pytest.mark.parametrize("pieces", [True, False])
@pytest.mark.parametrize("stream", [True, False])
async def test_a_clients_call_first_and_ours_second_hands_over_to_the_client(
    tmp_path: Path, stream: bool, pieces: bool
) -> None:
    calls: list[Any] = [
        {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}},
        {"id": "o1", "type": "function", "function": {"name": "Say", "arguments": '{"text": "x"}'}},
        {"id": "c2", "type": "function", "function": {"name": "weather", "arguments": "{}"}},
    ]
    indexed = [{"index": index, **call} for index, call in enumerate(calls)]
    if not stream:
        message = {"role": "assistant", "content": None, "tool_calls": calls}
        script = Script([completion(message, "tool_calls")], kind="application/json")
    elif pieces:
        script = Script([*(chunk({"tool_calls": [one]}) for one in indexed), chunk({}, "tool_calls"), DONE])
    else:
        script = Script([chunk({"tool_calls": indexed}, "tool_calls"), DONE])
    async with gateway(tmp_path, [script]) as one:
        if stream:
            heard = await one.stream(tools=WEATHER, toolyard=OFFERED)
            deltas = [choice["delta"] for event in heard.events for choice in event["choices"]]
            call_ids = [call["id"] for delta in deltas for call in delta.get("tool_calls") or []]
            finishes = heard.finishes
        else:
            choice = (await one.complete(tools=WEATHER, toolyard=OFFERED))["choices"][0]
            call_ids = [call["id"] for call in choice["message"]["tool_calls"]]
            finishes = [choice["finish_reason"]]
        assert (call_ids, finishes, one.ran, len(one.upstream.bodies)) == (["c1", "c2"], ["tool_calls"], [], 1)


@pytest.mark.requirement("chat:abandoned")
async def test_a_named_chat_that_nobody_follows_ends_after_the_limit(tmp_path: Path) -> None:
    async with gateway(tmp_path, [Script(streamed("Hi.")[:2], then="hang")]) as one, asyncio.timeout(60):
        one.chat.rules = replace(one.chat.rules, followed_s=0.0)
        await send(one, chat_body("Hi.", stream=True), {"x-toolyard-chat": "c"})
        await one.upstream.gone.wait()
        await wait_until(lambda: (one.chat.record("c", ME) or {})["state"] == "failed")


@pytest.mark.requirement("chat:abandoned")
async def test_a_chat_goes_on_while_somebody_follows_it() -> None:
    log = make_log(patience_s=0.001)
    first, second = log.read(0), log.read(0)
    first.close()
    for _ in range(3):  # rounds of the event loop, each of which would call it
        await run_loop_once()
    assert log.state is State.READ
    second.close()
    async with asyncio.timeout(60):
        await wait_until(lambda: log.state is State.LEAVING)
    log.end()


@pytest.mark.requirement("chat:long-reply")
@pytest.mark.parametrize("show", ["summary", "raw"])
async def test_a_very_long_reply_without_any_request_is_passed_through_and_asked_for_once(
    tmp_path: Path, show: str
) -> None:
    line = "All work and no play. " * 3000 + "\n"
    pieces = [chunk({"content": line}) for _ in range(40)]
    async with gateway(tmp_path, [Script([*pieces, chunk({}, "stop"), DONE])]) as one:
        heard = await one.stream(toolyard={"show": show})
        assert (heard.text == line * 40, heard.finishes, len(one.upstream.bodies)) == (True, ["stop"], 1)
