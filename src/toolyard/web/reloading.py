"""The settings of a server that runs: read again when their files change, and taken over as far as they can be.

The files are looked at every ``LOOK_S`` seconds by what is in them, because not every drive tells of changes and not
every editor writes in place. What has changed is read when it has stayed the same for ``QUIET_S``. With a mistake in
it, or half written, all of the last good settings stay, and the log says what is wrong and where; the files are only
ever read. A setting that somebody here ``takes`` holds at once; the log names the others: they need a restart.
"""

import asyncio
import hashlib
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from toolyard.config import FILE_NAME, HOST_FILE, Config, load
from toolyard.errors import ToolyardError

LOOK_S: Final = 1.0
QUIET_S: Final = 0.3
_log = logging.getLogger("toolyard.web")

Take = Callable[[Config], None]


class Reloading:
    def __init__(self, config: Config, takes: Mapping[str, Take], *, look_s: float = LOOK_S) -> None:
        """``takes``: for each setting that can change while the server runs, who is told the new settings."""
        self.config = config  # the last good ones
        self._takes, self._look_s = takes, look_s
        self._files = tuple(config.home / name for name in (FILE_NAME, HOST_FILE))
        self._turn = asyncio.Lock()  # whoever reads last has read the newest
        self._seen = b""  # nothing: they may have changed since they were read, so the first look reads them

    @property
    def live(self) -> frozenset[str]:
        """The settings that hold at once."""
        return frozenset(self._takes)

    async def at_once(self) -> None:
        """Read the files without waiting: whoever calls this has just written them."""
        self._seen = await asyncio.to_thread(_digest, self._files)
        await self._read()

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            await asyncio.sleep(self._look_s)
            now = await asyncio.to_thread(_digest, self._files)
            if now != self._seen:
                self._seen = await self._quiet(now)
                await self._read()

    async def _quiet(self, now: bytes) -> bytes:
        """What the files hold once nobody writes them any more."""
        while True:
            await asyncio.sleep(QUIET_S)
            before, now = now, await asyncio.to_thread(_digest, self._files)
            if now == before:
                return now

    async def _read(self) -> None:
        async with self._turn:
            await self._take_over()

    async def _take_over(self) -> None:
        old = self.config
        try:
            new = await asyncio.to_thread(
                load, old.project, old.home, plugin_folders=old.plugin_folders, trusts_given=old.trusts_given
            )
        except ToolyardError as error:
            _log.warning("the settings have a mistake, so the last good ones stay: %s", error)
            return
        self.config = new
        changed = new.settings.list_differences(old.settings)
        for take in dict.fromkeys(self._takes[name] for name in changed if name in self._takes):
            take(new)
        held = [name for name in changed if name in self._takes]
        later = [name for name in changed if name not in self._takes]
        if held:
            _log.info("these settings have changed and hold now: %s", ", ".join(held))
        if later:
            _log.warning("these settings have changed, but hold only after a restart: %s", ", ".join(later))


def _digest(files: tuple[Path, ...]) -> bytes:
    """What is in the files; one that cannot be read counts as one that is not there."""
    hashed = hashlib.sha256()
    for file in files:
        try:
            content = file.read_bytes()
        except OSError:
            content = b""
        hashed.update(len(content).to_bytes(8, "big") + content)
    return hashed.digest()
