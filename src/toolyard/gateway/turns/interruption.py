"""Interrupting a turn from outside: its current wait ends at once, and it can still finish its answer."""

import asyncio
from types import TracebackType


class Interrupted(Exception):
    """Raised at the wait that ``request`` interrupted."""


class Interruption:
    __slots__ = ("_waiting", "is_requested")

    def __init__(self) -> None:
        self.is_requested = False
        self._waiting: asyncio.Task[object] | None = None

    def request(self) -> bool:
        """Interrupt the current wait; return whether there was one, or a request before this one."""
        if self.is_requested:
            return True
        self.is_requested = True
        if self._waiting is None:
            return False
        return self._waiting.cancel()

    def guard(self) -> "Interruption":
        """Return the context of an interruptible wait. Raises Interrupted; other cancellations pass through."""
        return self

    def __enter__(self) -> None:
        if self.is_requested:
            raise Interrupted
        self._waiting = asyncio.current_task()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        task, self._waiting = self._waiting, None
        if (
            isinstance(error, asyncio.CancelledError)
            and self.is_requested
            and task is not None
            and task.uncancel() == 0
        ):
            raise Interrupted from None
