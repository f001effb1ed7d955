"""Many chats at the same time do not stop the event loop of the server that answers them."""

import asyncio
import os
import statistics
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.gateway.serving import StreamedAnswer, chat_body, metered, request
from tests.gateway.upstream import Script, says
from tests.waiting import run_loop_once
from toolyard.engine.step_limiter import AT_ONCE, StepLimiter

SOAK = os.environ.get("HYPOTHESIS_PROFILE") == "soak"
CHATS, WITH_TOOLS, ROUNDS = (1000, 200, 9) if SOAK else (300, 60, 3)
LIMIT_MS = 100.0 if SOAK else 400.0  # beside other tests; what stops the loop, such as loading mcp, takes longer yet


def model(body: dict[str, Any]) -> Script:
    if str(body["messages"][-1]["content"]).startswith("tool"):
        return says(f"Look.\n{request('Read', path='a.md')}\n", size=20)
    return says("All is well, and here is the end of it.", size=20)


@pytest.mark.requirement("chat:completions", "chat:loop")
async def test_no_chat_makes_the_others_wait_and_neither_does_loading_mcp(tmp_path: Path) -> None:
    async def chat(session: aiohttp.ClientSession, number: int) -> None:
        text = "tool" if number < WITH_TOOLS else "plain"
        async with session.post("/v1/chat/completions", json=chat_body(f"{text} {number}", stream=True)) as response:
            heard = StreamedAnswer.from_bytes(await response.read())
        assert (heard.finishes, heard.done, heard.errors) == (["stop"], 1, [])

    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    async with asyncio.timeout(600), metered(tmp_path, model) as (session, meter):
        await chat(session, 0)
        first = await meter()
        stalls = []
        for _ in range(ROUNDS):
            await asyncio.gather(*(chat(session, number) for number in range(CHATS)))
            measured = await meter()
            stalls.append(measured["work_ms"] / measured["slow"])
        accept = {"Accept": "application/json, text/event-stream"}
        body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
        async with session.post("/mcp", json=body, headers=accept) as response:
            assert response.status == 200
            await response.read()
        loading = await meter()
    assert first["work_ms"] / first["slow"] < LIMIT_MS  # what talks to providers is loaded beside the loop
    assert statistics.median(stalls) < LIMIT_MS  # of several: the machine may have others to serve
    assert loading["work_ms"] / loading["slow"] < LIMIT_MS


@pytest.mark.requirement("chat:completions")
async def test_steps_are_taken_in_order_and_only_so_many_in_one_round_of_the_loop() -> None:
    fair, taken = StepLimiter(), []

    async def step(number: int) -> None:
        await fair.step()
        taken.append(number)

    tasks = [asyncio.create_task(step(number)) for number in range(3 * AT_ONCE)]
    seen = []
    async with asyncio.timeout(60):
        while len(taken) < 3 * AT_ONCE - 1:
            before = len(taken)
            await run_loop_once()
            seen.append(len(taken) - before)
            if len(seen) == 1:
                tasks[AT_ONCE + 1].cancel()  # one that leaves holds up nobody
        await asyncio.gather(*tasks, return_exceptions=True)
    assert max(seen) <= AT_ONCE
    assert taken == [number for number in range(3 * AT_ONCE) if number != AT_ONCE + 1]
    async with asyncio.timeout(60):
        await step(-1)
