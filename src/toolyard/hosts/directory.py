"""Who is there: the hosts that announce themselves in the shared store, and the tools they have.

A host says that it lives every ``BEAT_S``. It counts as gone when it said so itself, or when nothing was heard of it
for ``LEASE_S`` by the clock of whoever looks, so clocks that differ do no harm. After a pause in which nobody could be
heard, because this process or the database stood still, every host gets a whole lease again.
"""

import socket
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from toolyard.engine.clock import Clock
from toolyard.engine.ownership import Boot, is_alive
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.store import NewEvent, Query, Record, Store
from toolyard.protocol.tool import ToolSpec
from toolyard.protocol.tool_json import spec_from_text, spec_to_text

HOST: Final = "host"
OFFER: Final = "offer"  # the tools of a host, apart from its heartbeat because they are large and change seldom
BEAT_S: Final = 2.0
LEASE_S: Final = 6.0
LOOK_S: Final = 1.0
MAX_HOSTS: Final = 1000
_KEPT_S = 3600.0
_MAX_REMEMBERED = 10_000


class State(StrEnum):
    UP = "up"
    LEFT = "left"  # it said so
    LOST = "lost"  # nothing was heard of it


class Announcement:
    """What one host says about itself."""

    def __init__(self, store: Store, clock: Clock, boot: Boot) -> None:
        self._store, self._clock, self._boot = store, clock, boot
        self._host: Record | None = None
        self._offer: Record | None = None

    async def say(self, specs: Iterable[ToolSpec], *, keeps: bool = True) -> None:
        """That this host lives, which tools it has if that has changed, and whether it looks after dead ones."""
        texts = sorted(spec_to_text(spec) for spec in specs)
        while not await self._say(texts, keeps=keeps):
            self._host = await self._store.get(HOST, self._boot.name)  # another host thought that this one was gone
            self._offer = await self._store.get(OFFER, self._boot.name)

    async def leave(self) -> None:
        """Nobody sends anything here any more."""
        record = await self._store.get(HOST, self._boot.name)
        if record is not None and record.state == State.UP:
            await self._store.commit([replace(record, state=State.LEFT, due=None)], [_event(record, State.LEFT)])

    async def _say(self, texts: list[str], *, keeps: bool) -> bool:
        now = self._clock.now().timestamp()
        offer = self._offer
        changes: list[Record] = []
        if offer is None or offer.body["tools"] != texts or now - offer.updated > _KEPT_S / 2:
            fresh = Record(kind=OFFER, id=self._boot.name, state=State.UP, created=now, updated=now)
            offer = replace(offer or fresh, updated=now, body={"tools": [*texts]})
            changes.append(offer)
        version = offer.version + len(changes)
        names: list[Json] = [spec_from_text(text).name for text in texts]
        body: JsonObject = {"machine": self._boot.machine, "keeps": keeps, "offer": version, "tools": names}
        new = Record(kind=HOST, id=self._boot.name, state=State.UP, created=now, updated=now, body=body)
        host = replace(self._host or new, state=State.UP, updated=now, due=now + LEASE_S, body=body)
        changes.append(host)
        told = [_event(host, State.UP)] if len(changes) > 1 else []
        if not await self._store.commit(changes, told, lasting=False):
            return False
        self._host = replace(host, version=host.version + 1)
        self._offer = replace(offer, version=version)
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """A host as it was last seen."""

    record: Record
    heard: float  # by this process's own clock
    offer: int = 0  # the version of its tools
    tools: dict[str, ToolSpec] = field(default_factory=dict)


