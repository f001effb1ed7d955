"""Hot reload: call ``changed`` soon after something in the plugin folders was touched.

The system's own notices come first: ``changed`` is called when nothing has been touched for a short while, so that a
file in the middle of being written is rarely looked at. Notices are only a hint: some drives send none, and a system
can run out of watches; so ``changed`` is also called every few seconds. It must be cheap when nothing has changed.

Folders are watched one by one, not with all that is below them: what is installed in node_modules is nobody's change.
"""

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import aclosing
from pathlib import Path

from toolyard.plugins.package.discovery import DISABLED_FILE
from toolyard.plugins.package.fingerprint import is_code, is_own_folder
from toolyard.plugins.package.plugin import BLOCK, CONFIG, MANIFEST
from toolyard.plugins.package.trust import FILE_NAME as TRUST_FILE

_log = logging.getLogger(__name__)
QUIET_S = 0.3
LONGEST_S = 3.0  # changes without a pause are looked at after this time all the same
EVERY_S = 5.0
_ALWAYS = frozenset({MANIFEST, BLOCK, CONFIG, TRUST_FILE, DISABLED_FILE})


async def watch_folders(
    places: Callable[[], Collection[Path]],
    changed: Callable[[], None],
    *,
    stop: asyncio.Event,
    quiet_s: float = QUIET_S,
    every_s: float = EVERY_S,
) -> None:
    """Watch until ``stop`` is set. ``places`` returns the folders to watch; asked again after each ``changed``."""
    while not stop.is_set():
        watched = frozenset(places())
        try:
            async with aclosing(_wait_for_changes(watched, stop, quiet_s, every_s)) as notices:
                async for _ in notices:
                    changed()
                    if frozenset(places()) != watched:
                        break
        except (OSError, RuntimeError) as error:  # a folder has just gone, or there are no watches left
            _log.info("plugin folders are looked at every %g s only: %s", every_s, error)
            if not await _wait_stopped(stop, every_s):
                changed()


async def _wait_for_changes(
    watched: frozenset[Path], stop: asyncio.Event, quiet_s: float, every_s: float
) -> AsyncGenerator[None, None]:
    """Yield each time the folders should be read."""
    from watchfiles import awatch

    while not watched:
        if await _wait_stopped(stop, every_s):
            return
        yield
    batches = awatch(
        *watched,
        watch_filter=None,
        step=round(quiet_s * 1000),
        debounce=round(LONGEST_S * 1000),
        rust_timeout=round(every_s * 1000),
        yield_on_timeout=True,
        stop_event=stop,
        recursive=False,
        ignore_permission_denied=True,
    )
    idle_s = 0.0
    async with aclosing(batches):
        async for batch in batches:
            idle_s += quiet_s if batch else every_s  # a batch of changes takes at least the quiet time
            if idle_s >= every_s or any(is_relevant(path) for _, path in batch):
                idle_s = 0.0
                yield


async def _wait_stopped(stop: asyncio.Event, seconds: float) -> bool:
    try:
        return await asyncio.wait_for(stop.wait(), seconds)
    except TimeoutError:
        return False


def is_relevant(path: str) -> bool:
    """Return whether a path may decide what runs: code, settings, folders; not what plugins write while they run."""
    name = os.path.basename(path)
    if name in _ALWAYS or is_code(name):
        return True
    return is_own_folder(name) and (os.path.isdir(path) or not os.path.splitext(name)[1])
