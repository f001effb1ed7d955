"""Stopping a turn from outside: whatever it is waiting for ends at once, and it can still say goodbye."""

import asyncio
import contextlib
from collections.abc import Iterator


class Interrupted(Exception):
    """Somebody asked the turn to stop."""


class Interruption:
    def __init__(self) -> None:
        self.asked = False
        self._waiting: asyncio.Task[object] | None = None

    def ask(self) -> bool:
        """Whether there was a wait to end."""
        self.asked = True
        if self._waiting is None:
            return False
        return self._waiting.cancel()

    @contextlib.contextmanager
    def stops(self) -> Iterator[None]:
        """Around each wait that may be stopped. Raises Interrupted; a cancellation by others stays one."""
        if self.asked:
            raise Interrupted
        self._waiting = task = asyncio.current_task()
        try:
            yield
        except asyncio.CancelledError:
            if self.asked and task is not None and task.uncancel() == 0:
                raise Interrupted from None
            raise
        finally:
            self._waiting = None
