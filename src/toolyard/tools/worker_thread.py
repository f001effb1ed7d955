"""Blocking work beside the event loop."""

import asyncio
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import ParamSpec, TypeVar

_GRACE_S = 20.0  # how long a cancelled call waits for its thread to see the checkpoint; its caller may wait for less

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run ``work(*args, **kwargs)`` in a thread.

    A cancelled caller waits a moment for the thread, so that nothing is left half done; work that no thread has taken
    yet is withdrawn.
    """
    waiting = [partial(work, *args, **kwargs)]  # until a thread takes it

    def run() -> T:
        return waiting.pop()()

    thread = asyncio.get_running_loop().run_in_executor(None, copy_context().run, run)
    try:
        return await asyncio.shield(thread)
    except asyncio.CancelledError:
        if not _withdraw(waiting):
            await asyncio.wait({thread}, timeout=_GRACE_S)
        if thread.done() and thread.exception() is None:
            return thread.result()  # too late to stop: what was done must be reported
        thread.add_done_callback(lambda done: done.cancelled() or done.exception())
        raise


def _withdraw(waiting: list[partial[T]]) -> bool:
    """Withdraw work before a thread has taken it; False when it has begun."""
    try:
        waiting.pop()
    except IndexError:
        return False
    return True
