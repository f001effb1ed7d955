"""Group commit for the shared store: what is asked for while one transaction is under way becomes the next one.

The changes of a whole batch are one statement, compare-and-set each. If one of them is no longer at its version, the
transaction is undone and tried again without the commit that lost. Events get their numbers last: the row with the last
number stays locked to the end of the transaction, so numbers have no holes and become visible in their order. When the
connection breaks while a transaction ends, nobody knows what became of it. Therefore each writer has a row of its own,
in which each transaction leaves its number: the row tells afterwards, so nothing is done twice or reported wrongly.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from toolyard.crashpoint import crashpoint
from toolyard.errors import StorageError, StorageInDoubt
from toolyard.message import Message
from toolyard.storage.postgres_server import PostgresServer

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

_BATCH = 200  # commits in one transaction
CHANNEL = "toolyard_events"
SIGNALS = "toolyard_signals"

_ENROL = """
WITH gone AS (DELETE FROM toolyard.writers WHERE seen < now() - interval '30 days')
INSERT INTO toolyard.writers DEFAULT VALUES RETURNING id
"""
_SIGNED = """signed AS (
    INSERT INTO toolyard.writers (id, batch) VALUES ($1, $2)
    ON CONFLICT (id) DO UPDATE SET batch = excluded.batch, seen = now()
)"""
_LAST_SIGNED = "SELECT batch FROM toolyard.writers WHERE id = $1 FOR UPDATE"  # waits for a transaction that still ends
_PUT = f"""
WITH {_SIGNED}, new AS MATERIALIZED (
    SELECT * FROM unnest($3::text[], $4::text[], $5::text[], $6::bigint[], $7::float8[], $8::float8[], $9::text[],
        $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::float8[], $16::text[], $17::text[],
        $18::text[])
    AS new (kind, id, state, version, created, updated, caller, tool, key, code, owner, project, due, text, body, said)
), held AS MATERIALIZED (
    SELECT kind, id FROM toolyard.records AS stored JOIN new USING (kind, id, version)
    ORDER BY kind, id FOR UPDATE OF stored
), made AS (
    INSERT INTO toolyard.records
        (kind, id, state, version, created, updated, caller, tool, key, code, owner, project, due, text, body, words)
    SELECT kind, id, state, 1, created, updated, caller, tool, key, code, owner, project, due, text, body::json,
        array_to_tsvector(string_to_array(said, ' '))
    FROM new WHERE version = 0
    ON CONFLICT DO NOTHING RETURNING kind, id
), changed AS (
    UPDATE toolyard.records AS stored SET state = new.state, version = new.version + 1, created = new.created,
        updated = new.updated, caller = new.caller, tool = new.tool, key = new.key, code = new.code,
        owner = new.owner, project = new.project, due = new.due, text = new.text, body = new.body::json,
        words = array_to_tsvector(string_to_array(new.said, ' '))
    FROM new JOIN held USING (kind, id)
    WHERE stored.kind = new.kind AND stored.id = new.id AND stored.version = new.version
    RETURNING stored.kind, stored.id
)
SELECT kind, id FROM made UNION ALL SELECT kind, id FROM changed
"""  # noqa: S608 no value is in it
_TELL = f"""
WITH {_SIGNED}, last AS (UPDATE toolyard.last_event SET seq = seq + cardinality($4::text[]) RETURNING seq),
told AS (
    INSERT INTO toolyard.events (seq, type, at, data)
    SELECT last.seq - cardinality($4::text[]) + number, type, at, data::json
    FROM last, unnest($4::text[], $5::float8[], $6::text[]) WITH ORDINALITY AS new (type, at, data, number)
)
SELECT seq, pg_notify($3, seq::text) FROM last
"""  # noqa: S608
_SIGNAL = "SELECT pg_notify($1, said) FROM unnest($2::text[]) AS said"


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    rows: Sequence[tuple[Any, ...]]  # as _PUT has them: kind and id come first
    events: Sequence[tuple[Any, ...]]  # type, at, data
    signals: Sequence[str]
    lasting: bool
    answer: "asyncio.Future[bool]"

    def keys(self) -> set[tuple[str, str]]:
        return {(row[0], row[1]) for row in self.rows}


class _ConflictError(Exception):
    """Raised when commits lost against others; the transaction is rolled back."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self.jobs = jobs


