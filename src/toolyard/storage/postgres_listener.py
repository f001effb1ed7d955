"""The listener of the shared store: it is notified when any host has committed events or sent signals.

For events PostgreSQL's NOTIFY carries only the number of the newest one. A bell that does not ring (the connection is
lost, the server restarts) delays nobody for longer than ``POLL_S``: whoever waits looks by themselves then. Who listens
for signals is told when some may have been missed.
"""

import asyncio
from typing import TYPE_CHECKING, Any

import asyncpg

from toolyard.protocol.store import Signal, SignalListener
from toolyard.storage.postgres_server import PASSING, PostgresServer

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

POLL_S = 1.0
_PAUSES_S = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


class PostgresListener:
    """Notifications of one database. ``newest`` is an event number that is known to exist; 0 when none is."""

    def __init__(self, server: PostgresServer, channel: str, signals: str) -> None:
        self.newest = 0
        self._server = server
        self._channel, self._signals = channel, signals
        self._hearers: list[SignalListener] = []
        self._rung = asyncio.Event()
        self._listening: asyncio.Task[None] | None = None

    def notify(self, newest: int) -> None:
        self.newest = max(self.newest, newest)
        self._rung.set()
        self._rung = asyncio.Event()

    def next_notification(self) -> asyncio.Event:
        """Ask for it before looking: then nothing can come in between."""
        self._start_listening()
        return self._rung

    def subscribe(self, hear: SignalListener) -> None:
        self._hearers.append(hear)
        self._start_listening()

    def _start_listening(self) -> None:
        if self._listening is None or self._listening.done():
            self._listening = asyncio.create_task(self._listen(), name="toolyard-state-bell")

    async def close(self) -> None:
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait([self._listening])

    async def _listen(self) -> None:
        failures = 0
        while True:
            try:
                db = await self._server.connect()
            except (*PASSING, asyncpg.PostgresError):
                failures += 1
            else:
                failures = 0
                await self._listen_on(db)
            await asyncio.sleep(_PAUSES_S[min(failures, len(_PAUSES_S) - 1)])

    async def _listen_on(self, db: asyncpg.Connection) -> None:
        """Listen until the connection ends."""
        ended = asyncio.Event()
        db.add_termination_listener(lambda _: ended.set())
        try:
            await db.add_listener(self._channel, self._on_event)
            await db.add_listener(self._signals, self._on_signal)
            self.notify(0)  # what came before this was not heard
            self._deliver_signal(None)
            await ended.wait()
        except (*PASSING, asyncpg.PostgresError):
            pass
        finally:
            self.newest = 0  # a crash may have taken back what was not lasting
            db.terminate()

    def _on_event(
        self, _db: "asyncpg.Connection | PoolConnectionProxy", _pid: int, _channel: str, payload: Any
    ) -> None:
        self.notify(int(payload))

    def _on_signal(
        self, _db: "asyncpg.Connection | PoolConnectionProxy", _pid: int, _channel: str, payload: Any
    ) -> None:
        type_, _, id_ = str(payload).partition(" ")
        self._deliver_signal(Signal(type_, id_))

    def _deliver_signal(self, signal: Signal | None) -> None:
        for hear in self._hearers:
            hear(signal)
