"""Damage inside of a state file: it is found and named, and what can be rebuilt is rebuilt."""

import os
import random
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.storage.damage import MANY, damage, fill, read_all
from toolyard.errors import StorageBusy, StorageError, StorageIndexDamaged
from toolyard.protocol.store import NewEvent
from toolyard.storage import state_file
from toolyard.storage.repair import repair
from toolyard.storage.sqlite import SqliteStore
from toolyard.storage.state_file import USES, check


@pytest.mark.requirement("doctor:integrity", "doctor:repair")
@pytest.mark.parametrize("part", [name for name in USES if name != "words"] + ["words_data", "words_content"])
async def test_a_damaged_index_is_named_with_what_it_is_for_and_rebuilt_from_the_records(
    tmp_path: Path, part: str
) -> None:
    file = tmp_path / "state.db"
    await fill(file)
    before = await read_all(file)
    damage(file, part)
    damaged = file.read_bytes()
    name = part.partition("_")[0] if part.startswith("words") else part
    with pytest.raises(StorageIndexDamaged, match="doctor --repair") as told:
        check(file, whole=True)
    assert f"{name}: {USES[name]}" in str(told.value)
    done = repair(file, tmp_path / "aside")
    assert (done.records, done.events, done.duplicates) == (MANY, MANY, 0)
    check(file, whole=True)
    assert await read_all(file) == before
    assert done.aside.read_bytes()[100:] == damaged[100:]  # but for the header, which says how the file is written
    assert sorted(os.listdir(tmp_path)) == ["aside", "machines", "state.db"]


@pytest.mark.requirement("doctor:integrity")
async def test_an_index_that_only_lacks_an_entry_is_found_by_the_whole_check(tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    await fill(file)
    with closing(sqlite3.connect(file)) as db:  # an entry that moved: a bit of its due time is another one
        (size,) = db.execute("PRAGMA page_size").fetchone()
        (page,) = db.execute(
            "SELECT min(pageno) FROM dbstat WHERE name = 'records_by_due' AND pagetype = 'leaf'"
        ).fetchone()
    content = bytearray(file.read_bytes())
    at = content.index(b"thing_1", (page - 1) * size)
    content[at - 1] ^= 1
    file.write_bytes(content)
    with pytest.raises(StorageIndexDamaged, match="records_by_due"):
        check(file, whole=True)


@pytest.mark.requirement("doctor:repair")
@pytest.mark.parametrize("part", ["records", "events"])
async def test_records_that_cannot_be_read_need_a_backup_and_the_file_is_left_as_it_is(
    tmp_path: Path, part: str
) -> None:
    file = tmp_path / "state.db"
    await fill(file)
    with closing(sqlite3.connect(file)) as db:
        (size,) = db.execute("PRAGMA page_size").fetchone()
        (page,) = db.execute("SELECT max(pageno) FROM dbstat WHERE name = ? AND pagetype = 'leaf'", (part,)).fetchone()
    content = bytearray(file.read_bytes())
    content[(page - 1) * size : page * size] = b"\xff" * size
    file.write_bytes(content)
    with pytest.raises(StorageError, match="toolyard restore") as told:
        check(file, whole=True)
    assert not isinstance(told.value, StorageIndexDamaged)
    with pytest.raises(StorageError):
        repair(file, tmp_path / "aside")
    assert (file.read_bytes(), sorted(os.listdir(tmp_path))) == (bytes(content), ["machines", "state.db"])


@pytest.mark.requirement("doctor:advice")
@pytest.mark.parametrize("seed", range(6))
async def test_a_repair_is_advised_exactly_where_it_helps_whatever_the_damage_is(tmp_path: Path, seed: int) -> None:
    file, aside, source = tmp_path / "state.db", tmp_path / "aside", random.Random(seed)
    await fill(file)
    sound = file.read_bytes()
    advised = set()
    for _ in range(25):
        damaged = bytearray(sound)
        at = source.randrange(4096, len(sound) - 64)
        damaged[at : at + 64] = source.choice([bytes(64), source.randbytes(64), damaged[at : at + 63] + b"\xff"])
        file.write_bytes(damaged)
        advice = _find_advice(file)
        advised.add(advice)
        if advice == "repair":
            repair(file, aside)
            check(file, whole=True)
            shutil.rmtree(aside)
        elif advice == "restore":
            with pytest.raises(StorageError, match=r"is as it was: .* restore a backup"):
                repair(file, aside)
            assert file.read_bytes()[100:] == damaged[100:]
    assert {"repair", "restore"} <= advised <= {"repair", "restore", ""}


def _find_advice(file: Path) -> str:
    """What the check of a file advises; empty when it finds nothing."""
    try:
        check(file, whole=True)
    except StorageError as error:
        (advice,) = re.findall(r"toolyard doctor --(repair)|toolyard (restore) BACKUP", str(error))
        return "".join(advice)
    return ""


@pytest.mark.requirement("doctor:repair")
@pytest.mark.parametrize(
    "change",
    [
        "DROP INDEX records_by_due",
        "CREATE TABLE notes (a)",
        "CREATE TRIGGER t AFTER DELETE ON records BEGIN DELETE FROM events; END",
        "PRAGMA user_version = 0",
        "DROP TABLE words",
    ],
)
async def test_a_repair_leaves_the_tables_of_toolyard_and_nothing_else(tmp_path: Path, change: str) -> None:
    file = tmp_path / "state.db"
    await fill(file)
    before = await read_all(file)
    with closing(sqlite3.connect(file)) as db:
        db.execute(change)
    with pytest.raises(StorageError):
        check(file)
    repair(file, tmp_path / "aside")
    assert await read_all(file) == before


@pytest.mark.requirement("doctor:repair", "p:P9")
async def test_after_a_repair_no_event_has_the_number_of_one_that_was_forgotten(tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    await fill(file)
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("DELETE FROM events")
        db.execute("DROP INDEX records_by_due")
    repair(file, tmp_path / "aside")
    store = SqliteStore(file)
    await store.commit([], [NewEvent(type="later", at=2.0)])
    assert [event.seq for event in await store.events(0, limit=9)] == [MANY + 1]
    await store.close()


@pytest.mark.requirement("doctor:repair")
async def test_a_state_that_a_process_uses_is_not_repaired(tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    await fill(file)
    store = SqliteStore(file)
    await store.events(0, limit=1)
    with pytest.raises(StorageError, match="is used by a running process: stop it first"):
        repair(file, tmp_path / "aside")
    await store.close()
    assert sorted(os.listdir(tmp_path)) == ["machines", "state.db"]


@pytest.mark.requirement("doctor:integrity")
async def test_a_state_that_another_process_holds_is_not_called_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_file, "_BUSY_S", 0.0)
    await fill(tmp_path / "state.db")
    with closing(sqlite3.connect(tmp_path / "state.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StorageBusy, match=r"is held by another process .*: try again in a moment"):
            check(tmp_path / "state.db", whole=True)
