"""The bell of the shared store: it rings in this process when any host has committed events or sent signals.

For events PostgreSQL's NOTIFY carries only the number of the newest one. A bell that does not ring (the connection is
lost, the server restarts) delays nobody for longer than ``POLL_S``: whoever waits looks by themselves then. Who listens
for signals is told when some may have been missed.
"""

import asyncio
from typing import TYPE_CHECKING, Any

import asyncpg

from toolyard.protocol.store import Signal, SignalListener
from toolyard.storage.postgres_server import PASSING, Server

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

POLL_S = 1.0
_PAUSES_S = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


class Bell:
    """``newest`` is a number that is known to be there; 0 when nothing is known."""

    def __init__(self, server: Server, channel: str, signals: str) -> None:
        self.newest = 0
        self._server = server
        self._channel, self._signals = channel, signals
        self._hearers: list[SignalListener] = []
        self._rung = asyncio.Event()
        self._listening: asyncio.Task[None] | None = None

    def ring(self, newest: int) -> None:
        self.newest = max(self.newest, newest)
        self._rung.set()
        self._rung = asyncio.Event()

    def next_ring(self) -> asyncio.Event:
        """Ask for it before looking: then nothing can come in between."""
        self._begin()
        return self._rung

    def subscribe(self, hear: SignalListener) -> None:
        self._hearers.append(hear)
        self._begin()

    def _begin(self) -> None:
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
        """Until the connection ends."""
        ended = asyncio.Event()
        db.add_termination_listener(lambda _: ended.set())
        try:
            await db.add_listener(self._channel, self._heard)
            await db.add_listener(self._signals, self._heard_signal)
            self.ring(0)  # what came before this was not heard
            self._tell(None)
            await ended.wait()
        except (*PASSING, asyncpg.PostgresError):
            pass
        finally:
            self.newest = 0  # a crash may have taken back what was not lasting
            db.terminate()

    def _heard(self, _db: "asyncpg.Connection | PoolConnectionProxy", _pid: int, _channel: str, payload: Any) -> None:
        self.ring(int(payload))

    def _heard_signal(
        self, _db: "asyncpg.Connection | PoolConnectionProxy", _pid: int, _channel: str, payload: Any
    ) -> None:
        type_, _, id_ = str(payload).partition(" ")
        self._tell(Signal(type_, id_))

    def _tell(self, signal: Signal | None) -> None:
        for hear in self._hearers:
            hear(signal)
