"""The signals that a host needs for its calls elsewhere: each wakes exactly those who wait for it.

A signal that was missed delays nobody for long: whoever waits looks by themselves after a while, and at once when the
store says that some were missed. Signals are no events: what hosts tell each other takes no number that clients see.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from toolyard.hosts.directory import MOVED
from toolyard.hosts.remote_call import DONE, STOP
from toolyard.protocol.store import SharedStore, Signal


class Mail:
    """``stop`` gets the id of a call that its sender wants stopped; ``moved`` is called when a host comes or goes.

    ``missed`` is called when a signal to stop may not have been heard.
    """

    def __init__(
        self,
        store: SharedStore,
        *,
        stop: Callable[[str], object],
        moved: Callable[[], None],
        missed: Callable[[], None],
    ) -> None:
        self._stop, self._moved, self._missed = stop, moved, missed
        self._waiting: dict[str, asyncio.Event] = {}
        store.subscribe(self._hear)

    @contextmanager
    def expecting(self, call_id: str) -> Iterator[asyncio.Event]:
        """An event that is set when the call may have ended."""
        self._waiting[call_id] = rung = asyncio.Event()
        try:
            yield rung
        finally:
            del self._waiting[call_id]

    def _hear(self, signal: Signal | None) -> None:
        if signal is None:
            for rung in self._waiting.values():
                rung.set()
            self._missed()
        elif signal.type == DONE:
            if waiting := self._waiting.get(signal.id):
                waiting.set()
        elif signal.type == STOP:
            self._stop(signal.id)
        elif signal.type == MOVED:
            self._moved()
