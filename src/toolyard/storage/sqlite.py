"""The embedded store: one SQLite file in the home, nothing to install.

Whoever writes takes all commits that are waiting into one transaction (group commit), and they are answered when the
whole is on the disk (``synchronous=FULL`` if any of them is lasting, so that a power cut loses nothing). One thread
writes. Readers have a thread and a connection of their own and never wait for a writer (WAL). Other processes may use
the same file; they are noticed within ``_POLL_S``.
"""

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from toolyard.crashpoint import crashpoint
from toolyard.errors import StorageError
from toolyard.message import Message
from toolyard.protocol.json import json_bytes, json_value
from toolyard.protocol.search_words import LONG_TEXT
from toolyard.protocol.store import SECRET_MEMBERS, Event, NewEvent, PageCursor, Query, Record
from toolyard.storage.damage import to_storage_error
from toolyard.storage.sqlite_migration import ensure_latest_format
from toolyard.storage.sqlite_rows import (
    COLUMNS,
    Change,
    add_search_function,
    build_condition,
    commit,
    record_from_row,
    remove,
)
from toolyard.threads import start_pool
from toolyard.workspace.home_folder import MachineLock, make_private_folder

if TYPE_CHECKING:
    from toolyard.storage.secret_key import RecordCipher

CHECKPOINT_PAGES: Final = 4000  # of the WAL, 16 MB: a call writes about 25, and a checkpoint waits for the disk twice
_BATCH = 500  # commits in one transaction
_BUSY_S = 60.0  # for a turn to write: SQLite keeps no queue, and of several that always write one may have to try often
_POLL_S = 0.2
_UNSTORABLE = (ValueError, TypeError, OverflowError)  # a value that SQLite cannot take, such as a lone surrogate

T = TypeVar("T")


class _Job:
    """Work in a transaction with others: it looks first, and then writes all or nothing."""

    __slots__ = ("answer", "lasting", "waiting", "work")

    def __init__(
        self,
        work: Callable[[sqlite3.Connection], Any],
        lasting: bool,  # noqa: FBT001
        waiting: "asyncio.Future[Any]",
    ) -> None:
        self.work, self.lasting, self.waiting = work, lasting, waiting
        self.answer: Any = None  # an exception: nothing of it was written


class _Connections(NamedTuple):
    writes: sqlite3.Connection
    reads: sqlite3.Connection
    writer: threading.Thread
    reader: ThreadPoolExecutor
    machine_lock: MachineLock | None  # None: the home cannot be written


