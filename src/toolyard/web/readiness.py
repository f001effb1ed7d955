"""Whether a server takes work: it is not ending, its state answers, and its last write was one that could be done.

After a write that failed, such as on a full disk, it tries a small one itself when somebody asks: after other work was
done, which may have written nothing, else no more often than every ``RETRY_S``. So it is ready again as soon as there
is room, also when nobody sends work to a server that is not.
"""

import asyncio
from typing import Final

from toolyard.engine.clock import Clock
from toolyard.errors import StorageError
from toolyard.protocol.store import Record, Store
from toolyard.web.drain import Drain

RETRY_S: Final = 5.0
_STATE_S = 2.0
_KIND, _ID, _STATE = "probe", "readiness", "kept"


class Readiness:
    def __init__(self, store: Store, drain: Drain, clock: Clock) -> None:
        self._store, self._drain, self._clock = store, drain, clock
        self._next = 0.0  # when to try again

    async def problem(self) -> str:
        """Why no work is taken; empty: it is."""
        try:
            async with asyncio.timeout(_STATE_S):
                if self._drain.storage_fault and (self._drain.worked or self._clock.monotonic() >= self._next):
                    self._drain.worked = False
                    self._next = self._clock.monotonic() + RETRY_S
                    await self._write()
                    self._drain.storage_fault = ""
                await self._store.event_span()
        except TimeoutError:
            return self._drain.problem or f"the state did not answer within {_STATE_S:g} s"
        except StorageError as error:
            return self._drain.problem or str(error)
        return self._drain.problem

    async def _write(self) -> None:
        """Whether this host or another one wins, something was written."""
        before, now = await self._store.get(_KIND, _ID), self._clock.now().timestamp()
        version, created = (before.version, before.created) if before else (0, now)
        await self._store.commit(
            [Record(kind=_KIND, id=_ID, state=_STATE, version=version, created=created, updated=now)]
        )
