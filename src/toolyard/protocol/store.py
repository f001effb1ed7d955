"""The store contract: records that change by compare-and-set, and events that are never lost.

The contract of every store (memory, SQLite, PostgreSQL):

- ``commit`` is one transaction: every change and every event, or nothing at all. It returns only when all of it will
  survive a crash of the process and, if it is ``lasting``, of the machine. A change whose record is no longer at the
  version it was read at makes the whole commit fail (False).
- Events are numbered 1, 2, 3, ... in the order of their commits, without holes. A reader sees them in that order.
- A record read is a value: changing it means committing another one with the same version.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, Protocol

from toolyard.message import from_fields
from toolyard.protocol.json import Json, JsonObject

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
    text: str = ""  # words of the record's text, as ``protocol.search_words`` has it
    since: float | None = None  # created at or after it
    before: float | None = None  # created before it
    by_change: bool = False  # the last changed come first, instead of the newest


class PageCursor(NamedTuple):
    """The end of a page: the next one begins after this record."""

    at: float  # when it was created, or last changed, whichever the pages are sorted by
    id: str


class Store(Protocol):
    @property
    def is_shared(self) -> bool:
        """Return whether other hosts write here too."""
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


Body = Mapping[str, Json]
"""The body of a record. It is read by type: a member that is missing or of another type is read as the default."""


def read_text(body: Body, name: str) -> str:
    value = body.get(name)
    return value if isinstance(value, str) else ""


def read_optional_text(body: Body, name: str) -> str | None:
    value = body.get(name)
    return value if isinstance(value, str) else None


def read_message(body: Body, name: str) -> str:
    """Return a text as a message if its code stands beside it."""
    return from_fields(name, body) if isinstance(body.get(name), str) else ""


def read_number(body: Body, name: str) -> float:
    value = body.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def read_optional_number(body: Body, name: str) -> float | None:
    value = body.get(name)
    return value if isinstance(value, int | float) else None


def read_integer(body: Body, name: str) -> int:
    value = body.get(name)
    return value if isinstance(value, int) else 0


def read_object(body: Body, name: str) -> JsonObject:
    value = body.get(name)
    return value if isinstance(value, dict) else {}


def read_objects(body: Body, name: str) -> tuple[JsonObject, ...]:
    value = body.get(name)
    return tuple(item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()


def read_texts(body: Body, name: str) -> tuple[str, ...]:
    value = body.get(name)
    return tuple(str(item) for item in value) if isinstance(value, list) else ()


SECRET_MEMBERS: Final[Mapping[str, tuple[str, ...]]] = {
    "schedule": ("arguments",),  # of a call that runs later
    "remote": ("call", "outcome"),  # a call on its way to another host, and the way back
    "idempotency_response": ("headers", "text", "base64"),  # as the client of the request got it
}
"""The members of bodies that may hold secrets and are read again exactly as they were written, by kind of record.

A store encrypts them: they stand together in one member, ``encrypted``. Everything else that could hold a secret is
masked or hashed before it is stored. The kinds are written out, because a process that has no such record does not load
their values.
"""
_ENCRYPTED = "encrypted"


def find_secrets(record: Record) -> JsonObject:
    """Return the members of a record that are to be encrypted; none when they are empty."""
    names = SECRET_MEMBERS.get(record.kind, ())
    return {name: record.body[name] for name in names if record.body.get(name)}


def hide_secrets(record: Record, encrypted: JsonObject) -> Record:
    """Return the record with its secrets replaced by what they were encrypted to."""
    secrets = find_secrets(record)
    body: JsonObject = {name: value for name, value in record.body.items() if name not in secrets}
    return replace(record, body=body | {_ENCRYPTED: encrypted})


def read_encrypted(record: Record) -> JsonObject | None:
    """Return what the secrets of a stored record were encrypted to; None when nothing in it is."""
    is_encrypted = record.kind in SECRET_MEMBERS and _ENCRYPTED in record.body
    return read_object(record.body, _ENCRYPTED) if is_encrypted else None


def restore_secrets(record: Record, secrets: JsonObject) -> Record:
    """Return a stored record as it was before its secrets were encrypted."""
    body: JsonObject = {name: value for name, value in record.body.items() if name != _ENCRYPTED}
    return replace(record, body=body | secrets)
