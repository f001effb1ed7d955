"""A step that writes to the store, repeated until it can be written."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from toolyard.errors import StorageError

_log = logging.getLogger(__name__)
_RETRY_S = 0.5


async def retry_until_stored(step: Callable[..., Awaitable[None]], *arguments: object) -> None:
    """Repeat ``step`` while the store cannot be used: a supervisor that gave up would abandon its child."""
    while True:
        try:
            return await step(*arguments)
        except StorageError as error:
            _log.warning("a task is watched on, though nothing can be stored: %s", error)
            await asyncio.sleep(_RETRY_S)
