"""Secrets in records are encrypted, and a key that is lost is named instead of shown as garbage."""

import asyncio
import json
import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import asyncpg
import pytest

from tests import postgres
from tests.cli.test_cli import Shell
from toolyard.engine.chats.idempotency import RESPONSE
from toolyard.errors import StorageError, StorageKeyMissing
from toolyard.protocol.json import JsonObject
from toolyard.protocol.records.remote_call import REMOTE_CALL
from toolyard.protocol.records.schedule_record import SCHEDULE
from toolyard.protocol.store import SECRET_MEMBERS, Query, Record
from toolyard.storage.backup_archive import back_up
from toolyard.storage.backup_restore import restore
from toolyard.storage.postgres import PostgresStore
from toolyard.storage.repair import find_lost_secrets, forget_lost_secrets
from toolyard.storage.secret_key import ClusterKey, KeyFile
from toolyard.storage.sqlite import SqliteStore

pytestmark = pytest.mark.requirement("trust:encrypted-secrets")

SECRET = "hunter2-the-password"
CLUSTER_KEY = "k" * 32


def schedule(id_: str = "schedule_1") -> Record:
    body: JsonObject = {"arguments": {"password": SECRET}, "cron": "0 8 * * *"}
    return Record(kind=SCHEDULE, id=id_, state="scheduled", created=1.0, updated=1.0, due=2.0, body=body)


def others() -> list[Record]:
    answer: JsonObject = {"status": 200, "headers": {"x-secret": SECRET}, "text": SECRET}
    call: JsonObject = {"runs": 0, "call": SECRET, "outcome": SECRET}
    return [
        Record(kind=RESPONSE, id="r", state="kept", created=1.0, updated=1.0, body=answer),
        Record(kind=REMOTE_CALL, id="c", state="queued", created=1.0, updated=1.0, body=call),
    ]


def read_files(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir() if path.is_file())


async def write(file: Path, *records: Record) -> None:
    store = SqliteStore(file)
    assert await store.commit(records)
    await store.close()


async def read(file: Path, id_: str = "schedule_1") -> Record:
    store = SqliteStore(file)
    try:
        record = await store.get(SCHEDULE, id_)
        assert record is not None
        return record
    finally:
        await store.close()


def test_the_kinds_with_secrets_are_those_of_their_values() -> None:
    assert set(SECRET_MEMBERS) == {SCHEDULE, REMOTE_CALL, RESPONSE}


