"""Inline runs: coroutines that begin in a thread, and move to the event loop only when they have to wait.

An event loop is for waiting. Most of what settles a call only computes, reads and writes, and the embedded store takes
reads and commits from any thread: where no event loop runs, they are done at once. So the coroutine that settles a call
begins in a thread of the pool. A built-in file tool that nobody is asked about is settled there to its end; whatever
waits for a person, a child process or a connection awaits ``go_to_event_loop`` first. A call switches threads two or
four times instead of eight (bench row "inline run").
"""

import asyncio
from collections.abc import Coroutine, Generator
from contextvars import copy_context
from dataclasses import dataclass
from types import coroutine
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ended(Generic[T]):
    """The result of a coroutine that has run to its end."""

    value: T


def is_on_event_loop() -> bool:
    """Return whether this thread runs an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def go_to_event_loop() -> None:
    """Continue on the event loop; return at once when already there."""
    if not is_on_event_loop():
        await _suspend()


@coroutine
def _suspend() -> Generator[None, None, None]:
    yield


def advance(work: Coroutine[Any, Any, T]) -> Ended[T] | None:
    """Run a coroutine in a thread without an event loop; None when it has to continue on the event loop."""
    try:
        awaited = work.send(None)
    except StopIteration as end:
        return Ended(end.value)
    if awaited is not None:
        work.close()
        raise RuntimeError(f"{work} waits for {awaited} in a thread without an event loop")
    return None


class InlineRun(Generic[T]):
    """A coroutine that begins in a thread of the event loop's pool."""

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work
        self._waiting = [work]  # until a thread takes it
        self._thread = asyncio.get_running_loop().run_in_executor(None, copy_context().run, self._advance)
        self._thread.add_done_callback(lambda done: done.cancelled() or done.exception())  # whether asked for or not

    def _advance(self) -> Ended[T] | None:
        return advance(self._waiting.pop())

    async def wait_left(self, seconds: float | None, *, unless: "asyncio.Future[None] | None" = None) -> bool:
        """Wait at most ``seconds``, or until ``unless`` is done; return whether the run has left its thread."""
        either: set[asyncio.Future[Any]] = {self._thread, *([unless] if unless else [])}
        await asyncio.wait(either, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        return self._thread.done()

    async def result(self) -> T:
        """Return the result of a run that has left its thread, after the rest of it has run here."""
        ended = self._thread.result()
        return ended.value if ended is not None else await _Rest(self._work)

    def withdraw(self) -> bool:
        """Withdraw the run before a thread has taken it; False when it has begun."""
        try:
            self._waiting.pop().close()
        except IndexError:
            return False
        return True


class _Rest(Generic[T]):
    """The rest of a coroutine that has begun elsewhere: ``await`` itself takes none that has begun."""

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work

    def __await__(self) -> Generator[Any, None, T]:
        return (yield from self._work.__await__())
