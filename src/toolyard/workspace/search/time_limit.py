"""The time limit of a search, which then ends with what it has found.

A search calls ``check`` at every step. It raises ``TimeLimitReached`` when the time is over, and the Failure of a call
that was cancelled. A timer sets a flag, so that a check costs no system call.
"""

import threading
from types import TracebackType

from toolyard.protocol.tool import Checkpoint


class TimeLimitReached(Exception):
    """The search ends here; what it found so far is the result."""


class TimeLimit:
    def __init__(self, seconds: float, checkpoint: Checkpoint) -> None:
        self.seconds = seconds
        self._checkpoint = checkpoint
        self._over = threading.Event()
        self._timer = threading.Timer(seconds, self._over.set)
        self._timer.daemon = True

    def check(self) -> None:
        self._checkpoint()
        if self._over.is_set():
            raise TimeLimitReached

    def __enter__(self) -> "TimeLimit":
        self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
