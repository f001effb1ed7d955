"""Inline runs: a call that waits for nothing runs to its end in one thread.

An event loop is for waiting. The built-in file tools only compute, read and write, and the embedded store takes a
commit from any thread: where no event loop runs, they do at once what they else do beside it. So the coroutines that
settle every call settle such a call in a single thread: two thread switches instead of six (bench row ``calls``).
"""

import asyncio
from collections.abc import Coroutine
from contextvars import copy_context
from typing import Any, Generic, TypeVar

T = TypeVar("T")


def run_inline(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, in a thread without an event loop."""
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    work.close()
    raise RuntimeError(f"{work} waits for something, so it cannot run inline")


class InlineRun(Generic[T]):
    """A coroutine that runs inline in a thread of the event loop's pool."""

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._waiting = [work]  # until a thread comes to it
        self._thread = asyncio.get_running_loop().run_in_executor(None, copy_context().run, self._run)
        self._thread.add_done_callback(lambda done: done.cancelled() or done.exception())  # whether asked for or not

    def _run(self) -> T:
        return run_inline(self._waiting.pop())

    async def wait_done(self, seconds: float, *, unless: "asyncio.Future[None] | None" = None) -> bool:
        """Wait at most ``seconds``, or until ``unless`` is done; return whether the run has ended."""
        either: set[asyncio.Future[Any]] = {self._thread, *([unless] if unless else [])}
        await asyncio.wait(either, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        return self._thread.done()

    def result(self) -> T:
        return self._thread.result()

    def withdraw(self) -> bool:
        """Withdraw the run before a thread has taken it; False when it has begun."""
        try:
            self._waiting.pop().close()
        except IndexError:
            return False
        return True
