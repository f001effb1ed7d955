"""A state of an older format is brought to the latest one, with a copy of it first."""

import asyncio
import errno
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from pathlib import Path

import asyncpg
import pytest

from tests import postgres
from tests.storage import format_1
from toolyard.errors import StorageError, StorageUnwritable
from toolyard.protocol.store import Query, Record, Store
from toolyard.storage import postgres_schema, sqlite_migration, sqlite_schema
from toolyard.storage.backup_archive import back_up
from toolyard.storage.backup_restore import restore
from toolyard.storage.postgres import PostgresStore
from toolyard.storage.sqlite import SqliteStore
from toolyard.storage.sqlite_schema import Migration
from toolyard.storage.state_file import check

pytestmark = pytest.mark.requirement("store:migrations")

COLUMN = Migration(
    "records have a colour", "ALTER TABLE records ADD COLUMN colour TEXT; UPDATE records SET colour = 'x'"
)
BROKEN = Migration("nothing", "ALTER TABLE records ADD COLUMN size INTEGER; SELECT * FROM no_such_table;")


CALLS = (  # the state, the body and the code that a migration finds there
    ("error", '{"reason": null, "error": {"code": "NOT_FOUND"}}', "NOT_FOUND"),
    ("cancelled", '{"reason": "DENIED", "error": {"code": "ACCESS_DENIED"}}', "DENIED"),
    ("partial", '{"reason": null, "error": null}', ""),
    ("error", r'{"arguments": "\u0000", "reason": null, "error": {"code": "NOT_FOUND"}}', None),
)


async def read_codes(store: Store) -> list[str]:
    """Return the codes of the calls that are found by one, by the order of ``CALLS``."""
    found = await store.find("call", Query(codes=("NOT_FOUND", "DENIED")), limit=10)
    return [one.code for one in sorted(found, key=lambda one: one.id) if CALLS[int(one.id)][2] is not None]


async def read_old(store: Store) -> list[Record]:
    return await store.find("thing", Query(text="forest"), limit=10)


def columns(file: Path) -> list[str]:
    with closing(sqlite3.connect(file)) as db:
        return [name for _, name, *_ in db.execute("PRAGMA table_info(records)")]


def read_format(file: Path) -> int:
    with closing(sqlite3.connect(file)) as db:
        return int(db.execute("PRAGMA user_version").fetchone()[0])


def add_migrations(monkeypatch: pytest.MonkeyPatch, *more: Migration) -> None:
    monkeypatch.setattr(sqlite_schema, "MIGRATIONS", (*sqlite_schema.MIGRATIONS, *more))


async def test_a_file_of_format_1_is_read_by_this_version_and_kept_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    format_1.write_sqlite(file)
    store = SqliteStore(file)
    (old,) = await read_old(store)
    assert (old.id, old.version, old.body) == ("old", 3, {"n": 7})
    assert await store.commit(
        [Record(kind="thing", id="new", state="open", created=1, updated=1, body={"a": "b" * 9999})]
    )
    assert [event.type for event in await store.events(0, limit=9)] == ["made"]
    await store.close()
    assert read_format(file) == sqlite_schema.latest_format() > 1
    kept = tmp_path / "state-format-1.db"
    assert (read_format(kept), kept.stat().st_mode & 0o777) == (1, 0o600)
    with closing(sqlite3.connect(kept)) as db:
        assert db.execute("SELECT id FROM records").fetchall() == [("old",)]
    check(file)
    check(kept)
    assert sorted(os.listdir(tmp_path)) == ["machines", "state-format-1.db", "state.db"]


async def test_every_step_after_the_format_of_a_file_is_done_once_and_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "state.db"
    format_1.write_sqlite(file)
    add_migrations(monkeypatch, COLUMN, Migration("red", "UPDATE records SET colour = colour || 'y'"))
    for _ in range(2):
        store = SqliteStore(file)
        assert len(await read_old(store)) == 1
        await store.close()
    with closing(sqlite3.connect(file)) as db:
        assert db.execute("SELECT colour FROM records").fetchall() == [("xy",)]
    check(file)


async def test_a_step_that_fails_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "state.db"
    format_1.write_sqlite(file)
    before = columns(file)
    with monkeypatch.context() as patch:
        add_migrations(patch, COLUMN, BROKEN)
        with pytest.raises(StorageError, match="no_such_table"):
            SqliteStore(file).open()
    assert (read_format(file), columns(file)) == (1, before)
    store = SqliteStore(file)
    assert len(await read_old(store)) == 1
    await store.close()


