"""The shared store: one PostgreSQL database for any number of hosts.

It keeps the whole contract of ``protocol.store`` across processes and machines: versions are compared by the server,
events are numbered without holes in the order of their commits, and ``next_event`` wakes for the events of every host.
A lasting commit, and each with events, is on the server's disk when it returns (see ``postgres_writer`` for how, and
``postgres_server`` for what happens while the server is away). Of a word longer than ``_WORD`` characters, search
compares only its beginning.

Needs the extra ``toolyard[postgres]``; nothing here is loaded for the embedded store.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import asyncpg

from toolyard.protocol.json import json_bytes, json_value
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
)
from toolyard.storage.postgres_schema import check_server, latest_format, migrate
from toolyard.storage.postgres_server import PASSING, PostgresServer, to_storage_error
from toolyard.storage.postgres_writer import CHANNEL, SIGNALS, PostgresWriter
from toolyard.storage.secret_key import ClusterKey, RecordCipher

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy


_COLUMNS = "kind, id, state, version, created, updated, caller, tool, key, code, owner, project, due, text, body"
_WORD = 500  # the server allows 2046 bytes
_CONNECT_S = 3.0
_COMMAND_S = 3.0
LONGEST_S: Final = _CONNECT_S + _COMMAND_S
# A renewal that a crash of the database takes back is followed by the next one.
_SESSION = {"synchronous_commit": "off", "lock_timeout": "3s", "statement_timeout": "3s"}
_NOW = "extract(epoch FROM clock_timestamp())::float8"
_ACQUIRE = f"""
INSERT INTO toolyard.records AS lease
    (kind, id, state, version, created, updated, caller, tool, key, owner, due, text, body)
VALUES ('{LEASE}', $1, '{HELD}', 1, {_NOW}, {_NOW}, '', '', '', '', {_NOW} + $2::float8, '', '{{"term": 1}}')
ON CONFLICT (kind, id) DO UPDATE SET state = '{HELD}', version = lease.version + 1, updated = {_NOW}, due = {_NOW} + $2,
    body = json_build_object('term', (lease.body ->> 'term')::int + 1)
