"""The time a plugin may take once it runs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure


@asynccontextmanager
async def limit_run_time(plugin: str, seconds: float, what: str = "did not finish") -> AsyncIterator[asyncio.Timeout]:
    """Failure(TIMEOUT) when the block takes longer; whatever it started is told by its cancellation."""
    try:
        async with asyncio.timeout(seconds) as limit:
            yield limit
    except TimeoutError as error:
        raise Failure(
            ErrorCode.TIMEOUT,
            f"{plugin} {what} within {seconds:g} s and was stopped.",
            hint="Ask for less at once, or raise communication.timeout in its manifest.",
        ) from error


def release_timeout(limit: asyncio.Timeout) -> float:
    """The seconds that are left, for whoever keeps the limit from now on and raises TimeoutError by itself."""
    when, now = limit.when(), asyncio.get_running_loop().time()
    limit.reschedule(None)
    return max(0.0, (now if when is None else when) - now)
