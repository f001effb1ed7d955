"""The event feed: events of the store, read and encoded once for all followers.

The newest ``MAX_EVENTS`` events, at most ``MAX_BYTES``, are buffered. A follower that keeps up reads from the buffer;
one that begins further back first gets the stored events, and a ``gap`` for those that are gone. A follower that had
caught up and then falls behind the buffer is dropped, so that none makes the server hold more.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final

from toolyard.engine.clock import Clock
from toolyard.engine.history.stored_events import GAP, read_feed
from toolyard.protocol.json import JsonObject, json_bytes
from toolyard.protocol.store import Event, Store

MAX_EVENTS: Final = 1000
MAX_BYTES: Final = 4 * 2**20
_PAGE = 200


@dataclass(frozen=True, slots=True)
class ClientEvent:
    """An event as clients of ``/ws`` get it; ``text`` is its JSON."""

    seq: int
    type: str
    at: float
    data: JsonObject
    text: str


@dataclass(eq=False, slots=True)
class Follower:
    """A reader of the feed and its position."""

    cursor: int
    is_caught_up: bool = False
    is_client: bool = True  # False for readers within the server
    dropped: asyncio.Event = field(default_factory=asyncio.Event)


class Feed:
    def __init__(self, store: Store, clock: Clock, *, most: int = MAX_EVENTS, most_bytes: int = MAX_BYTES) -> None:
        self._store, self._clock, self._most, self._most_bytes = store, clock, most, most_bytes
        self._recent: deque[ClientEvent] = deque()
        self._bytes = 0
        self._before = 0  # events after this number are buffered
        self._last = 0  # the newest event that was read
        self._has_grown = asyncio.Event()
        self._followers: set[Follower] = set()

    @property
    def client_count(self) -> int:
        """The number of connected clients."""
        return sum(one.is_client for one in self._followers)

    @property
    def last_seq(self) -> int:
        """The number of the newest event that was read."""
        return self._last

    async def start(self) -> None:
        """Read the number of the newest event, from which new followers start."""
        self._before = self._last = await self.read_newest_seq()

    async def run(self) -> None:
        """Read events until cancelled."""
        while True:
            await self._store.next_event(self._last)
            for event in await self._store.events(self._last, limit=_PAGE):
                if event.seq > self._last + 1:  # removed before it was read
                    missed: JsonObject = {"from": self._last + 1, "to": event.seq - 1}
                    self._append(to_client_event(Event(seq=event.seq - 1, type=GAP, at=event.at, data=missed)))
                self._append(to_client_event(event))
            self._drop_slow_followers()
            self._has_grown.set()
            self._has_grown = asyncio.Event()
            await asyncio.sleep(0)

    async def follow(self, follower: Follower) -> AsyncGenerator[ClientEvent, None]:
        """Yield the events after the follower's cursor until it is dropped; taking the next one confirms the last."""
        self._followers.add(follower)
        try:
            async for one in self._catch_up(follower):
                yield one
                follower.cursor = one.seq
            follower.is_caught_up = True
            self._drop_slow_followers()  # it may have fallen behind meanwhile
            while not follower.dropped.is_set():
                grown = self._has_grown
                for one in self._list_after(follower.cursor):
                    yield one
                    follower.cursor = one.seq
                if follower.cursor >= self._last:
                    await grown.wait()
        finally:
            self._followers.discard(follower)

    async def read_newest_seq(self) -> int:
        """Return the number of the newest stored event."""
        return (await self._store.event_span())[1]

    async def _catch_up(self, follower: Follower) -> AsyncGenerator[ClientEvent, None]:
        """Yield stored events up to the first buffered one."""
        if follower.cursor < self._before or follower.cursor > self._last:
            async for event in read_feed(self._store, self._clock, follower.cursor, follow=False):
                yield to_client_event(event)
                if follower.cursor >= self._before:
                    return

    def _list_after(self, cursor: int) -> list[ClientEvent]:
        events = list(takewhile(lambda one: one.seq > cursor, reversed(self._recent)))
        events.reverse()
        return events

    def _append(self, one: ClientEvent) -> None:
        self._recent.append(one)
        self._bytes += len(one.text)
        self._last = one.seq
        while len(self._recent) > self._most or (self._bytes > self._most_bytes and len(self._recent) > 1):
            gone = self._recent.popleft()
            self._bytes -= len(gone.text)
            self._before = gone.seq

    def _drop_slow_followers(self) -> None:
        for follower in self._followers:
            if follower.is_caught_up and follower.cursor < self._before:
                follower.dropped.set()


def to_client_event(event: Event) -> ClientEvent:
    text = json_bytes({"seq": event.seq, "type": event.type, "at": event.at, "data": event.data}).decode()
    return ClientEvent(event.seq, event.type, event.at, event.data, text)