RETURNING (body ->> 'term')::int, updated
"""  # noqa: S608 no value of anybody is in it
_RENEW = f"""
UPDATE toolyard.records SET version = version + 1, updated = {_NOW}, due = {_NOW} + $3::float8
WHERE kind = '{LEASE}' AND id = $1 AND state = '{HELD}' AND (body ->> 'term')::int = $2 RETURNING updated
"""  # noqa: S608 no value of anybody is in it
_RELEASE = f"DELETE FROM toolyard.records WHERE kind = '{LEASE}' AND id = $1"  # noqa: S608
_HELD = f"""
SELECT id, (body ->> 'term')::int, version, due < {_NOW} FROM toolyard.records
WHERE kind = '{LEASE}' AND state = '{HELD}' LIMIT {MAX_LEASES}
"""  # noqa: S608
POLL_S = 1.0
_PAUSES_S = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


class PostgresStore:
    """The shared store, for one event loop. Made by ``open``."""

    is_shared = True

    def __init__(self, server: PostgresServer, keys: ClusterKey) -> None:
        self._server, self._cipher = server, RecordCipher(keys)
        self._bell = PostgresListener(server, CHANNEL, SIGNALS)
        self._writer = PostgresWriter(server, self._bell.notify)
        self.leases = PostgresLeases(server)

    @classmethod
    async def open(cls, url: str, keys: ClusterKey | None = None) -> "PostgresStore":
        """Open the store, with its tables brought to the latest format. Raises StorageError.

        ``keys`` encrypts the secrets in it; without any they are stored as they are.
        """
        server = await PostgresServer.connect_to(url)
        try:
            if await server.run(lambda db: check_server(db, server.place)) < latest_format():
                await server.run_alone(lambda db: migrate(db, server.place))
        except BaseException:
            await server.close()
            raise
        return cls(server, keys or ClusterKey(None))

    async def commit(
        self,
        changes: Sequence[Record],
        events: Sequence[NewEvent] = (),
        *,
        lasting: bool = True,
        signals: Sequence[Signal] = (),
    ) -> bool:
        payloads = [f"{signal.type} {signal.id}" for signal in signals]
        rows = await self._prepare(changes)
        event_rows = [(_escape_nul(event.type), event.at, json_bytes(event.data).decode()) for event in events]
        if not (rows or event_rows or payloads):
            return True
        # An event that somebody has seen must be there, with its number, after a crash of the server too.
        return await self._writer.commit(rows, event_rows, signals=payloads, lasting=lasting or bool(event_rows))

    async def _prepare(self, changes: Sequence[Record]) -> list[tuple[Any, ...]]:
        """Return the rows to be written. The words of a long text take a while: a thread finds them."""

        def prepare() -> list[tuple[Any, ...]]:
            return [_to_row(self._cipher.encrypt(record)) for record in changes]

        is_short = all(len(record.text) < LONG_TEXT for record in changes)
        return prepare() if is_short else await asyncio.to_thread(prepare)

    async def get(self, kind: str, id: str) -> Record | None:  # noqa: A002
        sql = f"SELECT {_COLUMNS} FROM toolyard.records WHERE kind = $1 AND id = $2"  # noqa: S608 no value is in it
        rows = await self._fetch(sql, _escape_nul(kind), _escape_nul(id))
        return self._cipher.decrypt(_from_row(rows[0])) if rows else None

    async def find(self, kind: str, query: Query, *, limit: int, after: PageCursor | None = None) -> list[Record]:
        where, values = _build_condition(kind, query)
        time = "updated" if query.by_change else "created"
        if after is not None:
            values += [after.at, _escape_nul(after.id)]
            where += f" AND ({time}, id) < (${len(values) - 1}, ${len(values)})"
        order = "due, id" if query.due_until is not None else f"{time} DESC, id DESC"
        values.append(limit)
        sql = f"SELECT {_COLUMNS} FROM toolyard.records WHERE {where} ORDER BY {order} LIMIT ${len(values)}"  # noqa: S608
        return [self._cipher.decrypt(_from_row(row)) for row in await self._fetch(sql, *values)]

    async def count(self, kind: str, query: Query) -> int:
        where, values = _build_condition(kind, query)
        ((number,),) = await self._fetch(f"SELECT count(*) FROM toolyard.records WHERE {where}", *values)  # noqa: S608
        return int(number)

    async def remove(self, kind: str, before: float, *, states: Sequence[str], limit: int) -> int:
        # A record that somebody is changing is not old, and waiting for it could make two hosts wait for each other.
        sql = """WITH doomed AS MATERIALIZED (
            SELECT kind, id FROM toolyard.records WHERE kind = $1 AND updated < $2 AND state = ANY($3::text[])
            LIMIT $4 FOR UPDATE SKIP LOCKED)
            DELETE FROM toolyard.records USING doomed
            WHERE records.kind = doomed.kind AND records.id = doomed.id RETURNING 1"""
        return len(await self._fetch(sql, _escape_nul(kind), before, [_escape_nul(state) for state in states], limit))

    async def events(self, after: int, *, limit: int) -> list[Event]:
        sql = "SELECT seq, type, at, data FROM toolyard.events WHERE seq > $1 ORDER BY seq LIMIT $2"
        rows = await self._fetch(sql, after, limit)
        return [
            Event(seq=seq, type=_unescape_nul(type_), at=at, data=json_value(data)) for seq, type_, at, data in rows
        ]

    async def event_span(self) -> tuple[int, int]:
        sql = "SELECT (SELECT min(seq) FROM toolyard.events), seq FROM toolyard.last_event"
        ((first, last),) = await self._fetch(sql)
        return (first or last + 1), last

    async def forget_events(self, before: float, *, limit: int) -> int:
        sql = """DELETE FROM toolyard.events WHERE seq IN (
            SELECT seq FROM toolyard.events WHERE seq < coalesce(
                (SELECT min(seq) FROM toolyard.events WHERE at >= $1), 9223372036854775807) ORDER BY seq LIMIT $2)
            RETURNING 1"""
        return len(await self._fetch(sql, before, limit))

    async def next_event(self, after: int) -> None:
        while self._bell.newest <= after:
            ring = self._bell.next_notification()
            if (await self.event_span())[1] > after:
                return
            try:
                async with asyncio.timeout(POLL_S):
                    await ring.wait()
            except TimeoutError:
                pass

    def subscribe(self, hear: SignalListener) -> None:
        self._bell.subscribe(hear)

    async def close(self) -> None:
        """Close after everything that was asked for is settled."""
        await self._writer.close()
        await self._bell.close()
        self.leases.close()
        await self._server.close()

    async def _fetch(self, sql: str, *values: Any) -> "list[asyncpg.Record]":
        ask: Callable[..., Awaitable[list[asyncpg.Record]]] = lambda db: db.fetch(sql, *values)  # noqa: E731
        return await self._server.run(ask)


def _build_condition(kind: str, query: Query) -> tuple[str, list[Any]]:
    given: list[tuple[str, Any]] = [("kind = {}", _escape_nul(kind))]
    exact = {"caller": query.caller, "tool": query.tool, "key": query.key, "owner": query.owner}
    bounds = {"due <=": query.due_until, "created >=": query.since, "created <": query.before}
    given += [(f"{name} = {{}}", _escape_nul(value)) for name, value in exact.items() if value is not None]
    given += [(f"{name} {{}}", value) for name, value in bounds.items() if value is not None]
    if prefixes := list_prefixes(query.text):
        given.append(("words @@ {}::text::tsquery", " & ".join(f"'{word[:_WORD]}':*" for word in prefixes)))
    if query.states:
        given.append(("state = ANY({}::text[])", [_escape_nul(state) for state in query.states]))
    if query.codes:  # as its partial index has it
        given.append(("code <> '' AND code = ANY({}::text[])", [_escape_nul(code) for code in query.codes]))
    if query.project is not None:
        given.append(("project IN ({}, '')", _escape_nul(query.project)))
    conditions = (text.format(f"${number}") for number, (text, _) in enumerate(given, 1))
    return " AND ".join(conditions), [value for _, value in given]


def _to_row(record: Record) -> tuple[Any, ...]:
    words = " ".join(word[:_WORD] for word in list_words(record.text)) or None
    return (
        _escape_nul(record.kind), _escape_nul(record.id), _escape_nul(record.state), record.version, record.created,
        record.updated, _escape_nul(record.caller), _escape_nul(record.tool), _escape_nul(record.key),
        _escape_nul(record.code), _escape_nul(record.owner), _escape_nul(record.project), record.due,
        _escape_nul(record.text), json_bytes(record.body).decode(), words,
    )  # fmt: skip


def _from_row(row: "asyncpg.Record") -> Record:
    kind, id_, state, version, created, updated, caller, tool, key, code, owner, project, due, text, body = row
    return Record(
        kind=_unescape_nul(kind), id=_unescape_nul(id_), state=_unescape_nul(state), version=version, created=created,
        updated=updated, caller=_unescape_nul(caller), tool=_unescape_nul(tool), key=_unescape_nul(key),
        code=_unescape_nul(code), owner=_unescape_nul(owner), project=_unescape_nul(project), due=due,
        text=_unescape_nul(text), body=json_value(body),
    )  # fmt: skip


def _escape_nul(text: str) -> str:
    """Escape NUL characters, which the server's text cannot hold."""
    return text.replace("\x1a", "\x1a1").replace("\x00", "\x1a0") if "\x00" in text or "\x1a" in text else text


