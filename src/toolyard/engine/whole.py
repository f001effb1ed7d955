"""Work that is done whole: a cancel of whoever waits for it comes after it, never in the middle.

A commit is a promise from the moment it is asked for, because the store may keep it before anybody hears so. What has
to follow a commit in this process belongs into one piece of work with it.
"""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

_log = logging.getLogger(__name__)

T = TypeVar("T")


async def whole(work: Coroutine[Any, Any, T]) -> T:
    """Await ``work`` to its end, however often this is cancelled; then the cancel goes on, and a fault is logged."""
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
        _log.error("what nobody waits for any more has failed: %s", fault)
    raise cancelled
