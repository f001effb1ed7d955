"""Clients that cannot ask their user: they hear in time what waits, and come back for the result."""

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from mcp import Client

from tests.fakes import FakeClock
from tests.mcp.clients import ERAS, User, envelope_of, open_client, serve_http, wait_for_calls
from toolyard.config import load_config
from toolyard.mcp import calls
from toolyard.mcp.calls import ANSWER_S, KEPT_S
from toolyard.protocol.records.approval_record import Approval
from toolyard.protocol.store import Query
from toolyard.yard.yard import Yard

pytestmark = pytest.mark.requirement("mcp:early-answer")

WRITE = {"path": "a.txt", "content": "x"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


async def pending(yard: Yard, number: int = 1) -> list[Approval]:
    """Wait until so many approvals are asked for."""
    async with asyncio.timeout(60):
        while True:
            _, seq = await yard.state.store.event_span()
            approvals = await yard.state.approvals.page(("pending",), limit=10)
            if len(approvals) == number:
                return approvals
            await yard.state.store.next_event(seq)


async def answered_early(client: Client, yard: Yard, clock: FakeClock, arguments: Any = WRITE) -> Any:
    calling = asyncio.create_task(client.call_tool("Write", arguments))
    await pending(yard)
    clock.advance(ANSWER_S)
    async with asyncio.timeout(60):
        return await calling


async def runs(yard: Yard) -> list[str]:
    return [call.state for call in await yard.state.journal.page(Query(), limit=10)]


def test_the_answer_comes_before_clients_give_up() -> None:
    assert ANSWER_S + 5 < 45


@pytest.mark.parametrize("mode", ERAS)
async def test_it_is_told_what_waits_and_the_same_call_gets_the_result_of_the_one_run(
    project: Path, home: Path, mode: str
) -> None:
    clock = FakeClock()
    async with open_client(project, home, mode=mode, clock=clock) as (client, yard):
        early = await answered_early(client, yard, clock)
        (approval,) = await pending(yard)
        assert early.is_error
        assert envelope_of(early)["context"]["reason"] == "APPROVAL_REQUIRED"
        assert f"toolyard approval allow {approval.id}" in early.content[0].text
        assert not (project / "a.txt").exists()
        again = asyncio.create_task(client.call_tool("Write", WRITE))
        await yard.state.approvals.answer(approval.id, allowed=True, by="cli")
        async with asyncio.timeout(60):
            done = await again
        assert not done.is_error
        assert (project / "a.txt").read_text() == "x"
        assert await runs(yard) == ["success"]
        third = asyncio.create_task(client.call_tool("Write", WRITE))  # the result was delivered: this is a new call
        await pending(yard)
        third.cancel()
        await asyncio.wait({third})


async def test_a_call_that_was_allowed_while_nobody_waited_has_run_when_its_client_comes_back(
    project: Path, home: Path
) -> None:
    clock = FakeClock()
    async with open_client(project, home, clock=clock) as (client, yard):
        await answered_early(client, yard, clock)
        (approval,) = await pending(yard)
        await yard.state.approvals.answer(approval.id, allowed=True, by="cli")
        await wait_for_calls(yard, "running", some=False)
        assert (project / "a.txt").read_text() == "x"
        clock.advance(KEPT_S - 1)
        assert not (await client.call_tool("Write", WRITE)).is_error
        assert await runs(yard) == ["success"]


@pytest.mark.parametrize("other", [{"path": "a.txt", "content": "y"}, None])
async def test_another_call_or_one_that_comes_too_late_asks_for_itself(
    project: Path, home: Path, other: dict[str, str] | None
) -> None:
    clock = FakeClock()
    async with open_client(project, home, clock=clock) as (client, yard):
        await answered_early(client, yard, clock)
        if other is None:
            clock.advance(KEPT_S + 1)
        second = asyncio.create_task(client.call_tool("Write", other or WRITE))
        await pending(yard, 2)
        second.cancel()
        await asyncio.wait({second})


async def test_a_call_that_was_allowed_in_time_is_waited_for(project: Path, home: Path) -> None:
    clock = FakeClock()
    async with open_client(project, home, clock=clock, beat_s=60) as (client, yard):
        calling = asyncio.create_task(client.call_tool("Write", WRITE))
        (approval,) = await pending(yard)
        clock.advance(ANSWER_S - 1)
        await yard.state.approvals.answer(approval.id, allowed=True, by="cli")
        async with asyncio.timeout(60):
            assert not (await calling).is_error


async def test_a_client_that_can_ask_has_the_time_its_user_needs(project: Path, home: Path) -> None:
    clock, approval, go_on = FakeClock(), asyncio.Event(), asyncio.Event()

    async def answer(*_: Any) -> Any:
        approval.set()
        await go_on.wait()
        return User().reply

    async with open_client(project, home, mode="legacy", clock=clock, elicitation_callback=answer) as (client, _):
        calling = asyncio.create_task(client.call_tool("Write", WRITE))
        await asyncio.wait_for(approval.wait(), 60)
        clock.advance(ANSWER_S * 2)
        assert (await asyncio.wait({calling}, timeout=0.3))[0] == set()
        go_on.set()
        assert not (await calling).is_error


async def test_beyond_the_limit_the_oldest_that_waits_ends(
    project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "MAX_KEPT", 1)
    clock = FakeClock()
    async with open_client(project, home, clock=clock) as (client, yard):
        await answered_early(client, yard, clock)
        calling = asyncio.create_task(client.call_tool("Write", {"path": "b.txt", "content": "x"}))
        await pending(yard, 2)
        clock.advance(ANSWER_S)
        assert (await calling).is_error
        await pending(yard, 1)
        await wait_for_calls(yard, "cancelled", some=True)  # the approval of a call ends before the call
        assert sorted(await runs(yard)) == ["cancelled", "running"]


async def test_a_call_whose_client_has_left_without_a_word_is_settled(project: Path, home: Path) -> None:
    head = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    async with Yard(load_config(project, home)) as yard, serve_http(yard) as url:
        async with aiohttp.ClientSession(headers=head) as client:
            begin = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
            async with client.post(url, json=begin) as answer:
                session = {"Mcp-Session-Id": answer.headers["Mcp-Session-Id"]}
            begun = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            await (await client.post(url, json=begun, headers=session)).read()
            params = {"name": "Write", "arguments": WRITE}
            call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
            answer = await client.post(url, json=call, headers=session)  # its head; the rest is on its way
            await pending(yard)
            answer.close()
        await wait_for_calls(yard, "running", some=False)
        assert await runs(yard) == ["cancelled"]
        assert await yard.state.approvals.page(("pending",), limit=10) == []
