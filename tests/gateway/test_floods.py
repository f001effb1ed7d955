"""A provider that sends without end: the answer ends with a clear sentence, and the server's memory stays small."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.serving import StreamedAnswer, chat_body, gateway, metered
from tests.gateway.upstream import DONE, Script, chunk, completion, replies, says
from tests.sampling import sample
from toolyard.gateway.reply import streamed_reply
from toolyard.gateway.tool_calls.text_calls import MAX_KEPT
from toolyard.protocol.requests.scanner import MAX_REQUESTS
from toolyard.protocol.store import Query

FLOOD = 300 * 2**20
MOST_MIB = 100.0
EMPTY = "<<<[TOOL_REQUEST]>>>\n<<<[END_TOOL_REQUEST]>>>\n"


@dataclass
class Flood:
    """The pieces of an answer without end: ``FLOOD`` bytes of ``event``, made as they are sent."""

    event: bytes
    first: bytes = b""

    def __iter__(self) -> Iterator[bytes]:
        yield self.first or chunk({"role": "assistant", "content": ""})
        batch = self.event * max(1, 2**16 // len(self.event))
        for _ in range(FLOOD // len(batch)):
            yield batch


def call(arguments: str, **more: Any) -> dict[str, Any]:
    return {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "Say", "arguments": arguments}, **more}]}


TOO_LONG = "more than 4 MiB of text in one reply"
TOO_LARGE = "more than 16 MiB of reasoning, arguments and text in one answer"
TOO_MANY = "more than 500,000 events in one reply"
FLOODS: dict[str, tuple[bytes, str]] = {
    "text in long pieces": (chunk({"content": "x" * 60_000}), TOO_LONG),
    "text in short pieces": (chunk({"content": "ab"}), TOO_MANY),
    "text in short lines": (chunk({"content": "a\n"}), TOO_MANY),
    "text of wide characters": (chunk({"content": "\U0001f600" + "x" * 60_000}), TOO_LONG),
    "text in large events": (chunk({"content": "\U0001f600" + "x" * 4_000_000}), TOO_LONG),
    "text in one event": (chunk({"content": "\U0001f600" + "x" * 8_000_000}), TOO_LONG),
    "reasoning": (chunk({"reasoning_content": "x" * 60_000}), TOO_LARGE),
    "reasoning in large events": (chunk({"reasoning_content": "x" * 8_000_000}), TOO_LARGE),
    "reasoning in short pieces": (chunk({"reasoning_content": "ab"}), TOO_MANY),
    "reasoning in objects": (chunk({"reasoning_details": [{}] * 20_000}), TOO_LARGE),
    "broken arguments": (chunk(call('{"text": x' * 6000)), TOO_LARGE),
    "broken arguments in short pieces": (chunk(call("{x")), TOO_MANY),
    "ends": (chunk({}, "stop", usage={"total_tokens": 1}), ""),
    "comments": (b": still here\n\n", TOO_MANY),
    "an answer in one piece": (b" " * 60_000, "sent more than 33554432 bytes"),
}


def flood(body: dict[str, Any]) -> Script:
    name = str(body["messages"][-1]["content"])
    if name == "hello":
        return Script(list(replies("Hello.")({"stream": True}).pieces))
    first = b'{"choices": [{"message": {"content": "' if name == "an answer in one piece" else b""
    return Script(Flood(FLOODS[name][0], first))  # type: ignore[arg-type]


@pytest.mark.requirement("chat:reply-bounds", "s:S-25")
async def test_300_mb_of_anything_end_with_a_sentence_and_take_little_memory(tmp_path: Path) -> None:
    async with asyncio.timeout(600), metered(tmp_path, flood) as (session, meter):

        async def ask(name: str) -> StreamedAnswer:
            """Read an answer as a client that keeps nothing of it but its end."""
            async with session.post("/v1/chat/completions", json=chat_body(name, stream=True)) as response:
                end = b""
                async for piece in response.content.iter_any():
                    end = (end + piece)[-2000:]
                return StreamedAnswer.from_bytes(b"data: {}\n\n" + end[end.rfind(b"data: {") :])

        await ask("hello")
        usual = (await meter())["peak_mib"]
        for name, (_, sentence) in sample(FLOODS.items(), lambda flood: flood[1][1]):
            heard = await ask(name)
            assert sentence in str(heard.errors), (name, heard)
            assert bool(heard.errors) == bool(sentence), name
            grown = (await meter())["peak_mib"] - usual
            assert grown < MOST_MIB, (name, grown)


@pytest.mark.requirement("chat:reply-bounds", "s:S-30")
@pytest.mark.parametrize("stream", [True, False])
async def test_of_60000_empty_requests_a_few_are_reported_to_the_model(tmp_path: Path, *, stream: bool) -> None:
    async with gateway(tmp_path, replies(EMPTY * 60_000, "Sorry.", size=100_000)) as one:
        await (one.stream() if stream else one.complete())
        told = one.upstream.bodies[1]["messages"][-1]["content"]
        assert told.count("The block has no tool_name") == MAX_REQUESTS
        assert "Only the first 64 requests of a reply are read" in told
        assert len(told) < 20_000
        assert len(await one.yard.state.journal.page(Query(), limit=100)) == MAX_KEPT


@pytest.mark.requirement("chat:reply-bounds", "s:S-30")
async def test_of_very_many_native_calls_in_one_piece_a_few_are_reported(tmp_path: Path) -> None:
    calls = [{"id": f"c{n}", "type": "function", "function": {"name": "Say", "arguments": "{}"}} for n in range(5000)]
    first = Script([completion({"content": None, "tool_calls": calls}, "tool_calls")], kind="application/json")
    async with gateway(tmp_path, [first, says("Done.", stream=False)]) as one:
        await one.complete()
        _, reply, *results = one.upstream.bodies[1]["messages"]
        assert [call["id"] for call in reply["tool_calls"]] == [result["tool_call_id"] for result in results]
        assert (len(results), len(one.ran)) == (64, 32)


@pytest.mark.requirement("chat:reply-bounds")
async def test_the_replies_of_one_answer_share_a_limit_and_the_provider_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streamed_reply, "MAX_KEPT", 30_000)
    asks = Script([chunk({"reasoning_content": "x" * 20_000}), chunk(call("{}")), chunk({}, "tool_calls"), DONE])
    endless = Script(Flood(chunk({"content": "x" * 20_000})), then="hang")  # type: ignore[arg-type]
    async with gateway(tmp_path, [asks, endless]) as one:
        heard = await one.stream()
        await one.upstream.gone.wait()
        assert len(one.ran) == 1
        assert [error["code"] for error in heard.errors] == ["tools_have_run"]
        assert (
            "of reasoning, arguments and text in one answer, so it was stopped here. Tools"
            in heard.errors[0]["message"]
        )
