"""What ends a run before its tool does: a deadline or a cancel."""

import asyncio

from toolyard.engine.clock import Clock
from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure, Reason


class Stop:
    """The checkpoint of one run. ``cancel`` belongs to the event loop; the checkpoint may be called from any thread."""

    def __init__(self, tool: str, clock: Clock, timeout_s: float) -> None:
        self._tool, self._clock, self._timeout_s = tool, clock, timeout_s
        self._deadline = clock.monotonic() + timeout_s
        self.asked: asyncio.Future[None] = asyncio.get_running_loop().create_future()  # done when it is cancelled

    def __call__(self) -> None:
        if self.asked.done():
            raise self.cancelled()
        if self._clock.monotonic() >= self._deadline:
            raise self.timed_out()

    def cancel(self) -> None:
        if not self.asked.done():
            self.asked.set_result(None)

    def expire(self) -> None:
        """Let the deadline be over."""
        self._deadline = self._clock.monotonic()

    def cancelled(self) -> Failure:
        return Failure(
            Reason.CANCELLED,
            f"{self._tool} was cancelled before it finished.",
            hint="Call it again if you still need it.",
        )

    def timed_out(self) -> Failure:
        return Failure(
            ErrorCode.TIMEOUT,
            f"{self._tool} did not finish within {self._timeout_s:g} s and was stopped.",
            hint="Narrow the call so that there is less to do.",
        )
