"""A store in memory: the public twin of the durable ones, for tests and for processes that need nothing kept.

It keeps the whole contract of ``protocol.store`` but one thing: nothing survives the process.
"""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice

from toolyard.protocol.search_words import LONG_TEXT, list_prefixes, list_words
from toolyard.protocol.store import (
    HELD,
    LEASE,
    MAX_LEASES,
    Event,
    Lease,
    NewEvent,
    PageCursor,
    Query,
    Record,
    Signal,
    SignalListener,
    read_term,
)

_AT_ONCE = 500_000  # characters that a search looks at before others have their turn


class MemoryStore:
    """A store in memory, for one event loop."""

    is_shared = False

    def __init__(self) -> None:
        self._records: dict[str, dict[str, Record]] = {}
        self._words: dict[tuple[str, str], str] = {}  # of each record that has any, each after a blank
        self._events: list[Event] = []
        self._forgotten = 0  # events with numbers up to this one are gone
        self._grown = asyncio.Condition()
        self._hearers: list[SignalListener] = []

    async def commit(
        self,
        changes: Sequence[Record],
        events: Sequence[NewEvent] = (),
        *,
        lasting: bool = True,  # noqa: ARG002 nothing here lasts
        signals: Sequence[Signal] = (),
    ) -> bool:
        for record in changes:
            json.dumps(record.body)  # what no other store could keep is refused here too
        words = await _find_words(changes)
        async with self._grown:
            for record in changes:
                stored = self._records.get(record.kind, {}).get(record.id)
                if (stored.version if stored else 0) != record.version:
                    return False
            for record, its_words in zip(changes, words, strict=True):
                self._records.setdefault(record.kind, {})[record.id] = replace(record, version=record.version + 1)
                self._words[record.kind, record.id] = its_words
            last = self._forgotten + len(self._events)
            self._events += [
                Event(seq=seq, type=event.type, at=event.at, data=event.data)
                for seq, event in enumerate(events, last + 1)
            ]
            self._grown.notify_all()
        for signal in signals:
            for hear in self._hearers:
                hear(signal)
        return True

    def subscribe(self, hear: SignalListener) -> None:
        self._hearers.append(hear)

    async def get(self, kind: str, id: str) -> Record | None:  # noqa: A002
        return self._records.get(kind, {}).get(id)

    async def find(self, kind: str, query: Query, *, limit: int, after: PageCursor | None = None) -> list[Record]:
        by_due = query.due_until is not None

        def place(record: Record) -> tuple[float, str]:
            return record.updated if query.by_change else record.created, record.id

        records = sorted(
            await self._find_matching(kind, query),
            key=lambda record: (record.due or 0.0, record.id) if by_due else place(record),
            reverse=not by_due,
        )
        if after is not None:
            records = [record for record in records if place(record) < (after.at, after.id)]
        return records[:limit]

    async def count(self, kind: str, query: Query) -> int:
        return len(await self._find_matching(kind, query))

    async def remove(self, kind: str, before: float, *, states: Sequence[str], limit: int) -> int:
        old = (r for r in self._records.get(kind, {}).values() if r.updated < before and r.state in states)
        doomed = [record.id for record in islice(old, limit)]
        for id_ in doomed:
            del self._records[kind][id_]
            self._words.pop((kind, id_), None)
        return len(doomed)

    async def events(self, after: int, *, limit: int) -> list[Event]:
        start = max(0, after - self._forgotten)
        return self._events[start : start + limit]

    async def event_span(self) -> tuple[int, int]:
        return self._forgotten + 1, self._forgotten + len(self._events)

    async def forget_events(self, before: float, *, limit: int) -> int:
        old = next((n for n, event in enumerate(self._events) if event.at >= before), len(self._events))
        gone = min(old, limit)
        del self._events[:gone]
        self._forgotten += gone
        return gone

    async def next_event(self, after: int) -> None:
        async with self._grown:
            await self._grown.wait_for(lambda: self._forgotten + len(self._events) > after)

    def put_lease(self, lease: Record) -> None:
        """Keep a lease, which nobody else changes at the same time."""
        self._records.setdefault(LEASE, {})[lease.id] = lease

    def remove_lease(self, holder: str) -> None:
        self._records.get(LEASE, {}).pop(holder, None)

    async def close(self) -> None:
        pass

    async def _find_matching(self, kind: str, query: Query) -> list[Record]:
        """Return the records that match. A search through much text lets others work in between."""
        prefixes, looked_at, matching = list_prefixes(query.text), 0, []
        for record in list(self._records.get(kind, {}).values()):
            if not _matches(record, query):
                continue
            words = self._words.get((kind, record.id), "") if prefixes else ""
            if all(f" {prefix}" in words for prefix in prefixes):
                matching.append(record)
            looked_at += len(words)
            if looked_at > _AT_ONCE:
                looked_at = 0
                await asyncio.sleep(0)
        return matching


class MemoryLeases:
    """The leases in a ``MemoryStore``; ``now`` is its clock."""

    def __init__(self, store: MemoryStore, now: Callable[[], float]) -> None:
        self._store, self._now = store, now

    async def acquire(self, holder: str, seconds: float) -> tuple[int, float]:
        before = await self._store.get(LEASE, holder)
        term = read_term(before) + 1 if before else 1
        self._put_lease(holder, before, term, seconds)
        return term, self._now()

    async def renew(self, holder: str, term: int, seconds: float) -> float | None:
        before = await self._store.get(LEASE, holder)
        if before is None or (before.state, read_term(before)) != (HELD, term):
            return None
        self._put_lease(holder, before, term, seconds)
        return self._now()

    async def release(self, holder: str) -> None:
        self._store.remove_lease(holder)

    async def find_held(self) -> list[Lease]:
        records = await self._store.find(LEASE, Query(states=(HELD,)), limit=MAX_LEASES)
        return [
            Lease(record.id, read_term(record), record.version, (record.due or 0.0) < self._now()) for record in records
        ]

    def _put_lease(self, holder: str, before: Record | None, term: int, seconds: float) -> None:
        now = self._now()
        record = before or Record(kind=LEASE, id=holder, state=HELD, created=now, updated=now)
        held = replace(record, state=HELD, updated=now, due=now + seconds, body={"term": term})
        self._store.put_lease(replace(held, version=held.version + 1))


async def _find_words(records: Sequence[Record]) -> list[str]:
    def find() -> list[str]:
        return ["".join(f" {word}" for word in list_words(record.text)) for record in records]

    is_short = all(len(record.text) < LONG_TEXT for record in records)
    return find() if is_short else await asyncio.to_thread(find)


def _matches(record: Record, query: Query) -> bool:
    exact = (("caller", query.caller), ("tool", query.tool), ("key", query.key), ("owner", query.owner))
    return (
        (not query.states or record.state in query.states)
        and (not query.codes or record.code in query.codes)
        and (query.project is None or record.project in (query.project, ""))
        and all(expected is None or getattr(record, name) == expected for name, expected in exact)
        and (query.due_until is None or (record.due is not None and record.due <= query.due_until))
        and (query.since is None or record.created >= query.since)
        and (query.before is None or record.created < query.before)
    )
