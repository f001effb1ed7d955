"""What ends a run before its tool does: a deadline or a cancel."""

import asyncio
from collections.abc import Awaitable, Callable
from math import inf

from toolyard.engine.clock import Clock
from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure, Reason

Confirm = Callable[[], Awaitable[None]]


async def _always() -> None:
    """Confirm a call that no other host can end."""


class Stop:
    """The checkpoint of one run. ``cancel`` belongs to the event loop; the checkpoint may be called from any thread."""

    def __init__(
        self,
        tool: str,
        clock: Clock,
        timeout_s: float = inf,
        asked: "asyncio.Future[None] | None" = None,
        confirm: Confirm = _always,
    ) -> None:
        self.confirm = confirm
        self._tool, self._clock, self._timeout_s = tool, clock, timeout_s
        self._deadline = clock.monotonic() + timeout_s
        self.asked = asked or asyncio.get_running_loop().create_future()  # done when it is cancelled

    def within(self, seconds: float) -> "Stop":
        """The same with a deadline: whoever cancels the one cancels the other."""
        return Stop(self._tool, self._clock, seconds, self.asked, self.confirm)

    def __call__(self) -> None:
        if self.asked.done() or self._clock.monotonic() >= self._deadline:
            raise self.failure()

    def cancel(self) -> None:
        if not self.asked.done():
            self.asked.set_result(None)

    def expire(self) -> Failure:
        """Let the deadline be over; what becomes of the run."""
        self._deadline = self._clock.monotonic()
        return self.failure()

    def failure(self) -> Failure:
        """What becomes of a run that was stopped."""
        if self.asked.done():
            return Failure(
                Reason.CANCELLED,
                f"{self._tool} was cancelled before it finished.",
                hint="Call it again if you still need it.",
            )
        return Failure(
            ErrorCode.TIMEOUT,
            f"{self._tool} did not finish within {self._timeout_s:g} s and was stopped.",
            hint="Narrow the call so that there is less to do.",
        )

    def failure_unstopped(self) -> Failure:
        """What becomes of a run that was to be stopped and went on: how it ends is not known."""
        hint = "It may still finish: look at what it did before you call it again."
        if self.asked.done():
            return Failure(Reason.CANCELLED, f"{self._tool} was cancelled and did not stop at once.", hint=hint)
        return Failure(ErrorCode.TIMEOUT, f"{self._tool} did not finish within {self._timeout_s:g} s.", hint=hint)
