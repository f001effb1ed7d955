"""Blocking work beside the event loop."""

import asyncio
from collections.abc import Callable
from contextvars import copy_context
from typing import TypeVar

_GRACE_S = 20.0  # how long a cancelled call waits for its thread to see the checkpoint; its caller may wait for less

T = TypeVar("T")


async def in_thread(work: Callable[[], T]) -> T:
    """Run ``work`` in a thread; at once where no event loop runs, because that is one.

    A cancelled caller waits a moment for the thread, so that nothing is left half done.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return work()
    thread = loop.run_in_executor(None, copy_context().run, work)
    try:
        return await asyncio.shield(thread)
    except asyncio.CancelledError:
        await asyncio.wait({thread}, timeout=_GRACE_S)
        if thread.done() and thread.exception() is None:
            return thread.result()  # too late to stop: what was done must be reported
        thread.add_done_callback(lambda done: done.cancelled() or done.exception())
        raise
