"""Waiting for what nobody announces: a file of another process, a page of a server, a thread. The only poll loops and
sleeps of the suite. Where there is an event to wait for, wait for it instead."""

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


async def wait_for_value(
    read: Callable[[], Awaitable[T]], accept: Callable[[T], object] = bool, *, within_s: float = PATIENCE_S
) -> T:
    """Return the first value read that ``accept`` is true of; by default the first true value. Raises TimeoutError."""
    async with asyncio.timeout(within_s):
        while not accept(value := await read()):  # noqa: ASYNC110 nobody announces it
            await asyncio.sleep(_PAUSE_S)
        return value


async def wait_until_still(read: Callable[[], T], *, still_s: float = 0.3, within_s: float = PATIENCE_S) -> T:
    """Return the value once it has not changed for ``still_s``: the sign of something that waits for its reader."""
    async with asyncio.timeout(within_s):
        value, changed = read(), time.monotonic()
        while time.monotonic() - changed < still_s:
            await asyncio.sleep(_PAUSE_S)
            if (now := read()) != value:
                value, changed = now, time.monotonic()
    return value


async def run_loop_once() -> None:
    """Let everything that is ready on the event loop run once. No time has to pass."""
    await asyncio.sleep(0)
