"""Limits and the queue of plugin calls."""

import asyncio

import pytest

from tests.waiting import run_loop_once
from toolyard.plugins.call_queue import CallQueue
from toolyard.protocol.envelope import Failure, Reason

pytestmark = pytest.mark.requirement("r:R32")


class Crowd:
    """Calls that enter when they may and leave when they are told."""

    def __init__(self, queue: CallQueue) -> None:
        self.queue = queue
        self.entered: list[str] = []
        self.leave: dict[str, asyncio.Event] = {}

    async def call(self, name: str, plugin: str = "P", limit: int = 4) -> None:
        async with self.queue.slot(plugin, limit):
            self.entered.append(name)
            await self.leave.setdefault(name, asyncio.Event()).wait()

    def start(self, name: str, plugin: str = "P", limit: int = 4) -> "asyncio.Task[None]":
        return asyncio.ensure_future(self.call(name, plugin, limit))


async def run_ready_callbacks() -> None:
    """Let the event loop run until nothing is ready any more."""
    for _ in range(20):
        await run_loop_once()


async def test_calls_beyond_the_limit_of_their_plugin_enter_in_the_order_they_came() -> None:
    crowd = Crowd(CallQueue(at_once=8))
    calls = [crowd.start(str(n), limit=2) for n in range(6)]
    await run_ready_callbacks()
    assert crowd.entered == ["0", "1"]
    for n in range(6):
        crowd.leave.setdefault(str(n), asyncio.Event()).set()
        await run_ready_callbacks()
    await asyncio.gather(*calls)
    assert crowd.entered == [str(n) for n in range(6)]


async def test_when_a_place_is_free_the_call_that_came_first_enters_whichever_its_plugin_is() -> None:
    crowd = Crowd(CallQueue(at_once=1))
    calls = [crowd.start(f"{plugin}{n}", plugin) for n, plugin in enumerate("PQRQP")]
    await run_ready_callbacks()
    for name in ("P0", "Q1", "R2", "Q3", "P4"):
        assert crowd.entered[-1] == name
        crowd.leave[name].set()
        await run_ready_callbacks()
    await asyncio.gather(*calls)


async def test_two_hundred_calls_never_run_more_than_four_at_a_time_and_all_run() -> None:
    queue, running, most, done = CallQueue(), 0, 0, 0

    async def call() -> None:
        nonlocal running, most, done
        async with queue.slot("P", 4):
            running += 1
            most = max(most, running)
            await run_loop_once()
            running -= 1
            done += 1

    await asyncio.gather(*(call() for _ in range(200)))
    assert (most, done) == (4, 200)


async def test_a_plugin_at_its_limit_holds_up_nobody_else() -> None:
    crowd = Crowd(CallQueue(at_once=3))
    calls = [crowd.start("slow1", "Slow", 1), crowd.start("slow2", "Slow", 1), crowd.start("quick", "Quick", 4)]
    await run_ready_callbacks()
    assert crowd.entered == ["slow1", "quick"]
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)


async def test_a_full_queue_refuses_with_busy_and_a_hint() -> None:
    crowd = Crowd(CallQueue(at_once=1, max_waiting=2))
    calls = [crowd.start(str(n)) for n in range(3)]
    await run_ready_callbacks()
    with pytest.raises(Failure) as refused:
        await crowd.call("one too many")
    assert refused.value.reason is Reason.BUSY
    assert "2 calls are waiting" in refused.value.message
    assert "Try again" in refused.value.hint
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)


async def test_a_cancelled_call_gives_up_its_place_in_the_queue() -> None:
    crowd = Crowd(CallQueue(at_once=1))
    first, second, third = crowd.start("1"), crowd.start("2"), crowd.start("3")
    await run_ready_callbacks()
    second.cancel()
    crowd.leave["1"].set()
    await run_ready_callbacks()
    assert crowd.entered == ["1", "3"]
    crowd.leave["3"].set()
    await asyncio.gather(first, third)
    assert (await asyncio.gather(second, return_exceptions=True))[0].__class__ is asyncio.CancelledError


async def test_a_call_cancelled_at_the_moment_of_its_turn_passes_it_on() -> None:
    crowd = Crowd(CallQueue(at_once=1))
    calls = [crowd.start("1"), crowd.start("2"), crowd.start("3")]
    await run_ready_callbacks()
    crowd.leave["1"].set()
    await run_loop_once()  # the first has left or is about to; the second is cancelled in the same breath
    calls[1].cancel()
    await run_ready_callbacks()
    assert crowd.entered[-1] == "3"
    crowd.leave["3"].set()
    await asyncio.gather(*calls, return_exceptions=True)
