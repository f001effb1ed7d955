"""The one reader of events that a host needs for its calls elsewhere: it wakes exactly those who wait for one.

An event that was missed delays nobody for long: whoever waits looks by themselves after a while.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from toolyard.errors import StorageError
from toolyard.hosts.remote_call import DONE_EVENT, STOP_EVENT
from toolyard.protocol.store import Event, Store

_log = logging.getLogger(__name__)
_PAUSE_S = 1.0
_CALM_S = 0.05  # a host that waits for nothing reads what came meanwhile together
_PAGE = 500


class Mail:
    """``stop`` gets the id of a call that its sender wants stopped; ``moved`` is called when a host comes or goes."""

    def __init__(self, store: Store, *, stop: Callable[[str], object], moved: Callable[[], None]) -> None:
        self._store, self._stop, self._moved = store, stop, moved
        self._waiting: dict[str, asyncio.Event] = {}
        self._after = 0

    async def open(self) -> None:
        """From here on nothing is missed."""
        _, self._after = await self._store.event_span()

    @contextmanager
    def expecting(self, call_id: str) -> Iterator[asyncio.Event]:
        """An event that is set when the call may have ended."""
        self._waiting[call_id] = rung = asyncio.Event()
        try:
            yield rung
        finally:
            del self._waiting[call_id]

    async def serve(self) -> None:
        """Until it is cancelled."""
        while True:
            try:
                await self._store.next_event(self._after)
                if not self._waiting:
                    await asyncio.sleep(_CALM_S)
                await self._read()
            except StorageError as error:
                _log.warning("events cannot be read: %s", error)
                await asyncio.sleep(_PAUSE_S)

    async def _read(self) -> None:
        while page := await self._store.events(self._after, limit=_PAGE):
            if page[0].seq != self._after + 1:  # some were forgotten: whoever waits looks for themselves
                for rung in self._waiting.values():
                    rung.set()
            for event in page:
                self._deliver(event)
            self._after = page[-1].seq
            if len(page) < _PAGE:
                return

    def _deliver(self, event: Event) -> None:
        if event.type == DONE_EVENT:
            rung = self._waiting.get(str(event.data["id"]))
            if rung is not None:
                rung.set()
        elif event.type == STOP_EVENT:
            self._stop(str(event.data["id"]))
        elif event.type.startswith("host."):
            self._moved()
