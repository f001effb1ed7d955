"""Readiness: the server is not shutting down, its store answers, and its last write succeeded.

After a failed write, such as on a full disk, a readiness check writes a small record itself: once after other requests
succeeded, else at most every ``RETRY_S``. So the server is ready again as soon as there is room, even when nobody sends
requests to a server that is not ready.
"""

import asyncio
from typing import Final

from toolyard.engine.clock import Clock
from toolyard.errors import StorageError
from toolyard.message import Message
from toolyard.protocol.store import Record, Store
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
            return self._drain.problem or Message(
                "state.silent", "the store did not answer within {seconds:g} s", seconds=_STATE_S
            )
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