class PostgresWriter:
    """Writes commits in groups. ``on_commit`` is called with the number of the newest event after each commit."""

    def __init__(self, server: PostgresServer, on_commit: Callable[[int], None]) -> None:
        self._server = server
        self._on_commit = on_commit
        self._waiting: deque[Job] = deque()
        self._writing: asyncio.Task[None] | None = None
        self._id: int | None = None
        self._batch = 0  # the number of the newest transaction
        self._doubtful = False  # its end was not answered

    async def commit(
        self,
        rows: Sequence[tuple[Any, ...]],
        events: Sequence[tuple[Any, ...]],
        *,
        signals: Sequence[str] = (),
        lasting: bool,
    ) -> bool:
        job = Job(rows, events, signals, lasting, asyncio.get_running_loop().create_future())
        self._waiting.append(job)
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write_all(), name="toolyard-state-writer")
        return await job.answer

    async def close(self) -> None:
        """Close after everything that was asked for is settled."""
        if self._writing is not None:
            await self._writing

    async def _write_all(self) -> None:
        while self._waiting:
            batch = self._take_batch()
            try:
                won = await self._commit_batch(batch)
            except StorageError as error:
                _fail_jobs(batch, error)
            except BaseException:  # nobody is left waiting
                _fail_jobs(
                    [*batch, *self._waiting],
                    StorageError(Message("{place}: the writer was stopped", place=self._server.place)),
                )
                self._waiting.clear()
                raise
            else:
                for job in batch:
                    if not job.answer.done():
                        job.answer.set_result(job in won)

    def _take_batch(self) -> list[Job]:
        """Return the next jobs that touch no record in common; others wait for their turn."""
        batch: list[Job] = []
        later: list[Job] = []
        touched: set[tuple[str, str]] = set()
        while self._waiting and len(batch) < _BATCH:
            job = self._waiting.popleft()
            keys = job.keys()
            (batch if touched.isdisjoint(keys) else later).append(job)
            touched |= keys
        self._waiting.extendleft(reversed(later))
        return batch

    async def _commit_batch(self, batch: Sequence[Job]) -> set[Job]:
        """Commit a batch; return the jobs that won."""
        standing = list(batch)
        self._doubtful = False
        while standing:
            try:
                await self._server.run(partial(self._transact, jobs=standing))
                break
            except _ConflictError as lost:
                standing = [job for job in standing if job not in lost.jobs]
            except StorageError as error:
                if not self._doubtful:
                    raise
                raise StorageInDoubt(
                    Message("{error}; whether the last change was kept is not known", error=error)
                ) from error
        return set(standing)

    async def _transact(self, db: "PoolConnectionProxy", jobs: Sequence[Job]) -> None:
        if self._id is None:
            self._id = await db.fetchval(_ENROL)
        if self._doubtful and await db.fetchval(_LAST_SIGNED, self._id) == self._batch:
            return
        self._doubtful = False
        self._batch += 1
        crashpoint("postgres.before-begin")
        async with db.transaction():
            if not any(job.lasting for job in jobs):
                await db.execute("SET LOCAL synchronous_commit = off")
            await self._write_records(db, jobs)
            if signals := [signal for job in jobs for signal in job.signals]:
                await db.execute(_SIGNAL, SIGNALS, signals)
            newest = await self._notify(db, jobs)
            crashpoint("postgres.before-commit")
            self._doubtful = True
        self._doubtful = False
        crashpoint("postgres.after-commit")
        self._on_commit(newest)

    async def _write_records(self, db: "PoolConnectionProxy", jobs: Sequence[Job]) -> None:
        rows = sorted((row for job in jobs for row in job.rows), key=lambda row: (row[0], row[1]))
        if not rows:
            return
        done = await db.fetch(_PUT, self._id, self._batch, *map(list, zip(*rows, strict=True)))
        if len(done) != len(rows):
            kept = {(kind, id_) for kind, id_ in done}
            raise _ConflictError([job for job in jobs if not job.keys() <= kept or len(job.rows) > len(job.keys())])

    async def _notify(self, db: "PoolConnectionProxy", jobs: Sequence[Job]) -> int:
        """Write events and send signals; return the number of the last event, 0 when there is none."""
        events = [event for job in jobs for event in job.events]
        if not events:
            return 0
        columns = map(list, zip(*events, strict=True))
        return int(await db.fetchval(_TELL, self._id, self._batch, CHANNEL, *columns))


def _fail_jobs(jobs: Sequence[Job], error: StorageError) -> None:
    for job in jobs:
        if not job.answer.done():
            job.answer.set_exception(error)