def _unescape_nul(text: str) -> str:
    return text.replace("\x1a0", "\x00").replace("\x1a1", "\x1a") if "\x1a" in text else text


class PostgresLeases:
    """The leases in PostgreSQL, for one event loop, over a connection that is used for nothing else.

    A lease is a record that no other work touches, renewed by one statement that commits by itself: so a renewal waits
    for no lock of an application's transaction, and an attempt takes at most ``LONGEST_S``. When a lease runs out is
    decided by the clock of the database alone.
    """

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._db: asyncpg.Connection | None = None
        self._turn = asyncio.Lock()

    async def acquire(self, holder: str, seconds: float) -> tuple[int, float]:
        ((term, now),) = await self._query(_ACQUIRE, holder, seconds)
        return term, now

    async def renew(self, holder: str, term: int, seconds: float) -> float | None:
        rows = await self._query(_RENEW, holder, term, seconds)
        return rows[0][0] if rows else None

    async def release(self, holder: str) -> None:
        await self._query(_RELEASE, holder)

    async def find_held(self) -> list[Lease]:
        rows = await self._server.run(lambda db: db.fetch(_HELD))
        return [Lease(*row) for row in rows]

    def close(self) -> None:
        if self._db is not None:
            self._db.terminate()
            self._db = None

    async def _query(self, sql: str, *values: Any) -> list[asyncpg.Record]:
        """Ask once; a connection that has failed, or was left in the middle, is not used again."""
        async with self._turn:
            db, self._db = self._db, None
            try:
                if db is None or db.is_closed():
                    db = await self._server.connect(_CONNECT_S, **_SESSION)
                answer: list[asyncpg.Record] = await db.fetch(sql, *values, timeout=_COMMAND_S)
            except (*PASSING, asyncpg.PostgresError) as error:
                raise to_storage_error(self._server.place, error) from error
            else:
                self._db = db
                return answer
            finally:
                if self._db is None and db is not None:
                    db.terminate()


class PostgresListener:
    """Notifications that any host has committed events or sent signals.

    For events PostgreSQL's NOTIFY carries only the number of the newest one. A bell that does not ring (the connection
    is lost, the server restarts) delays nobody for longer than ``POLL_S``: whoever waits looks by themselves then. Who
    listens for signals is told when some may have been missed. ``newest`` is an event number that is known to exist; 0
    when none is.
    """

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
