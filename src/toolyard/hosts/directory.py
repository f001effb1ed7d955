"""The directory of hosts: those that announce themselves in the shared store, and the tools they have.

A host renews its lease every ``BEAT_S`` (see ``hosts.lease``). It counts as gone when it said so itself, or when its
lease ran out by the clock of the database and nothing was heard of it for ``LEASE_S`` by the clock of whoever looks, so
clocks that differ do no harm. After a pause in which nobody could be heard, because this process or the database stood
still, every host gets a whole lease again. A host that was lost may come back, in a new term. With a ``cluster_key`` an
announcement is signed; of a host whose announcement is not, no tool is used and nothing is believed.
"""

import logging
import socket
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from toolyard.engine.clock import Clock
from toolyard.engine.ownership import ProcessIdentity, is_owner_alive
from toolyard.hosts import lease as leasing
from toolyard.hosts.cluster_key import ClusterSigner
from toolyard.hosts.lease import HostLease, split_owner
from toolyard.protocol.records.remote_call import HOST, OFFER, Host, HostOffer, HostState
from toolyard.protocol.store import HELD, LEASE, Lease, Leases, Query, Record, SharedStore, Signal, read_term
from toolyard.protocol.tool import ToolSpec, spec_from_text, spec_to_text

HOSTS_CHANGED: Final = "host.moved"  # the signal that a host has come or gone
POLL_S: Final = 1.0
MAX_HOSTS: Final = 1000
_KEPT_S = 3600.0
_MAX_REMEMBERED = 10_000
_READS = 3  # of an announcement that changes while it is read

_log = logging.getLogger(__name__)


class Announcement:
    """The announcement of one host: that it is up, and its tools."""

    def __init__(
        self, store: SharedStore, clock: Clock, boot: ProcessIdentity, signer: ClusterSigner | None = None
    ) -> None:
        self._store, self._clock, self._boot = store, clock, boot
        self._signer = signer or ClusterSigner()
        self._announced: tuple[tuple[str, ...], bool, int] | None = None
        self._host: Host | None = None
        self._offer: HostOffer | None = None

    async def publish(self, specs: Iterable[ToolSpec], *, keeps: bool = True, term: int = 1) -> None:
        """Announce that this host is up, its tools, and whether it settles what dead hosts left.

        Nothing is written when nothing has changed. A new ``term`` is a change: this host was lost, and is back.
        """
        texts = tuple(sorted(spec_to_text(spec) for spec in specs))
        offer = self._offer
        is_old = offer is None or self._clock.now().timestamp() - offer.updated > _KEPT_S / 2
        if not is_old and self._announced == (texts, keeps, term):
            return
        while not await self._try_publish(texts, keeps=keeps, term=term):
            host = await self._store.get(HOST, self._boot.name)  # another host thought that this one was gone
            stored = await self._store.get(OFFER, self._boot.name)
            self._host = Host.from_record(host) if host else None
            self._offer = HostOffer.from_record(stored) if stored else None
        self._announced = texts, keeps, term

    async def withdraw(self) -> None:
        """Announce that this host leaves: nobody sends calls to it any more."""
        record = await self._store.get(HOST, self._boot.name)
        if record is not None and record.state == HostState.UP:
            now = self._clock.now().timestamp()
            left = replace(Host.from_record(record), state=HostState.LEFT, updated=now)
            await self._store.commit([left.to_record()], [left.to_event()], signals=[Signal(HOSTS_CHANGED, record.id)])

    async def _try_publish(self, texts: tuple[str, ...], *, keeps: bool, term: int) -> bool:
        now, name = self._clock.now().timestamp(), self._boot.name
        offer = self._offer
        changes: list[Record] = []
        if offer is None or offer.tools != texts or now - offer.updated > _KEPT_S / 2:
            fresh = HostOffer(id=name, created=now, updated=now, tools=texts)
            offer = replace(offer or fresh, updated=now, tools=texts)
            changes.append(offer.to_record())
        version = offer.version + len(changes)
        before = self._host
        host = Host(
            id=name, state=HostState.UP, created=before.created if before else now, updated=now,
            machine=self._boot.machine, keeps=keeps, offer=version,
            tools=tuple(spec_from_text(text).name for text in texts), term=term,
            version=before.version if before else 0,
        )  # fmt: skip
        is_back = before is None or (before.state, before.term) != (HostState.UP, term)
        events = [host.to_event()] if changes or is_back else []
        host = self._signer.sign_host(host, texts)
        changes.append(host.to_record())
        if not await self._store.commit(changes, events, lasting=False, signals=[Signal(HOSTS_CHANGED, name)]):
            return False
        self._host = replace(host, version=host.version + 1)
        self._offer = replace(offer, version=version)
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownHost:
    """A host as this one last saw it."""

    host: Host
    lease: Lease | None
    heard: float  # by this process's own clock
    offer: int = 0  # the version of its tools
    tools: dict[str, ToolSpec] = field(default_factory=dict)

    @property
    def life_sign(self) -> "_LifeSign":
        """Return what changes with every sign of life."""
        return _life_sign(self.host, self.lease)

    @property
    def term(self) -> int:
        return self.lease.term if self.lease else 1


