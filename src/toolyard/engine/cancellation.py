"""Cancellation: the deadline and the cancel of a run, and the work that a cancel must not cut.

A commit may be durable before its caller gets the result, so a caller must not abandon it. What has to follow a
commit in this process belongs into the same piece of ``uncancellable`` work.
"""

import asyncio
import logging
from collections.abc import Coroutine
from math import inf
from typing import Any, TypeVar

from toolyard.engine.clock import Clock
from toolyard.message import Message
from toolyard.protocol.envelope import ErrorCode, Failure, Reason
from toolyard.protocol.tool import Confirm

_log = logging.getLogger(__name__)
T = TypeVar("T")


async def _confirm_always() -> None:
    """Confirm a call that no other host can end."""


class CancelScope:
    """A deadline and a cancel for one run; calling it is the checkpoint, from any thread. ``cancel`` needs the loop."""

    def __init__(
        self,
        tool: str,
        clock: Clock,
        timeout_s: float = inf,
        cancelled: "asyncio.Future[None] | None" = None,
        confirm: Confirm = _confirm_always,
    ) -> None:
        self.confirm = confirm
        self._tool, self._clock, self._timeout_s = tool, clock, timeout_s
        self._deadline = clock.monotonic() + timeout_s
        self.cancelled = cancelled or asyncio.get_running_loop().create_future()  # done when it is cancelled

    def with_timeout(self, seconds: float) -> "CancelScope":
        """Return a scope with a deadline that shares this one's cancellation."""
        return CancelScope(self._tool, self._clock, seconds, self.cancelled, self.confirm)

    def __call__(self) -> None:
        if self.cancelled.done() or self._clock.monotonic() >= self._deadline:
            raise self.to_failure()

    def cancel(self) -> None:
        if not self.cancelled.done():
            self.cancelled.set_result(None)

    def expire(self) -> Failure:
        """Move the deadline to now and return the failure."""
        self._deadline = self._clock.monotonic()
        return self.to_failure()

    def to_failure(self) -> Failure:
        """Return the failure of a run that was stopped by this scope."""
        if self.cancelled.done():
            return Failure(
                Reason.CANCELLED,
                Message("{tool} was cancelled before it finished.", tool=self._tool),
                hint=Message("Call it again if you still need it."),
            )
        return Failure(
            ErrorCode.TIMEOUT,
            Message(
                "{tool} did not finish within {timeout_s:g} s and was stopped.",
                tool=self._tool,
                timeout_s=self._timeout_s,
            ),
            hint=Message("Narrow the call so that there is less to do."),
        )

    def to_unstopped_failure(self) -> Failure:
        """Return the failure of a run that did not stop when told to: its end is unknown."""
        hint = Message("It may still finish: look at what it did before you call it again.")
        if self.cancelled.done():
            return Failure(
                Reason.CANCELLED, Message("{tool} was cancelled and did not stop at once.", tool=self._tool), hint=hint
            )
        return Failure(
            ErrorCode.TIMEOUT,
            Message("{tool} did not finish within {timeout_s:g} s.", tool=self._tool, timeout_s=self._timeout_s),
            hint=hint,
        )


async def uncancellable(work: Coroutine[Any, Any, T]) -> T:
    """Await ``work`` to its end, however often this is cancelled; then raise the cancel and log a fault."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is None:
        return task.result()
    if not task.cancelled() and (fault := task.exception()):
        _log.error("work whose waiter was cancelled has failed: %s", fault)
    raise cancelled
