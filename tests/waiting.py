"""Waiting for what nobody announces: a file of another process, a page of a server, a thread. The only poll loops of
the suite. Where there is an event to wait for, wait for it instead."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE_S = 120.0  # a loaded machine is slow; nothing that works takes this long
_PAUSE_S = 0.01


async def wait_until(condition: Callable[[], T | Awaitable[T]], *, within_s: float = PATIENCE_S) -> T:
    """Return the first true value of ``condition()``, which may be awaitable. Raises TimeoutError."""
    async with asyncio.timeout(within_s):
        while True:
            value = condition()
            if result := await value if isinstance(value, Awaitable) else value:
                return result
            await asyncio.sleep(_PAUSE_S)


def wait_until_blocking(condition: Callable[[], object], *, within_s: float = PATIENCE_S) -> None:
    """Wait without an event loop. Raises TimeoutError."""
    end = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"not true within {within_s} s")
        time.sleep(_PAUSE_S)
