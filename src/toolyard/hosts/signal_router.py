"""The router of signals between hosts: each signal wakes exactly those who wait for it.

A signal that was missed delays nobody for long: whoever waits looks by themselves after a while, and at once when the
store says that some were missed. Signals are no events: what hosts tell each other takes no number that clients see.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from toolyard.hosts.directory import HOSTS_CHANGED
from toolyard.hosts.remote_calls import DONE, STOP
from toolyard.protocol.store import SharedStore, Signal


class SignalRouter:
    """Calls ``stop`` with the id of a call that its sender stops, and ``moved`` when a host comes or goes.

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
        store.subscribe(self._handle_signal)

    @contextmanager
    def expect_end(self, call_id: str) -> Iterator[asyncio.Event]:
        """Yield an event that is set when the call may have ended."""
        self._waiting[call_id] = ended = asyncio.Event()
        try:
            yield ended
        finally:
            del self._waiting[call_id]

    def _handle_signal(self, signal: Signal | None) -> None:
        if signal is None:
            for ended in self._waiting.values():
                ended.set()
            self._missed()
        elif signal.type == DONE:
            if waiting := self._waiting.get(signal.id):
                waiting.set()
        elif signal.type == STOP:
            self._stop(signal.id)
        elif signal.type == HOSTS_CHANGED:
            self._moved()
