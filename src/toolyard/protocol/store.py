"""The store contract: records that change by compare-and-set, and events that are never lost.

The contract of every store (memory, SQLite, PostgreSQL):

- ``commit`` is one transaction: every change and every event, or nothing at all. It returns only when all of it will
  survive a crash of the process and, if it is ``lasting``, of the machine. A change whose record is no longer at the
  version it was read at makes the whole commit fail (False).
- Events are numbered 1, 2, 3, ... in the order of their commits, without holes. A reader sees them in that order.
- A record read is a value: changing it means committing another one with the same version.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from toolyard.protocol.json import JsonObject

LEASE: Final = "lease"  # the kind of the records in which leases are kept
HELD: Final = "held"
MAX_LEASES: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A durable record. All fields but ``body`` can be queried; times are seconds since 1970, UTC."""

    kind: str  # "task", "call", "schedule", ...
    id: str
    state: str
    version: int = 0  # 0: not stored yet; each commit adds one
    created: float
    updated: float
    caller: str = ""
    tool: str = ""
    key: str = ""  # a second name, such as a task's own id; need not be unique
    code: str = ""  # the finest name of the error that it ended with
    owner: str = ""  # the host process that looks after it
    project: str = ""  # the folder that it is about; empty: none, or one that nobody noted
    due: float | None = None  # when something is to happen to it
    text: str = ""  # the text that a word search looks at
    body: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEvent:
    type: str  # "task.succeeded"
    at: float
    data: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    seq: int
    type: str
    at: float
    data: JsonObject = field(default_factory=dict)


class Signal(NamedTuple):
    """A message from one host to the others: unnumbered, not stored, and received only by current listeners."""

    type: str
    id: str


class Lease(NamedTuple):
    """A lease: a host's right to what it has begun.

    ``version`` grows with every renewal. ``term`` is the fencing token: it grows whenever the host was declared lost
    and came back, so what an earlier term began is no longer its own.
    """

    holder: str
    term: int
    version: int
    is_expired: bool  # by the store's own clock


def read_term(lease: Record) -> int:
    """Return the term in the record of a lease."""
    return int(str(lease.body["term"]))


class Query(NamedTuple):
    """Conditions on records; all that are given must hold."""

    states: tuple[str, ...] = ()
    caller: str | None = None
    tool: str | None = None
    key: str | None = None
    codes: tuple[str, ...] = ()
    owner: str | None = None
    project: str | None = None  # of this project, or of none that is known
    due_until: float | None = None  # only records with a due time at or before it
    text: str = ""  # words of the record's text, as ``protocol.words`` has it
    since: float | None = None  # created at or after it
    before: float | None = None  # created before it
    by_change: bool = False  # the last changed come first, instead of the newest


class PageCursor(NamedTuple):
    """The end of a page: the next one begins after this record."""

    at: float  # when it was created, or last changed, whichever the pages are sorted by
    id: str


class Store(Protocol):
    @property
    def works_inline(self) -> bool:
        """Return whether commits and reads also work in a thread without an event loop."""
        ...

    async def commit(
        self, changes: Sequence[Record], events: Sequence[NewEvent] = (), *, lasting: bool = True
    ) -> bool: ...

    async def get(self, kind: str, id: str) -> Record | None: ...  # noqa: A002 it is the record's own word

    async def find(self, kind: str, query: Query, *, limit: int, after: PageCursor | None = None) -> list[Record]:
        """Return records, newest first; with ``due_until`` the longest due first, ``by_change`` the last changed."""
        ...

    async def count(self, kind: str, query: Query) -> int: ...

    async def remove(self, kind: str, before: float, *, states: Sequence[str], limit: int) -> int:
        """Delete at most ``limit`` records that were last changed before then; return how many."""
        ...

    async def events(self, after: int, *, limit: int) -> list[Event]:
        """Return the stored events after number ``after``."""
        ...

    async def event_span(self) -> tuple[int, int]:
        """Return the numbers of the oldest stored event and of the newest; (1, 0) when there is none."""
        ...

    async def forget_events(self, before: float, *, limit: int) -> int: ...

    async def next_event(self, after: int) -> None:
        """Wait until there is an event with a number above ``after``."""
        ...

    async def close(self) -> None: ...


SignalListener = Callable[[Signal | None], None]
"""Takes a signal; None when some may have been missed."""


class SharedStore(Store, Protocol):
    """A store of many hosts."""

    async def commit(
        self,
        changes: Sequence[Record],
        events: Sequence[NewEvent] = (),
        *,
        lasting: bool = True,
        signals: Sequence[Signal] = (),
    ) -> bool:
        """Commit as every store does; ``signals`` are sent only if the commit is made."""
        ...

    def subscribe(self, hear: SignalListener) -> None:
        """Receive the signals of all hosts from now on, until the store is closed."""
        ...


class Leases(Protocol):
    """The leases of all hosts. Its operations are bounded and never wait for the locks of other work."""

    async def acquire(self, holder: str, seconds: float) -> tuple[int, float]:
        """Acquire a lease in a new term; return the term and the time by the clock of the store."""
        ...

    async def renew(self, holder: str, term: int, seconds: float) -> float | None:
        """Renew a lease; return the time by the clock of the store, None when its holder was declared lost."""
        ...

    async def release(self, holder: str) -> None: ...

    async def find_held(self) -> list[Lease]:
        """Return the leases of hosts that were not declared lost, expired ones too."""
        ...
