"""The time limit of a plugin's run."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from toolyard.message import Message
from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure

_UNFINISHED: Final = Message("plugin.did_not_finish", "did not finish")


@asynccontextmanager
async def limit_run_time(plugin: str, seconds: float, what: str = _UNFINISHED) -> AsyncIterator[asyncio.Timeout]:
    """Raise Failure(TIMEOUT) when the block takes longer; its cancellation ends what it started."""
    try:
        async with asyncio.timeout(seconds) as limit:
            yield limit
    except TimeoutError as error:
        raise Failure(
            ErrorCode.TIMEOUT,
            Message(
                "plugin.within_s_stopped",
                "{plugin} {what} within {seconds:g} s and was stopped.",
                plugin=plugin,
                what=what,
                seconds=seconds,
            ),
            hint=Message("hint.raise_timeout", "Ask for less at once, or raise communication.timeout in its manifest."),
        ) from error


def release_timeout(limit: asyncio.Timeout) -> float:
    """Return the seconds that are left and end the timeout: the caller now enforces the limit itself."""
    when, now = limit.when(), asyncio.get_running_loop().time()
    limit.reschedule(None)
    return max(0.0, (now if when is None else when) - now)
