"""Uncancellable work: a cancel of the waiting task takes effect after it, never in the middle.

A commit may be durable before its caller gets the result, so a caller must not abandon it. What has to follow a
commit in this process belongs into the same piece of work.
"""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

_log = logging.getLogger(__name__)

T = TypeVar("T")


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
