"""A store whose commits can be held before or after they are durable."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from tests.waiting import run_loop_once
from toolyard.protocol.store import NewEvent, Record, Signal
from toolyard.storage.memory_store import MemoryStore


class HeldStore(MemoryStore):
    """Holds one commit until ``go`` is set; ``held`` says that it does."""

    def __init__(self) -> None:
        super().__init__()
        self.held, self.go = asyncio.Event(), asyncio.Event()
        self._state, self._kept = "", False

    def hold(self, state: str, *, kept: bool) -> None:
        """The next commit of a record in that state, before it is kept or after it."""
        self._state, self._kept = state, kept
        self.held.clear()
        self.go.clear()

    async def commit(
        self,
        changes: Sequence[Record],
        events: Sequence[NewEvent] = (),
        *,
        lasting: bool = True,
        signals: Sequence[Signal] = (),
    ) -> bool:
        commit = partial(super().commit, changes, events, lasting=lasting, signals=signals)
        if self._state not in [record.state for record in changes]:
            return await commit()
        self._state = ""
        won = self._kept and await commit()
        self.held.set()
        await self.go.wait()
        return won if self._kept else await commit()


async def cancelled(waiting: "asyncio.Future[Any]", store: HeldStore) -> None:
    """Cancel who waits for the held commit, then let that go; until all of it has ended."""
    async with asyncio.timeout(60):
        await store.held.wait()
        waiting.cancel()
        await run_loop_once()  # the cancel is there first
        store.go.set()
        await asyncio.wait({waiting})
    assert waiting.cancelled()
