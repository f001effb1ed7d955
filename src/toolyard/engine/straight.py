"""A call that has nothing to wait for goes straight through, in one thread.

An event loop is for waiting. The built-in file tools only compute, read and write, and the embedded store takes a
commit from any thread: where no event loop runs, they do at once what they else do beside it. So the coroutines that
settle every call settle such a one in a single thread, and it goes from thread to thread twice instead of six times.
"""

import asyncio
from collections.abc import Coroutine
from contextvars import copy_context
from typing import Any, Generic, TypeVar

T = TypeVar("T")


def straight(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, in a thread without an event loop."""
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    work.close()
    raise RuntimeError(f"{work} waits for something, so it cannot go straight through")


class Straight(Generic[T]):
    """A straight coroutine on its way through a thread of the event loop's pool."""

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._waiting = [work]  # until a thread comes to it
        self._thread = asyncio.get_running_loop().run_in_executor(None, copy_context().run, self._take)
        self._thread.add_done_callback(lambda done: done.cancelled() or done.exception())  # whether asked for or not

    def _take(self) -> T:
        return straight(self._waiting.pop())

    async def ended(self, seconds: float, *, unless: "asyncio.Future[None] | None" = None) -> bool:
        """Wait for its end so long, or until something else has happened; whether it has ended."""
        either: set[asyncio.Future[Any]] = {self._thread, *([unless] if unless else [])}
        await asyncio.wait(either, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        return self._thread.done()

    def result(self) -> T:
        return self._thread.result()

    def withdraw(self) -> bool:
        """Take it back, if no thread has come to it: then none will run it."""
        try:
            self._waiting.pop().close()
        except IndexError:
            return False
        return True
