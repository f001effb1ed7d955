"""Integrity checks of the state file: a quick one at start, full ones in the background.

Damage found at start prevents it. Damage found later is logged and shown by ``/v1/status`` until a check passes; the
server keeps running, because most of its state may still be intact.
"""

import asyncio
import logging
from pathlib import Path
from typing import Final

from toolyard.errors import StorageBusy, StorageError, StorageUnwritable
from toolyard.storage.state_file import check

INTERVAL_S: Final = 7 * 86_400.0
MAX_QUICK_BYTES: Final = 128 * 2**20  # a third of a second; a larger file is checked in the background only
_log = logging.getLogger(__name__)


class StateCheck:
    """The check of one state file; ``file`` is None when the state is in PostgreSQL, which has its own tools."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self.problem = ""  # result of the last check

    async def require_sound(self) -> None:
        """Run the quick check. Raises StorageError."""
        file = self._file
        if file is not None and file.exists() and file.stat().st_size <= MAX_QUICK_BYTES:
            await asyncio.to_thread(check, file)

    async def run(self) -> None:
        """Run the full check now and every ``INTERVAL_S``, until cancelled."""
        while self._file is not None:
            self.problem = await asyncio.to_thread(_find_damage, self._file)
            if self.problem:
                _log.error("%s", self.problem)
            await asyncio.sleep(INTERVAL_S)


def _find_damage(file: Path) -> str:
    try:
        check(file, whole=True)
    except (StorageBusy, StorageUnwritable):
        return ""  # unreachable is not damaged; the next write reports it
    except StorageError as error:
        return str(error)
    return ""
