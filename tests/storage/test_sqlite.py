"""The embedded store among many who write at once."""

import asyncio
import contextlib
import sqlite3
from pathlib import Path

import pytest

from tests.waiting import run_loop_once, wait_until
from toolyard.errors import StorageError
from toolyard.protocol.store import Query, Record
from toolyard.storage.sqlite import SqliteStore

pytestmark = pytest.mark.requirement("store:twins")


def record(number: int) -> Record:
    return Record(kind="thing", id=str(number), state="open", created=1.0, updated=1.0)


async def test_everything_that_was_asked_for_is_kept_before_the_store_closes(tmp_path: Path) -> None:
    file, many = tmp_path / "state.db", 1300
    store = SqliteStore(file)
    await store.commit([record(0)])
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")  # the writer waits, and commits pile up
        asked = [asyncio.ensure_future(store.commit([record(number)])) for number in range(1, many)]
        await run_loop_once()
        closing = asyncio.ensure_future(store.close())
        await run_loop_once()
        other.execute("ROLLBACK")
    async with asyncio.timeout(60):
        await closing
        assert all(await asyncio.gather(*asked))
    again = SqliteStore(file)
    assert await again.count("thing", Query()) == many
    await again.close()


@pytest.mark.requirement("r:R99")
async def test_a_commit_has_a_minute_to_get_its_turn_among_processes_that_always_write(tmp_path: Path) -> None:
    """Three with a slow disk keep one of them from it for more than 5 s, again and again."""
    store = SqliteStore(tmp_path / "state.db")
    opened = store.open()
    patience = [db.execute("PRAGMA busy_timeout").fetchone() for db in (opened.writes, opened.reads)]
    await store.close()
    assert patience == [(60_000,), (60_000,)]


async def test_a_store_that_is_closing_refuses_at_once_though_another_process_holds_up_its_writer(
    tmp_path: Path,
) -> None:
    store = SqliteStore(tmp_path / "state.db")
    await store.commit([record(0)])
    with contextlib.closing(sqlite3.connect(tmp_path / "state.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        asked = asyncio.ensure_future(store.commit([record(1)]))
        await wait_until(store._turn.locked)
        closing = asyncio.ensure_future(store.close())
        await run_loop_once()
        with pytest.raises(StorageError, match="closed"):
            await store.get("thing", "0")
        assert store._turn.locked()
        other.execute("ROLLBACK")
    async with asyncio.timeout(60):
        assert await asked
        await closing


async def test_a_commit_that_sqlite_cannot_take_fails_alone(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db")
    await store.commit([record(0)])
    with contextlib.closing(sqlite3.connect(tmp_path / "state.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")  # the writer waits, and the commits become one batch
        held = asyncio.ensure_future(store.commit([record(1)]))
        await wait_until(store._turn.locked)
        unstorable = Record(kind="thing", id="\ud800", state="open", created=1.0, updated=1.0)
        batch = [asyncio.ensure_future(store.commit([one])) for one in (record(2), unstorable, record(3))]
        await run_loop_once()
        other.execute("ROLLBACK")
    async with asyncio.timeout(60):
        assert await held
        good, bad, also_good = await asyncio.gather(*batch, return_exceptions=True)
    assert (good, also_good) == (True, True)
    assert isinstance(bad, UnicodeEncodeError)
    assert await store.count("thing", Query()) == 4
    await store.close()