_LifeSign = tuple[int, int]


class Directory:
    def __init__(
        self,
        store: SharedStore,
        leases: Leases,
        clock: Clock,
        me: ProcessIdentity,
        own: HostLease,
        signer: ClusterSigner | None = None,
    ) -> None:
        self._store, self._leases, self._clock, self._me, self._own = store, leases, clock, me, own
        self._signer = signer or ClusterSigner()
        self._hosts: dict[str, KnownHost] = {}
        self._gone: dict[
            str, tuple[_LifeSign, int]
        ] = {}  # the latest ones in order: the last sign of each, and its term
        self._unknown: dict[str, float] = {}  # owners that never announced themselves, and since when
        self._refreshed = clock.monotonic()

    async def refresh(self, *, settles: bool = True) -> list[str]:
        """Refresh the known hosts; return those that are lost and that this host was the first to miss.

        A host that ``settles`` nothing declares none lost: then another host is the first.
        """
        held = {lease.holder: lease for lease in await self._leases.find_held()}
        records = await self._store.find(HOST, Query(states=(HostState.UP,)), limit=MAX_HOSTS)
        now = self._clock.monotonic()
        if now - self._refreshed > leasing.LEASE_S / 2:
            self._hosts = {name: replace(known, heard=now) for name, known in self._hosts.items()}
            self._unknown.clear()
        self._refreshed = now
        hosts = map(Host.from_record, records)
        there = [host for host in hosts if not self._is_known_as_gone(host, held.get(host.id))]
        for host in there:
            self._hosts[host.id] = await self._to_known_host(host, held.get(host.id), now)
        names = {host.id for host in there}
        lost = [
            known
            for name, known in self._hosts.items()
            if name != self._me.name and (name not in names or _is_silent(known, now))
        ]
        first = [
            known.host.id for known in lost if settles and known.host.id in names and await self._declare_lost(known)
        ]
        for known in lost:  # not before it is told: what could not be told now is told by the next look
            del self._hosts[known.host.id]
            self._gone[known.host.id] = known.life_sign, known.term
        while len(self._gone) > _MAX_REMEMBERED:
            self._gone.pop(next(iter(self._gone)))
        return first

    def is_alive(self, owner: str) -> bool:
        """Return whether an owner is alive: its host is up, and still in the term in which it owned something.

        Of a host that never announced itself, its own machine knows best.
        """
        host, term = split_owner(owner)
        if host == self._me.name:
            return term >= self._own.term
        if host in self._hosts:
            return term >= self._hosts[host].term
        if host in self._gone or not owner:
            return host in self._gone and term > self._gone[host][1]  # it is back, and was not seen yet
        if owner.partition("/")[0] == socket.gethostname() and is_owner_alive(owner):
            return True
        if len(self._unknown) >= _MAX_REMEMBERED:
            self._unknown.clear()
        now = self._clock.monotonic()
        return now - self._unknown.setdefault(owner, now) <= leasing.LEASE_S

    async def is_gone(self, owner: str) -> bool:
        """Return whether an owner is gone, as far as any host knows: another one may have found out earlier."""
        if not self.is_alive(owner):
            return True
        host, term = split_owner(owner)
        if (lease := await self._store.get(LEASE, host)) is not None:
            return lease.state != HELD or read_term(lease) > term
        record = await self._store.get(HOST, host)
        return record is not None and record.state != HostState.UP

    def is_leader(self) -> bool:
        """Return whether this host does what one of all hosts has to do: it is the first that can."""
        keepers = [name for name, known in self._hosts.items() if known.host.keeps]
        return min(keepers, default=self._me.name) == self._me.name

    def list_machines(self) -> set[str]:
        """Return the machines on which a host is up, which sees the processes that still run there."""
        return {self._me.machine, *(known.host.machine for known in self._hosts.values())}

    def find_remote_tool(self, tool: str) -> ToolSpec | None:
        """Return the spec of a tool that another host has."""
        return next((known.tools[tool] for known in self._other_hosts() if tool in known.tools), None)

    def list_remote_tools(self) -> dict[str, ToolSpec]:
        specs: dict[str, ToolSpec] = {}
        for known in self._other_hosts():
            for name, spec in known.tools.items():
                specs.setdefault(name, spec)
        return specs

    def version(self) -> Hashable:
        """Return what changes whenever the tools of other hosts do."""
        return tuple((name, known.offer) for name, known in self._hosts.items() if name != self._me.name)

    async def remove_old_records(self) -> None:
        before = self._clock.now().timestamp() - _KEPT_S
        for kind, states in (
            (HOST, (HostState.LEFT, HostState.LOST)),
            (LEASE, (HELD, HostState.LOST)),
            (OFFER, (HostState.UP,)),
        ):
            await self._store.remove(kind, before, states=states, limit=MAX_HOSTS)

    def _other_hosts(self) -> Iterator[KnownHost]:
        return (known for name, known in self._hosts.items() if name != self._me.name)

    def _is_known_as_gone(self, host: Host, lease: Lease | None) -> bool:
        return self._gone.get(host.id, (None, 0))[0] == _life_sign(host, lease)

    async def _declare_lost(self, known: KnownHost) -> bool:
        """Declare a host lost; False when it, or another host, was faster."""
        now = self._clock.now().timestamp()
        host = replace(known.host, state=HostState.LOST, updated=now)
        changes = [host.to_record()]
        if known.lease is not None:
            lease = await self._store.get(LEASE, host.id)
            if lease is None or (lease.state, lease.version) != (HELD, known.lease.version):
                return False
            changes.append(replace(lease, state=HostState.LOST, updated=now))
        return await self._store.commit(changes, [host.to_event()], signals=[Signal(HOSTS_CHANGED, host.id)])

    async def _to_known_host(self, host: Host, lease: Lease | None, now: float) -> KnownHost:
        known = self._hosts.get(host.id)
        if known is not None and known.life_sign == _life_sign(host, lease):
            return replace(known, lease=lease)
        if known is not None and known.host.version == host.version:
            return replace(known, lease=lease, heard=now)
        if (announced := await self._read_announcement(host)) is None:
            _log.warning("the announcement of %s is not signed with the cluster_key: its tools are not used", host.id)
            return KnownHost(host=replace(host, machine="", keeps=False, tools=()), lease=lease, heard=now)
        host, texts = announced
        tools = {spec.name: spec for spec in map(spec_from_text, texts)}
        return KnownHost(host=host, lease=lease, heard=now, offer=host.offer, tools=tools)

    async def _read_announcement(self, host: Host) -> tuple[Host, tuple[str, ...]] | None:
        """Return a host with the texts of its tools; None when they are not what a host has signed.

        They are two records: the host may change both between the two looks.
        """
        for _ in range(_READS):
            stored = await self._store.get(OFFER, host.id)
            texts = HostOffer.from_record(stored).tools if stored else ()
            if self._signer.is_host_valid(host, texts):
                return host, texts
            again = await self._store.get(HOST, host.id)
            if again is None or again.version == host.version:
                break
            host = Host.from_record(again)
        return None


def _life_sign(host: Host, lease: Lease | None) -> _LifeSign:
    return host.version, lease.version if lease else 0


def _is_silent(known: KnownHost, now: float) -> bool:
    """Return whether its lease has run out, and nothing was heard of it for as long."""
    return now - known.heard > leasing.LEASE_S and (known.lease is None or known.lease.is_expired)
