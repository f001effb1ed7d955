"""Answers that are running when the server shuts down: they end in the grace period, or say how to go on."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import openai
import pytest

from tests.gateway.serving import request
from tests.gateway.test_served import HI, settings_for
from tests.gateway.upstream import Answers, Call, Provider, Script, chunk, provider, says, streamed
from tests.waiting import wait_until
from toolyard.config import load_config
from toolyard.web.server.lifecycle import Server, ServerOptions

HANGS = Script([chunk({"content": "Once upon"})], then="hang")


@asynccontextmanager
async def server(place: Path, answers: Answers, *, grace_s: float = 0.0) -> AsyncIterator[tuple[Server, Provider]]:
    (place / "project").mkdir(parents=True)
    (place / "project/a.md").write_text("# Heading\n")
    (place / "home").mkdir()
    async with provider(answers) as upstream:
        (place / "home/config.toml").write_text(settings_for(upstream))
        running = Server(load_config(place / "project", place / "home"), ServerOptions(port=0, grace_s=grace_s))
        await running.start()
        try:
            yield running, upstream
        finally:
            await running.stop()


async def read_until_end(
    running: Server, stop_after: str, path: str = "/v1/chat/completions", **body: Any
) -> list[Any]:
    """The events of a stream; the server is stopped when ``stop_after`` has come."""
    headers, sent = {"Authorization": f"Bearer {running.key}"}, {"model": "m", "messages": HI, "stream": True, **body}
    stopping: asyncio.Task[None] | None = None
    data = b""
    async with aiohttp.ClientSession() as client, asyncio.timeout(60):
        async with client.post(f"{running.url}{path}", json=sent, headers=headers) as answer:
            async for piece in answer.content.iter_any():
                data += piece
                if stopping is None and stop_after.encode() in data:
                    stopping = asyncio.create_task(running.stop())
        assert stopping is not None
        await stopping
    lines = [line.removeprefix("data: ") for line in data.decode().splitlines() if line.startswith("data: ")]
    return [line if line == "[DONE]" else json.loads(line) for line in lines]


@pytest.mark.requirement("service:streams")
@pytest.mark.parametrize("options", [{}, {"toolyard": {"chat": "tale"}}])
async def test_a_stream_that_outlasts_the_grace_period_says_how_to_go_on(tmp_path: Path, options: Any) -> None:
    async with server(tmp_path, [HANGS]) as (running, _):
        events = await read_until_end(running, "Once upon", **options)
    assert events[0]["choices"][0]["delta"]["content"] == "Once upon"
    error = events[-1]["error"]
    assert (error["code"], error["type"], error["message_code"]) == (
        "server_stopping",
        "server_error",
        "chat.server_stopping",
    )
    assert error["hint"] == "No tool has run: send the same request again when the server is back."
    assert "[DONE]" not in events


@pytest.mark.requirement("service:streams")
async def test_after_tools_the_client_is_told_to_continue_and_not_to_repeat(tmp_path: Path) -> None:
    look = says(f"I look.\n{request('Read', path='a.md')}\n")
    async with server(tmp_path, [look, HANGS]) as (running, _):
        events = await read_until_end(running, "Once upon")
    error = events[-1]["error"]
    assert (error["code"], error["hint_code"]) == ("tools_have_run", "chat.continue_after_restart")


@pytest.mark.requirement("service:streams")
async def test_a_stream_that_ends_within_the_grace_period_is_whole(tmp_path: Path) -> None:
    goes_on = asyncio.Event()

    def answers(_: dict[str, Any]) -> Script:
        return Script(streamed("Once upon a time."), waits=goes_on)

    async with server(tmp_path, answers, grace_s=60.0) as (running, upstream):
        reading = asyncio.create_task(read_until_end(running, "Once"))
        await wait_until(lambda: upstream.bodies)
        goes_on.set()
        events = await reading
    assert events[-1] == "[DONE]"


@pytest.mark.requirement("service:streams")
async def test_an_answer_in_one_piece_becomes_503_which_clients_repeat(tmp_path: Path) -> None:
    async with server(tmp_path, [Script([b"{"], kind="application/json", then="hang")]) as (running, upstream):
        client = openai.AsyncOpenAI(base_url=f"{running.url}/v1", api_key=running.key, max_retries=0)
        async with client:
            asking = asyncio.create_task(client.chat.completions.create(model="m", messages=HI))
            await wait_until(lambda: upstream.bodies)
            await running.stop()
            with pytest.raises(openai.InternalServerError) as raised:
                await asking
    assert (raised.value.status_code, raised.value.code) == (503, "server_stopping")
    assert raised.value.response.headers["Retry-After"] == "5"


@pytest.mark.requirement("service:streams")
async def test_a_forwarded_stream_says_it_too(tmp_path: Path) -> None:
    def answer(_: Call) -> Script:
        return Script([b'data: {"choices": [{"text": "Once upon"}]}\n\n'], then="hang")

    async with server(tmp_path, []) as (running, upstream):
        upstream.answer = answer
        events = await read_until_end(running, "Once upon", "/v1/completions", prompt="Tell me.")
    assert events[-1]["error"]["code"] == "server_stopping"