def test_no_room_for_the_copy_is_told_and_the_file_is_not_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "state.db"
    format_1.write_sqlite(file)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(sqlite_migration, "copy", full)
    with pytest.raises(StorageUnwritable, match="the disk is full"):
        SqliteStore(file).open()
    assert (read_format(file), os.listdir(tmp_path)) == (1, ["state.db"])


def test_a_file_that_another_process_still_uses_is_not_migrated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "state.db"
    format_1.write_sqlite(file)
    monkeypatch.setattr(sqlite_migration, "_OTHERS_TRIES", 1)
    with closing(sqlite3.connect(file)) as old:
        old.execute("PRAGMA journal_mode = WAL")
        old.execute("SELECT * FROM records").fetchall()
        with pytest.raises(StorageError, match="is used by a running process: stop it first"):
            SqliteStore(file).open()
    assert (read_format(file), (tmp_path / "state-format-1.db").exists()) == (1, False)


OPEN = """
import asyncio, sys
from pathlib import Path
from tests.crash.host import kill_at
from toolyard.protocol.store import Query
from toolyard.storage.sqlite import SqliteStore

async def main(file):
    store = SqliteStore(Path(file))
    print(len(await store.find("thing", Query(text="forest"), limit=10)))
    await store.close()

if len(sys.argv) > 2:
    kill_at(sys.argv[2], 1)
asyncio.run(main(sys.argv[1]))
"""


