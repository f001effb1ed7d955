"""The queue of unattended calls: they run one at a time; those that wait for a person delay nobody."""

import asyncio
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from tests.waiting import run_loop_once
from toolyard.config import load_config
from toolyard.protocol.tool import Origin
from toolyard.tools.unattended import Unattended
from toolyard.yard.calls import UnattendedQueue
from toolyard.yard.yard import Yard

pytestmark = pytest.mark.requirement("approval:auto-safe")


async def yes() -> bool:
    return True


async def no() -> bool:
    return False


async def test_a_call_is_judged_only_when_the_one_before_it_has_ended() -> None:
    unseen, judged = UnattendedQueue(), list[str]()

    async def judge() -> bool:
        judged.append("second")
        return True

    assert await unseen.admit("first", yes)
    second = asyncio.create_task(unseen.admit("second", judge))
    await run_loop_once()
    unseen.release("another")  # was never admitted
    await run_loop_once()
    assert judged == []
    unseen.release("first")
    assert await asyncio.wait_for(second, 60)
    assert judged == ["second"]


async def test_who_is_not_admitted_fails_or_leaves_holds_up_nobody() -> None:
    async def fails() -> bool:
        raise RuntimeError("it is a bug")

    unseen = UnattendedQueue()
    assert not await unseen.admit("first", no)
    with pytest.raises(RuntimeError):
        await unseen.admit("second", fails)
    assert await asyncio.wait_for(unseen.admit("third", yes), 60)
    waiting = asyncio.create_task(unseen.admit("fourth", yes))
    await run_loop_once()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    unseen.release("third")
    assert await asyncio.wait_for(unseen.admit("fifth", yes), 60)


async def test_a_call_that_is_cancelled_while_it_is_judged_asks_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judges, go = threading.Event(), threading.Event()

    def covers(*_: object) -> bool:
        judges.set()
        return not go.wait(60)

    monkeypatch.setattr(Unattended, "covers", covers)
    project = tmp_path / "project"
    project.mkdir()
    async with Yard(load_config(project, tmp_path / "home")) as yard:
        call = replace(yard.calls.request("Write", {"path": "a", "content": "a"}, origin=Origin.CHAT), auto_safe=True)
        settling = asyncio.create_task(yard.calls.settle(call))
        assert await asyncio.to_thread(judges.wait, 60)
        assert yard.calls.cancel(call.id)
        for _ in range(20):
            await run_loop_once()  # until whoever judges has heard of it
        go.set()
        outcome = await asyncio.wait_for(settling, 60)
        assert outcome.envelope.context["reason"] == "CANCELLED"
        assert await yard.state.approvals.page(limit=5) == []