class SqliteStore:
    """The embedded store, for one event loop.

    The file is opened at the first use, which raises StorageError when that cannot be done. The key that encrypts the
    secrets in it stands beside it.
    """

    is_shared = False

    def __init__(self, file: Path) -> None:
        self._file = file
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._waiting: set[asyncio.Future[None]] = set()  # for the next event
        self._turn = threading.Lock()  # of whoever writes or opens the file
        self._opened: _Connections | None = None
        self._synchronous = ""  # of the writing connection, since it was last set
        self._closed = False

    def open(self) -> "_Connections":
        self._require_open()  # before it waits for its turn: whoever writes may be held up
        if self._opened is not None:
            return self._opened
        with self._turn:
            return self._open()

    def _require_open(self) -> None:
        if self._closed:
            raise StorageError(Message("{file} was closed by this process", file=self._file))

    def _open(self) -> "_Connections":
        self._require_open()
        if self._opened is None:
            try:
                make_private_folder(self._file.parent)
            except OSError as error:
                raise to_storage_error(self._file, error) from error
            ensure_latest_format(self._file)
            writes, reads = _connect(self._file), _connect(self._file)
            writer = threading.Thread(target=self._write_all, args=(writes,), name="toolyard-state", daemon=True)
            reader = start_pool(1, "toolyard-state-reader")
            self._opened = _Connections(writes, reads, writer, reader, self._lock_machine())
            writer.start()
        return self._opened

    def _lock_machine(self) -> MachineLock | None:
        """Take the lock of this machine, before the first record in its name."""
        try:
            return MachineLock.acquire(self._file.parent)
        except OSError:
            return None

    async def commit(self, changes: Sequence[Record], events: Sequence[NewEvent] = (), *, lasting: bool = True) -> bool:
        ready = await self._prepare(changes)
        event_rows = [(event.type, event.at, json_bytes(event.data)) for event in events]
        won = await self._write(lambda db: commit(db, ready, event_rows), lasting=lasting)
        if won and events:
            self._wake_waiters()
        return won

    async def _prepare(self, changes: Sequence[Record]) -> list[Change]:
        """Return the changes ready to be written. The words of a long text take a while: a thread finds them."""

        def prepare() -> list[Change]:
            return [Change.from_record(self._encrypt(record)) for record in changes]

        if all(len(record.text) < LONG_TEXT for record in changes):
            return prepare()
        return await asyncio.to_thread(prepare)

    async def get(self, kind: str, id: str) -> Record | None:  # noqa: A002
        sql = f"SELECT {COLUMNS} FROM records WHERE kind = ? AND id = ?"  # noqa: S608 no value is in it
        rows = await self._read(lambda db: db.execute(sql, (kind, id)).fetchall())
        return self._decrypt(record_from_row(kind, rows[0])) if rows else None

    async def find(self, kind: str, query: Query, *, limit: int, after: PageCursor | None = None) -> list[Record]:
        where, values = build_condition(kind, query)
        time = "updated" if query.by_change else "created"
        if after is not None:
            where += f" AND ({time}, id) < (?, ?)"
            values += [after.at, after.id]
        order = "due, id" if query.due_until is not None else f"{time} DESC, id DESC"
        sql = f"SELECT {COLUMNS} FROM records WHERE {where} ORDER BY {order} LIMIT ?"  # noqa: S608
        rows = await self._read(lambda db: db.execute(sql, (*values, limit)).fetchall())
        return [self._decrypt(record_from_row(kind, row)) for row in rows]

    async def count(self, kind: str, query: Query) -> int:
        where, values = build_condition(kind, query)
        sql = f"SELECT count(*) FROM records WHERE {where}"  # noqa: S608
        rows = await self._read(lambda db: db.execute(sql, values).fetchall())
        return int(rows[0][0])

    async def remove(self, kind: str, before: float, *, states: Sequence[str], limit: int) -> int:
        marks = ",".join("?" * len(states))
        doomed = f"SELECT number FROM records WHERE kind = ? AND updated < ? AND state IN ({marks}) LIMIT ?"  # noqa: S608
        return await self._write(lambda db: remove(db, doomed, (kind, before, *states, limit)))

    async def events(self, after: int, *, limit: int) -> list[Event]:
        sql = "SELECT seq, type, at, data FROM events WHERE seq > ? ORDER BY seq LIMIT ?"
        rows = await self._read(lambda db: db.execute(sql, (after, limit)).fetchall())
        return [Event(seq=seq, type=type_, at=at, data=json_value(data)) for seq, type_, at, data in rows]

    async def event_span(self) -> tuple[int, int]:
        sql = "SELECT (SELECT min(seq) FROM events), (SELECT seq FROM sqlite_sequence WHERE name = 'events')"
        ((first, last),) = await self._read(lambda db: db.execute(sql).fetchall())
        return (first or (last or 0) + 1), last or 0

    async def forget_events(self, before: float, *, limit: int) -> int:
        sql = """DELETE FROM events WHERE seq IN (
            SELECT seq FROM events WHERE at < :before AND seq < coalesce(
                (SELECT min(seq) FROM events WHERE at >= :before), 9e18) ORDER BY seq LIMIT :limit)"""
        return await self._write(lambda db: db.execute(sql, {"before": before, "limit": limit}).rowcount)

    async def next_event(self, after: int) -> None:
        while True:
            waiting = asyncio.get_running_loop().create_future()
            self._waiting.add(waiting)
            try:
                if (await self.event_span())[1] > after:
                    return
                await asyncio.wait({waiting}, timeout=_POLL_S)  # another process may write too
            finally:
                self._waiting.discard(waiting)

    def _wake_waiters(self) -> None:
        for waiting in list(self._waiting):
            with contextlib.suppress(RuntimeError):  # its loop is closed
                waiting.get_loop().call_soon_threadsafe(_resolve_event, waiting)

    async def close(self) -> None:
        """Close after everything that was asked for is on the disk."""
        opened = self._opened
        self._closed = True
        if opened is not None:
            self._jobs.put(None)
            await asyncio.get_running_loop().run_in_executor(opened.reader, opened.writer.join)
            opened.reader.shutdown()
            opened.reads.close()
            with self._turn:
                opened.writes.close()
                if opened.machine_lock is not None:
                    opened.machine_lock.release()
                self._opened = None

    @cached_property
    def _cipher(self) -> "RecordCipher":
        from toolyard.storage.secret_key import (
            KEY_FILE,
            KeyFile,
            RecordCipher,  # most processes have no such record
        )

        return RecordCipher(KeyFile(self._file.with_name(KEY_FILE)))

    def _encrypt(self, record: Record) -> Record:
        return self._cipher.encrypt(record) if record.kind in SECRET_MEMBERS else record

    def _decrypt(self, record: Record) -> Record:
        return self._cipher.decrypt(record) if record.kind in SECRET_MEMBERS else record

    async def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            opened = self.open()
            return await asyncio.get_running_loop().run_in_executor(opened.reader, work, opened.reads)
        except sqlite3.Error as error:
            raise to_storage_error(self._file, error) from error

    async def _write(self, work: Callable[[sqlite3.Connection], T], *, lasting: bool = False) -> T:
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.open()
        self._jobs.put(_Job(work, lasting, answer))
        return await answer

    def _write_all(self, db: sqlite3.Connection) -> None:
        """Write batches in the writer thread until it is told to end."""
        ending = False
        while not ending:
            batch: list[_Job] = []
            job = self._jobs.get()
            while job is not None:
                batch.append(job)
                if len(batch) == _BATCH:
                    break
                try:
                    job = self._jobs.get_nowait()
                except Empty:
                    break
            ending = job is None
            if batch:
                with self._turn:
                    self._transact(db, batch)
                _resolve_waiting(batch)

    def _set_synchronous(self, db: sqlite3.Connection, synchronous: str) -> None:
        if synchronous != self._synchronous:
            db.execute(f"PRAGMA synchronous = {synchronous}")
            self._synchronous = synchronous

    def _transact(self, db: sqlite3.Connection, batch: Sequence[_Job]) -> None:
        """Run the jobs in one transaction, and give each its answer, or the error that undid it."""
        try:
            self._set_synchronous(db, "FULL" if any(job.lasting for job in batch) else "NORMAL")
            crashpoint("store.before-begin")
            db.execute("BEGIN IMMEDIATE")
            try:
                answers = [job.work(db) for job in batch]
            except (sqlite3.Error, *_UNSTORABLE) as error:
                if len(batch) == 1 and isinstance(error, sqlite3.Error):
                    raise
                db.rollback()
                if len(batch) == 1:
                    batch[0].answer = error
                    return
                for job in batch:  # each alone, so that only the one fails that is at fault
                    self._transact(db, [job])
                return
            crashpoint("store.before-commit")
            db.execute("COMMIT")
            crashpoint("store.after-commit")
        except sqlite3.Error as error:  # nothing of the batch is on the disk, and all of it is told so
            if db.in_transaction:
                db.rollback()
            answers = [to_storage_error(self._file, error)] * len(batch)
        for job, answer in zip(batch, answers, strict=True):
            job.answer = answer


def _resolve_waiting(batch: Sequence[_Job]) -> None:
    """Tell the event loop what its jobs came to."""
    answers = [(job.waiting, job.answer) for job in batch]

    def resolve() -> None:
        for waiting, answer in answers:
            if waiting.cancelled():
                continue
            if isinstance(answer, Exception):
                waiting.set_exception(answer)
            else:
                waiting.set_result(answer)

    with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits for an answer any more
        answers[0][0].get_loop().call_soon_threadsafe(resolve)


def _resolve_event(waiting: "asyncio.Future[None]") -> None:
    if not waiting.done():
        waiting.set_result(None)


def _connect(file: Path) -> sqlite3.Connection:
    try:
        db = sqlite3.connect(file, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        db.execute("PRAGMA foreign_keys = ON")
        add_search_function(db)
    except (sqlite3.Error, OSError) as error:
        raise to_storage_error(file, error) from error
    return db