def open_in_process(*words: str) -> subprocess.Popen[str]:
    root = Path(__file__).parents[2]
    return subprocess.Popen(
        [sys.executable, "-c", OPEN, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=root
    )


def test_processes_that_start_at_the_same_moment_migrate_once(tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    format_1.write_sqlite(file)
    children = [open_in_process(str(file)) for _ in range(4)]
    ends = [child.communicate(timeout=120) for child in children]
    assert [out for out, _ in ends] == ["1\n"] * 4, ends
    assert sum("is brought from format 1" in errors for _, errors in ends) == 1


@pytest.mark.requirement("p:P7", "crash:invariants", "r:R01")
@pytest.mark.parametrize("point", ["store.before-copy-kept", "store.before-migrated"])
async def test_after_kill_9_in_a_migration_the_next_start_does_it(tmp_path: Path, point: str) -> None:
    file = tmp_path / "state.db"
    format_1.write_sqlite(file)
    child = open_in_process(str(file), point)
    child.communicate(timeout=120)
    assert child.returncode == -signal.SIGKILL
    store = SqliteStore(file)
    assert len(await read_old(store)) == 1
    await store.close()
    assert read_format(tmp_path / "state-format-1.db") == 1
    assert sorted(os.listdir(tmp_path)) == ["machines", "state-format-1.db", "state.db"]


@pytest.mark.requirement("backup:restore")
async def test_a_backup_of_format_1_comes_back_and_is_migrated_at_the_next_start(tmp_path: Path) -> None:
    home, archive = tmp_path / "home", tmp_path / "b.tar.gz"
    format_1.write_sqlite(home / "state.db")
    back_up(home, archive)
    (tmp_path / "new").mkdir()
    restore(archive, tmp_path / "new", tmp_path / "aside")
    store = SqliteStore(tmp_path / "new/state.db")
    assert len(await read_old(store)) == 1
    await store.close()


@pytest.mark.requirement("activity:codes")
async def test_calls_of_an_older_file_are_found_by_the_codes_of_their_errors(tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    format_1.write_sqlite(file)
    with closing(sqlite3.connect(file)) as db:
        sql = "INSERT INTO records VALUES (NULL, 'call', ?, ?, 2, 1, 2, '', 'LS', '', '', NULL, '', ?)"
        db.executemany(sql, [(str(n), state, body.encode()) for n, (state, body, _) in enumerate(CALLS)])
        db.execute(sql, ("damaged", "error", b"\x78 this is not compressed"))
        db.commit()
    store = SqliteStore(file)
    assert await read_codes(store) == ["NOT_FOUND", "DENIED"]
    await store.close()


async def read_projects(store: Store) -> dict[str, str]:
    return {one.id: one.project for one in await store.find("call", Query(project="/srv/shop"), limit=10)}


CALLERS = {"mine": "cli:/srv/shop", "other": "cli:/srv/site", "unknown": "owner"}
OF_SHOP = {"mine": "/srv/shop", "unknown": ""}  # what a caller does not tell belongs to every list


async def test_calls_of_an_older_file_that_a_command_made_belong_to_its_project(tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    format_1.write_sqlite(file)
    with closing(sqlite3.connect(file)) as db:
        sql = "INSERT INTO records VALUES (NULL, 'call', ?, 'success', 2, 1, 2, ?, 'LS', '', '', NULL, '', '{}')"
        db.executemany(sql, CALLERS.items())
        db.commit()
    store = SqliteStore(file)
    assert await read_projects(store) == OF_SHOP
    await store.close()


# --- PostgreSQL ---

COLUMN_PG = Migration(
    "records have a colour", "ALTER TABLE toolyard.records ADD COLUMN colour text NOT NULL DEFAULT 'x';"
)


@pytest.fixture
async def database() -> AsyncIterator[str]:
    async with postgres.database(new=True) as url:
        await execute(url, format_1.POSTGRES)
        yield url


async def execute(url: str, sql: str) -> Sequence[asyncpg.Record]:
    db = await asyncpg.connect(url)
    try:
        return await db.fetch(sql) if sql.startswith("SELECT") else await db.execute(sql) or ()
    finally:
        await db.close()


async def test_a_database_of_format_1_is_read_by_this_version(database: str) -> None:
    store = await PostgresStore.open(database)
    (old,) = await read_old(store)
    assert (old.id, old.version, old.body) == ("old", 3, {"n": 7})
    await store.close()


@pytest.mark.requirement("activity:codes")
async def test_calls_of_an_older_database_are_found_by_the_codes_of_their_errors(database: str) -> None:
    rows = ", ".join(
        f"('call', '{n}', '{state}', 2, 1, 2, '', 'LS', '', '', NULL, '', '{body}', NULL)"
        for n, (state, body, _) in enumerate(CALLS)
    )
    await execute(database, f"INSERT INTO toolyard.records VALUES {rows}")
    store = await PostgresStore.open(database)
    assert await read_codes(store) == ["NOT_FOUND", "DENIED"]
    await store.close()


async def test_calls_of_an_older_database_that_a_command_made_belong_to_its_project(database: str) -> None:
    rows = ", ".join(
        f"('call', '{id_}', 'success', 2, 1, 2, '{caller}', 'LS', '', '', NULL, '', '{{}}', NULL)"
        for id_, caller in CALLERS.items()
    )
    await execute(database, f"INSERT INTO toolyard.records VALUES {rows}")
    store = await PostgresStore.open(database)
    assert await read_projects(store) == OF_SHOP
    await store.close()


async def test_hosts_that_start_at_the_same_moment_migrate_a_database_once_and_keep_it_as_it_was(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_schema, "MIGRATIONS", (*postgres_schema.MIGRATIONS, COLUMN_PG))
    stores = await asyncio.gather(*(PostgresStore.open(database) for _ in range(3)))
    assert [len(await read_old(store)) for store in stores] == [1, 1, 1]
    for store in stores:
        await store.close()
    latest = len(postgres_schema.MIGRATIONS)
    assert [row["version"] for row in await execute(database, "SELECT version FROM toolyard.format")] == [latest]
    assert [row["colour"] for row in await execute(database, "SELECT colour FROM toolyard.records")] == ["x"]
    kept = await execute(database, "SELECT * FROM toolyard_format_1.records")
    assert [(row["id"], json.loads(row["body"]), "colour" in row) for row in kept] == [("old", {"n": 7}, False)]
    assert len(await execute(database, "SELECT * FROM toolyard_format_1.events")) == 1


async def test_a_step_that_fails_leaves_the_database_as_it_was(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Migration("nothing", "SELECT * FROM no_such_table;")
    with monkeypatch.context() as patch:
        patch.setattr(postgres_schema, "MIGRATIONS", (*postgres_schema.MIGRATIONS, COLUMN_PG, broken))
        with pytest.raises(StorageError, match="no_such_table"):
            await PostgresStore.open(database)
    schemas = await execute(database, "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'toolyard%'")
    assert [row["nspname"] for row in schemas] == ["toolyard"]
    assert [row["version"] for row in await execute(database, "SELECT version FROM toolyard.format")] == [1]


async def test_a_database_of_a_newer_format_is_refused(database: str) -> None:
    await execute(database, "UPDATE toolyard.format SET version = 999")
    with pytest.raises(StorageError, match="newer Toolyard"):
        await PostgresStore.open(database)