class Directory:
    def __init__(self, store: Store, clock: Clock, me: Boot) -> None:
        self._store, self._clock, self._me = store, clock, me
        self._hosts: dict[str, Sighting] = {}
        self._gone: dict[str, int] = {}  # the latest ones in order, and the version at which each was missed
        self._unknown: dict[str, float] = {}  # owners that never announced themselves, and since when
        self._looked = clock.monotonic()

    async def look(self, *, settles: bool = True) -> list[str]:
        """See who is there now. The hosts that were lost, and that this one was the first to miss.

        Who ``settles`` nothing tells nobody: then another host is the first.
        """
        found = await self._store.find(HOST, Query(states=(State.UP,)), limit=MAX_HOSTS)
        now = self._clock.monotonic()
        if now - self._looked > LEASE_S / 2:
            self._hosts = {name: replace(seen, heard=now) for name, seen in self._hosts.items()}
            self._unknown.clear()
        self._looked = now
        there = {record.id: record for record in found if self._gone.get(record.id) != record.version}
        for record in there.values():
            self._hosts[record.id] = await self._sight(record, now)
        stale = [name for name, seen in self._hosts.items() if name not in there or now - seen.heard > LEASE_S]
        lost = [self._hosts[name].record for name in stale if name != self._me.name]
        first = [record.id for record in lost if settles and record.id in there and await self._missed(record)]
        for record in lost:  # not before it is told: what could not be told now is told by the next look
            del self._hosts[record.id]
            self._gone[record.id] = record.version
        while len(self._gone) > _MAX_REMEMBERED:
            self._gone.pop(next(iter(self._gone)))
        return first

    def alive(self, owner: str) -> bool:
        """Whether the host of that name is there; of one that never announced itself, its own machine knows best."""
        if owner == self._me.name or owner in self._hosts:
            return True
        if owner in self._gone or not owner:
            return False
        if owner.partition("/")[0] == socket.gethostname() and is_alive(owner):
            return True
        if len(self._unknown) >= _MAX_REMEMBERED:
            self._unknown.clear()
        now = self._clock.monotonic()
        return now - self._unknown.setdefault(owner, now) <= LEASE_S

    async def is_gone(self, owner: str) -> bool:
        """As far as anybody knows: another host may have found out earlier."""
        if not self.alive(owner):
            return True
        record = await self._store.get(HOST, owner)
        return record is not None and record.state != State.UP

    def is_first(self) -> bool:
        """Whether it is this host's turn to do what one of them should do: the first that can."""
        keepers = [name for name, seen in self._hosts.items() if seen.record.body.get("keeps") is True]
        return min(keepers, default=self._me.name) == self._me.name

    def machines(self) -> set[str]:
        """The machines on which somebody is there to see what still runs."""
        return {self._me.machine, *(str(seen.record.body["machine"]) for seen in self._hosts.values())}

    def elsewhere(self, tool: str) -> ToolSpec | None:
        """A tool that some other host has."""
        return next((seen.tools[tool] for seen in self._others() if tool in seen.tools), None)

    def all_elsewhere(self) -> dict[str, ToolSpec]:
        found: dict[str, ToolSpec] = {}
        for seen in self._others():
            for name, spec in seen.tools.items():
                found.setdefault(name, spec)
        return found

    def version(self) -> Hashable:
        """Return what changes whenever the tools of other hosts do."""
        return tuple((name, seen.offer) for name, seen in self._hosts.items() if name != self._me.name)

    async def forget(self) -> None:
        before = self._clock.now().timestamp() - _KEPT_S
        for kind, states in ((HOST, (State.LEFT, State.LOST)), (OFFER, (State.UP,))):
            await self._store.remove(kind, before, states=states, limit=MAX_HOSTS)

    def _others(self) -> Iterator[Sighting]:
        return (seen for name, seen in self._hosts.items() if name != self._me.name)

    async def _missed(self, record: Record) -> bool:
        return await self._store.commit([replace(record, state=State.LOST, due=None)], [_event(record, State.LOST)])

    async def _sight(self, record: Record, now: float) -> Sighting:
        seen = self._hosts.get(record.id)
        if seen is not None and seen.record.version == record.version:
            return seen
        offer = record.body.get("offer")
        if seen is not None and seen.offer == offer:
            return replace(seen, record=record, heard=now)
        tools: dict[str, ToolSpec] = {}
        stored = await self._store.get(OFFER, record.id)
        if stored is not None and isinstance(texts := stored.body["tools"], list):
            tools = {spec.name: spec for spec in map(spec_from_text, map(str, texts))}
        return Sighting(record=record, heard=now, offer=offer if isinstance(offer, int) else 0, tools=tools)


def _event(record: Record, state: State) -> NewEvent:
    data: JsonObject = {"id": record.id, "machine": record.body["machine"], "tools": record.body["tools"]}
    return NewEvent(type=f"host.{state.value}", at=record.updated, data=data)
