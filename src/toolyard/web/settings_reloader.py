"""Reloading of settings while a server runs: its files are watched, and live settings are applied.

The content of the files is checked every ``POLL_S`` seconds by what is in them, because not every drive tells of
changes and not every editor writes in place. What has changed is read when it has stayed the same for ``STABLE_S``.
With a mistake in it, or half written, all of the last good settings stay, and the log says what is wrong and where; the
files are only ever read. A setting that somebody here ``takes`` holds at once; the log names the others: they need a
restart.
"""

import asyncio
import hashlib
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from toolyard.config import FILE_NAME, HOST_FILE, Config, load_config
from toolyard.errors import ToolyardError

POLL_S: Final = 1.0
STABLE_S: Final = 0.3
_log = logging.getLogger("toolyard.web")

ApplySettings = Callable[[Config], None]


class SettingsReloader:
    def __init__(self, config: Config, appliers: Mapping[str, ApplySettings], *, poll_s: float = POLL_S) -> None:
        """``appliers``: the function that applies each setting that can change while the server runs."""
        self.config = config  # the last good ones
        self._appliers, self._poll_s = appliers, poll_s
        self._files = tuple(config.home / name for name in (FILE_NAME, HOST_FILE))
        self._turn = asyncio.Lock()  # the last to read has read the newest
        self._seen = b""  # empty: the files may have changed since they were read, so the first check reloads them

    @property
    def live_names(self) -> frozenset[str]:
        """The names of the settings that take effect at once."""
        return frozenset(self._appliers)

    async def reload_now(self) -> None:
        """Reload at once, after the caller has written the files."""
        self._seen = await asyncio.to_thread(_digest, self._files)
        await self._reload()

    async def run(self) -> None:
        """Watch the files until cancelled."""
        while True:
            await asyncio.sleep(self._poll_s)
            now = await asyncio.to_thread(_digest, self._files)
            if now != self._seen:
                self._seen = await self._wait_until_stable(now)
                await self._reload()

    async def _wait_until_stable(self, now: bytes) -> bytes:
        """Return the digest of the files once they have stopped changing."""
        while True:
            await asyncio.sleep(STABLE_S)
            before, now = now, await asyncio.to_thread(_digest, self._files)
            if now == before:
                return now

    async def _reload(self) -> None:
        async with self._turn:
            await self._apply()

    async def _apply(self) -> None:
        old = self.config
        try:
            new = await asyncio.to_thread(
                load_config, old.project, old.home, plugin_folders=old.plugin_folders, trusts_given=old.trusts_given
            )
        except ToolyardError as error:
            _log.warning("the settings have an error, so the last valid ones stay in effect: %s", error)
            return
        self.config = new
        changed = new.settings.list_differences(old.settings)
        for apply in dict.fromkeys(self._appliers[name] for name in changed if name in self._appliers):
            apply(new)
        held = [name for name in changed if name in self._appliers]
        later = [name for name in changed if name not in self._appliers]
        if held:
            _log.info("these settings have changed and are in effect: %s", ", ".join(held))
        if later:
            _log.warning("these settings have changed, but take effect only after a restart: %s", ", ".join(later))


def _digest(files: tuple[Path, ...]) -> bytes:
    """Return a digest of the files; an unreadable one counts as missing."""
    hashed = hashlib.sha256()
    for file in files:
        try:
            content = file.read_bytes()
        except OSError:
            content = b""
        hashed.update(len(content).to_bytes(8, "big") + content)
    return hashed.digest()
