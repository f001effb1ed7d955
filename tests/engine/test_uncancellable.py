"""Uncancellable work ends before a cancel of its waiter takes effect."""

import asyncio
import logging

import pytest

from tests.waiting import run_loop_once
from toolyard.engine.cancellation import uncancellable

pytestmark = pytest.mark.requirement("p:P3")


async def test_work_that_is_waited_for_gives_what_it_came_to() -> None:
    async def work() -> int:
        await run_loop_once()
        return 3

    async def fail() -> None:
        raise ValueError("it is a bug")

    assert await uncancellable(work()) == 3
    with pytest.raises(ValueError, match="it is a bug"):
        await uncancellable(fail())


@pytest.mark.parametrize("fails", [False, True])
async def test_a_cancel_comes_after_the_work_however_often_it_is_asked_for(
    caplog: pytest.LogCaptureFixture, *, fails: bool
) -> None:
    go, done = asyncio.Event(), list[str]()

    async def work() -> None:
        await go.wait()
        done.append("all of it")
        if fails:
            raise ValueError("the disk is full")

    waiting = asyncio.create_task(uncancellable(work()))
    for _ in range(3):
        await run_loop_once()
        waiting.cancel()
    await run_loop_once()
    assert not waiting.done()
    go.set()
    with caplog.at_level(logging.ERROR), pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(waiting, 60)
    assert done == ["all of it"]
    assert ("the disk is full" in caplog.text) is fails
