"""Anthropic's Messages through the gateway: the official client, and the same turn streamed and in one piece."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import anthropic
import pytest

from tests.gateway.messages import check_message, read_stream, text_of
from tests.gateway.serving import Gateway, gateway
from tests.gateway.upstream import DONE, Script, chunk, says

HI: Any = [{"role": "user", "content": "Hi"}]
CALL = {"id": "call_1", "type": "function", "function": {"name": "Say", "arguments": '{"text": "hello"}'}}
WEATHER: Any = {"name": "weather", "description": "The weather.", "input_schema": {"type": "object"}}
SERVER: Any = {"type": "url", "name": "toolyard", "url": "https://yard.example.org"}
NO_HEADERS: Mapping[str, str] = {}
LINE = "> ✓ Say: Said it."


def calls(*made: dict[str, Any]) -> Script:
    indexed = [{"index": at, **call} for at, call in enumerate(made)]
    return Script([chunk({"role": "assistant", "tool_calls": indexed}), chunk({}, "tool_calls"), DONE])


@asynccontextmanager
async def official(one: Gateway) -> AsyncIterator[anthropic.AsyncAnthropic]:
    async with anthropic.AsyncAnthropic(base_url=one.url, api_key="me", max_retries=0, timeout=60) as client:
        yield client


async def post(one: Gateway, body: dict[str, Any], headers: Mapping[str, str] = NO_HEADERS) -> tuple[int, bytes]:
    async with (
        aiohttp.ClientSession(one.url, headers={"x-api-key": "me", **headers}) as session,
        session.post("/v1/messages", json=body) as got,
    ):
        return got.status, await got.read()


async def ask(one: Gateway, *, stream: bool, headers: Mapping[str, str] = NO_HEADERS, **more: Any) -> dict[str, Any]:
    """The message of a request, streamed or whole; its order and types are checked."""
    body = {"model": "scripted", "max_tokens": 1000, "messages": HI, **more}
    status, raw = await post(one, body | ({"stream": True} if stream else {}), headers)
    assert status == 200, raw
    return read_stream(raw) if stream else check_message(json.loads(raw))


@pytest.mark.requirement("anthropic:create")
async def test_the_official_client_gets_an_answer_and_a_stream_with_a_tool_of_ours(tmp_path: Path) -> None:
    async with gateway(tmp_path, [calls(CALL), says("Done."), calls(CALL), says("Done.")], served=True) as one:
        async with official(one) as client:
            message = await client.messages.create(model="scripted", max_tokens=1000, messages=HI, system="Be brief.")
            async with client.messages.stream(model="scripted", max_tokens=1000, messages=HI) as stream:
                texts = [text async for text in stream.text_stream]
                streamed = await stream.get_final_message()
        assert message.content[0].type == "text"
        assert message.content[0].text == f"{LINE}\n\nDone."
        assert "".join(texts) == f"{LINE}\n\nDone."
        assert streamed.stop_reason == message.stop_reason == "end_turn"
        assert [message["role"] for message in one.upstream.bodies[0]["messages"]] == ["system", "user"]
        assert len(one.ran) == 2


@pytest.mark.requirement("anthropic:create")
@pytest.mark.parametrize("stream", [True, False])
async def test_a_call_of_ours_is_a_line_in_the_text(tmp_path: Path, stream: bool) -> None:
    async with gateway(tmp_path, [calls(CALL), says("Done.")], served=True) as one:
        message = await ask(one, stream=stream)
        assert [block["type"] for block in message["content"]] == ["text"]
        assert text_of(message) == f"{LINE}\n\nDone."
