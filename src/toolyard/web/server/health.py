"""The health of the server: whether it is ready for work, and whether its state file is sound.

It is ready when it is not shutting down, its store answers and its last write succeeded. After a failed write, such as
on a full disk, a readiness check writes a small record itself: once after other requests succeeded, else at most every
``RETRY_S``. So the server is ready again as soon as there is room, even when nobody sends requests to a server that is
not ready.

The state file gets a quick check at start, and full ones in the background. Damage found at start prevents it. Damage
found later is logged and shown by ``/v1/status`` until a check passes; the server keeps running, because most of its
state may still be intact.
"""

import asyncio
import logging
from pathlib import Path
from typing import Final

from toolyard.engine.clock import Clock
from toolyard.errors import StorageBusy, StorageError, StorageUnwritable
from toolyard.message import Message
from toolyard.protocol.store import Record, Store
from toolyard.storage.state_file import check
from toolyard.web.drain import Drain

RETRY_S: Final = 5.0
_STATE_S = 2.0
_KIND, _ID, _STATE = "probe", "readiness", "kept"


class Readiness:
    def __init__(self, store: Store, drain: Drain, clock: Clock) -> None:
        self._store, self._drain, self._clock = store, drain, clock
        self._next = 0.0  # when to try again

    async def find_problem(self) -> str:
        """Return why the server is not ready; empty when it is."""
        try:
            async with asyncio.timeout(_STATE_S):
                if self._drain.storage_fault and (self._drain.has_new_writes or self._clock.monotonic() >= self._next):
                    self._drain.has_new_writes = False
                    self._next = self._clock.monotonic() + RETRY_S
                    await self._probe_write()
                    self._drain.storage_fault = ""
                await self._store.event_span()
        except TimeoutError:
            return self._drain.problem or Message("the store did not answer within {seconds:g} s", seconds=_STATE_S)
        except StorageError as error:
            return self._drain.problem or str(error)
        return self._drain.problem

    async def _probe_write(self) -> None:
        """Write a small record. A conflict with another host proves the same."""
        before, now = await self._store.get(_KIND, _ID), self._clock.now().timestamp()
        version, created = (before.version, before.created) if before else (0, now)
        await self._store.commit(
            [Record(kind=_KIND, id=_ID, state=_STATE, version=version, created=created, updated=now)]
        )


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