async def test_no_secret_stands_in_the_files_of_a_home_and_all_are_read_again(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db")
    records = [schedule(), *others()]
    assert await store.commit(records)
    written = read_files(tmp_path)
    assert (SECRET.encode() in written, b"0 8 * * *" in written) == (False, True)
    for record in records:
        assert await store.get(record.kind, record.id) == replace(record, version=1)
        assert await store.find(record.kind, Query(), limit=9) == [replace(record, version=1)]
    assert (tmp_path / "secret.key").stat().st_mode & 0o777 == 0o600
    await store.close()


async def test_a_home_without_such_records_has_no_key(tmp_path: Path) -> None:
    await write(tmp_path / "state.db", Record(kind="call", id="a", state="running", created=1.0, updated=1.0))
    assert not (tmp_path / "secret.key").exists()


async def test_a_record_of_an_older_version_is_read_as_it_is_and_encrypted_when_it_changes(tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    await write(file, schedule())
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("UPDATE records SET body = ?", (json.dumps(schedule().body).encode(),))
        db.execute("DROP INDEX records_by_code")
        for column in ("code", "project"):
            db.execute(f"ALTER TABLE records DROP COLUMN {column}")
        db.execute("PRAGMA user_version = 2")
    assert (await read(file)).body == schedule().body
    await write(file, replace(await read(file), due=3.0))
    with closing(sqlite3.connect(file)) as db:
        ((stored,),) = db.execute("SELECT body FROM records").fetchall()
    assert SECRET.encode() not in bytes(stored)
    assert (await read(file)).body == schedule().body


async def test_a_lost_a_wrong_and_a_broken_key_are_named_with_the_fix(tmp_path: Path) -> None:
    file, key = tmp_path / "state.db", tmp_path / "secret.key"
    await write(file, schedule())
    right = key.read_text()
    key.unlink()
    with pytest.raises(StorageKeyMissing, match=r"its key .*secret\.key is missing: put the file back from a backup"):
        await read(file)
    KeyFile(key).read_or_make()
    with pytest.raises(StorageKeyMissing, match=r"another key than .*secret\.key: put the right file back"):
        await read(file)
    for broken in ("", "not base64!", "c2hvcnQ="):
        key.write_text(broken)
        with pytest.raises(StorageError, match=r"secret\.key cannot be read as a key .*put it back from a backup"):
            await read(file)
    key.write_text(right)
    assert (await read(file)).body == schedule().body


async def test_what_is_encrypted_cannot_be_changed_or_moved_to_another_record(tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    await write(file, schedule("schedule_1"), schedule("schedule_2"))
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("UPDATE records SET body = (SELECT body FROM records WHERE id = 'schedule_1')")
    assert (await read(file, "schedule_1")).body == schedule().body
    with pytest.raises(StorageError, match="schedule schedule_2 is damaged"):
        await read(file, "schedule_2")


async def test_processes_that_need_the_first_key_at_once_agree_on_one(tmp_path: Path) -> None:
    keys = await asyncio.gather(*(asyncio.to_thread(KeyFile(tmp_path / "secret.key").read_or_make) for _ in range(8)))
    assert len({key.id for key in keys}) == 1
    assert os.listdir(tmp_path) == ["secret.key"]


async def test_a_backup_has_the_key_and_a_restore_reads_with_it(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    await write(old / "state.db", schedule())
    back_up(old, tmp_path / "backup.tar.gz")
    new.mkdir()
    restore(tmp_path / "backup.tar.gz", new, new / "aside")
    assert (await read(new / "state.db")).body == schedule().body


async def test_records_of_a_lost_key_can_be_given_up_without_the_others(tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    await write(file, schedule("schedule_1"))
    (tmp_path / "secret.key").unlink()
    await write(file, schedule("schedule_2"), *others())
    assert [record.id for record in find_lost_secrets(file)] == ["schedule_1"]
    assert (forget_lost_secrets(file), forget_lost_secrets(file)) == (1, 0)
    assert (await read(file, "schedule_2")).body == schedule().body


async def test_the_doctor_reports_a_lost_key_and_gives_its_records_up_when_told_to(
    project: Path, tmp_path: Path
) -> None:
    shell = Shell(project, tmp_path)
    home = Path(shell.environment["TOOLYARD_HOME"])
    await write(home / "state.db", schedule())
    (home / "secret.key").unlink()

    def check(*words: str) -> dict[str, str]:
        return {one["name"]: one["health"] for one in json.loads(shell.run("doctor", "--json", *words).stdout)}

    assert check()["secrets"] == "fail"
    done = check("--forget-secrets")
    assert (done["forget-secrets"], "secrets" in done) == ("ok", False)


@pytest.fixture
async def database() -> AsyncIterator[str]:
    async with postgres.database(new=True) as url:
        yield url


async def test_a_shared_database_has_no_secret_that_the_cluster_key_could_encrypt(database: str) -> None:
    store = await PostgresStore.open(database, ClusterKey(CLUSTER_KEY))
    records = [schedule(), *others()]
    assert await store.commit(records)
    db = await asyncpg.connect(database)
    stored = await db.fetchval("SELECT string_agg(body::text, ' ') FROM toolyard.records")
    await db.close()
    assert (SECRET in stored, "0 8 * * *" in stored) == (False, True)
    for record in records:
        assert await store.get(record.kind, record.id) == replace(record, version=1)
    await store.close()
    for text, error in (
        (None, "this host has none: set the cluster_key"),
        ("x" * 32, "set the same one on every host"),
    ):
        other = await PostgresStore.open(database, ClusterKey(text))
        with pytest.raises(StorageKeyMissing, match=error):
            await other.get(SCHEDULE, "schedule_1")
        await other.close()


async def test_a_shared_database_without_a_cluster_key_is_read_with_one_later(database: str) -> None:
    store = await PostgresStore.open(database)
    assert await store.commit([schedule()])
    await store.close()
    store = await PostgresStore.open(database, ClusterKey(CLUSTER_KEY))
    assert await store.get(SCHEDULE, "schedule_1") == replace(schedule(), version=1)
    await store.close()
