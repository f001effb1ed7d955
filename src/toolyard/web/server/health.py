"""The health of the server: whether it accepts work and is ready for it, and whether its state file is sound.

``Drain`` counts running requests and says whether new ones are accepted. The server is ready when it is not shutting
down, its store answers and its last write succeeded. After a failed write, such as on a full disk, a readiness check
writes a small record itself: once after other requests succeeded, else at most every ``RETRY_S``. So the server is
ready again as soon as there is room, even when nobody sends requests to a server that is not ready.

The state file gets a quick check at start, and full ones in the background. Damage found at start prevents it. Damage
found later is logged and shown by ``/v1/status`` until a check passes; the server keeps running, because most of its
state may still be intact.
"""

import asyncio
import logging
from http import HTTPStatus
from pathlib import Path
from typing import Final

from toolyard.engine.clock import Clock
from toolyard.errors import StorageBusy, StorageError, StorageUnwritable
from toolyard.message import Message
from toolyard.protocol.store import Record, Store
from toolyard.storage.state_file import check
from toolyard.web.refusal import Refusal

GRACE_S: Final = 20.0
RETRY_S: Final = 5.0
_STATE_S = 2.0
INTERVAL_S: Final = 7 * 86_400.0
MAX_QUICK_BYTES: Final = 128 * 2**20  # a third of a second; a larger file is checked in the background only
_KIND, _ID, _STATE = "probe", "readiness", "kept"
_log = logging.getLogger(__name__)


class Drain:
    """The state of a server that accepts work or is shutting down. Each request runs in ``with drain:``."""

    def __init__(self) -> None:
        self.is_ending = False
        self.refuses_work = False  # a server whose socket goes to the next one gets no new requests to refuse
        self.storage_fault = ""  # why the last write failed; empty: it did not
        self.has_new_writes = False  # since the fault was last checked: it may be over
        self._running = 0
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def running_count(self) -> int:
        return self._running

    @property
    def problem(self) -> str:
        """The reason why no new work is accepted; empty when it is."""
        if self.refuses_work:
            return Message("the server is shutting down")
        return self.storage_fault

    def __enter__(self) -> None:
        """A request begins."""
        self._running += 1
        self._idle.clear()

    def __exit__(self, *_: object) -> None:
        self._running -= 1
        if not self._running:
            self._idle.set()

    def require_open(self) -> None:
        if self.refuses_work:
            raise Refusal(
                HTTPStatus.SERVICE_UNAVAILABLE,
                Message("the server is shutting down: try again when it is back"),
                headers={"Retry-After": "5"},
            )

    async def wait_idle(self) -> None:
        """Wait until no request is running."""
        await self._idle.wait()


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
