"""Work beside the requests: started again when it fails, and waited for no longer than there is time."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

LONGEST_PAUSE_S: Final = 60.0
_log = logging.getLogger("toolyard.web")


async def kept(work: Callable[[], Awaitable[Any]], name: str, *, pause_s: float = 1.0) -> None:
    """Run it, and run it again when it fails, such as on a full disk: after 1 s, 2, 4, ... up to a minute."""
    while True:
        try:
            await work()
        except Exception:  # noqa: BLE001 what fails beside the requests must not end them
            _log.exception("%s failed and is started again in %g s", name, pause_s)
        else:
            return
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


async def until(work: Awaitable[None], seconds: float, hurry: asyncio.Event | None = None) -> None:
    """Until it is done, or the time is over, or somebody is in a hurry."""
    waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(work)]
    if hurry is not None:
        waits.append(asyncio.ensure_future(hurry.wait()))
    await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()
    await asyncio.gather(*waits, return_exceptions=True)
