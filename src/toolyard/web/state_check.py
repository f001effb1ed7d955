"""Looking for damage in the state file of a server: quickly at its start, as a whole beside its work.

Damage that is found at the start refuses it. What a later look finds is logged and shown by ``/v1/status`` until a look
finds nothing; the server goes on, because most of what it does may still be right.
"""

import asyncio
import logging
from pathlib import Path
from typing import Final

from toolyard.errors import StorageBusy, StorageError, StorageUnwritable
from toolyard.storage.state_file import check

EVERY_S: Final = 7 * 86_400.0
MAX_QUICK_BYTES: Final = 128 * 2**20  # a third of a second; a larger file is looked at only beside the work
_log = logging.getLogger(__name__)


class StateCheck:
    """``file``: None when the state is in a database, which has tools of its own."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self.problem = ""  # what the last look found

    async def require_sound(self) -> None:
        """Look quickly. Raises StorageError."""
        file = self._file
        if file is not None and file.exists() and file.stat().st_size <= MAX_QUICK_BYTES:
            await asyncio.to_thread(check, file)

    async def run(self) -> None:
        """Look at the whole file now and every ``EVERY_S``, until it is cancelled."""
        while self._file is not None:
            self.problem = await asyncio.to_thread(_find_damage, self._file)
            if self.problem:
                _log.error("%s", self.problem)
            await asyncio.sleep(EVERY_S)


def _find_damage(file: Path) -> str:
    try:
        check(file, whole=True)
    except (StorageBusy, StorageUnwritable):
        return ""  # out of reach is not damaged; whoever writes next says so
    except StorageError as error:
        return str(error)
    return ""
