"""The events of the store, read once and written as JSON once, for everybody who follows them.

The newest ``MOST`` events or ``MOST_BYTES`` are kept at hand. Whoever keeps up reads them from there; whoever begins
further back is first given what the store has kept, and a ``gap`` for what it has not. A follower that had caught up
and then falls behind all that is at hand is dropped, so that nobody makes the server hold more.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final

from toolyard.engine.clock import Clock
from toolyard.engine.feed import GAP, read_feed
from toolyard.protocol.json import JsonObject, json_bytes
from toolyard.protocol.store import Event, Store

MOST: Final = 1000
MOST_BYTES: Final = 4 * 2**20
_PAGE = 200


@dataclass(frozen=True, slots=True)
class Told:
    """One message of ``/ws``: what it says, and as it is sent."""

    seq: int
    type: str
    at: float
    data: JsonObject
    text: str


@dataclass(eq=False, slots=True)
class Follower:
    """How far somebody has read."""

    cursor: int
    caught_up: bool = False
    is_client: bool = True  # else it is the server itself
    dropped: asyncio.Event = field(default_factory=asyncio.Event)


class Feed:
    def __init__(self, store: Store, clock: Clock, *, most: int = MOST, most_bytes: int = MOST_BYTES) -> None:
        self._store, self._clock, self._most, self._most_bytes = store, clock, most, most_bytes
        self._recent: deque[Told] = deque()
        self._bytes = 0
        self._before = 0  # what follows this number is at hand
        self._last = 0  # the newest event that was read
        self._grown = asyncio.Event()
        self._followers: set[Follower] = set()

    @property
    def followers(self) -> int:
        """How many clients there are."""
        return sum(one.is_client for one in self._followers)

    @property
    def last(self) -> int:
        """The newest event that was read."""
        return self._last

    async def start(self) -> None:
        """Know where the store is now, so that whoever connects knows what is new."""
        self._before = self._last = await self.newest()

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            await self._store.next_event(self._last)
            for event in await self._store.events(self._last, limit=_PAGE):
                if event.seq > self._last + 1:  # forgotten before it was read
                    missed: JsonObject = {"from": self._last + 1, "to": event.seq - 1}
                    self._take(told(Event(seq=event.seq - 1, type=GAP, at=event.at, data=missed)))
                self._take(told(event))
            self._drop_the_slow()
            self._grown.set()
            self._grown = asyncio.Event()
            await asyncio.sleep(0)

    async def follow(self, follower: Follower) -> AsyncGenerator[Told, None]:
        """What follows its cursor, until it is dropped. Each has been read when the next one is asked for."""
        self._followers.add(follower)
        try:
            async for one in self._catch_up(follower):
                yield one
                follower.cursor = one.seq
            follower.caught_up = True
            self._drop_the_slow()  # it may have fallen behind while it read that there is no more
            while not follower.dropped.is_set():
                grown = self._grown
                for one in self._after(follower.cursor):
                    yield one
                    follower.cursor = one.seq
                if follower.cursor >= self._last:
                    await grown.wait()
        finally:
            self._followers.discard(follower)

    async def newest(self) -> int:
        """Where somebody begins who wants what comes from now on."""
        return (await self._store.event_span())[1]

    async def _catch_up(self, follower: Follower) -> AsyncGenerator[Told, None]:
        """From the store, up to what is at hand."""
        if follower.cursor < self._before or follower.cursor > self._last:
            async for event in read_feed(self._store, self._clock, follower.cursor, follow=False):
                yield told(event)
                if follower.cursor >= self._before:
                    return

    def _after(self, cursor: int) -> list[Told]:
        found = list(takewhile(lambda one: one.seq > cursor, reversed(self._recent)))
        found.reverse()
        return found

    def _take(self, one: Told) -> None:
        self._recent.append(one)
        self._bytes += len(one.text)
        self._last = one.seq
        while len(self._recent) > self._most or (self._bytes > self._most_bytes and len(self._recent) > 1):
            gone = self._recent.popleft()
            self._bytes -= len(gone.text)
            self._before = gone.seq

    def _drop_the_slow(self) -> None:
        for follower in self._followers:
            if follower.caught_up and follower.cursor < self._before:
                follower.dropped.set()


def told(event: Event) -> Told:
    text = json_bytes({"seq": event.seq, "type": event.type, "at": event.at, "data": event.data}).decode()
    return Told(event.seq, event.type, event.at, event.data, text)
