"""Background tasks: restarted when they fail, and awaited with a time limit."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

MAX_PAUSE_S: Final = 60.0
_log = logging.getLogger("toolyard.web")


async def run_restarting(work: Callable[[], Awaitable[Any]], name: str, *, pause_s: float = 1.0) -> None:
    """Run ``work`` until it returns, restarting it after a failure with a backoff of 1, 2, 4, ... up to 60 s."""
    while True:
        try:
            await work()
        except Exception:  # noqa: BLE001 a background failure must not end the server
            _log.exception("%s failed and restarts in %g s", name, pause_s)
        else:
            return
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, MAX_PAUSE_S)


async def wait_until_done(work: Awaitable[None], seconds: float, hurry: asyncio.Event | None = None) -> None:
    """Wait until ``work`` is done, ``seconds`` have passed, or ``hurry`` is set."""
    waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(work)]
    if hurry is not None:
        waits.append(asyncio.ensure_future(hurry.wait()))
    await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()
    await asyncio.gather(*waits, return_exceptions=True)
