"""What a backup holds, what is refused as one, and a restore that waits for the next start."""

import errno
import gzip
import io
import itertools
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tarfile
from contextlib import closing
from pathlib import Path

import pytest

from tests.crash.test_failing_disk import may_mount
from toolyard.errors import StorageError, StorageUnwritable
from toolyard.protocol.store import NewEvent, Record
from toolyard.storage import backup_archive
from toolyard.storage.backup_archive import back_up
from toolyard.storage.backup_restore import (
    apply_scheduled,
    cancel_scheduled,
    find_scheduled,
    prepare,
    restore,
    schedule_restore,
)
from toolyard.storage.sqlite import SqliteStore
from toolyard.storage.state_file import check

REG = tarfile.REGTYPE


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a plugin in it."""
    home = tmp_path / "home"
    for name, text in {
        "config.toml": "# old\n", "host.env": "A=1\n", "mcp.json": "{}", "mcp-trust.json": "{}", "setup.json": "{}",
        "key": "ty-old\n", "server.json": "{}", "sessions.json": "{}", "trash/a": "gone", "plugin-data/Tool/x": "mine",
        "plugins/Tool/plugin-manifest.json": "{}", "plugins/Tool/lib/计算.py": "1", "plugins/Tool/config.env": "K=s\n",
        "plugins/Tool/node_modules/big.js": "x", "plugins/Tool/.venv/bin/python": "x", "plugins/Tool/.git/HEAD": "x",
        "plugins/.removed/Old/main.py": "x", "plugins/loose.txt": "x",
    }.items():  # fmt: skip
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    (home / "plugins/Tool/lib/run.sh").write_text("#!/bin/sh\n")
    (home / "plugins/Tool/lib/run.sh").chmod(0o755)
    (home / "plugins/Tool/passwd").symlink_to("/etc/passwd")
    (home / "plugins/Linked").symlink_to(tmp_path)
    return home


async def keep_something(home: Path, name: str) -> None:
    store = SqliteStore(home / "state.db")
    await store.commit(
        [Record(kind="thing", id=name, state="open", created=1, updated=1)], [NewEvent(type="t", at=1.0)]
    )
    await store.close()


@pytest.mark.requirement("backup:restore")
async def test_a_backup_has_settings_keys_state_and_installed_plugins_but_no_link_and_nothing_that_can_be_made_again(
    home: Path, tmp_path: Path
) -> None:
    await keep_something(home, "one")
    assert back_up(home, tmp_path / "b.tar.gz")[-1] == "plugins"
    with tarfile.open(tmp_path / "b.tar.gz") as tar:
        found = set(tar.getnames())
    tool = {f"plugins/Tool/{name}" for name in ("plugin-manifest.json", "lib/计算.py", "lib/run.sh", "config.env")}
    assert found == {
        *("config.toml", "host.env", "mcp.json", "mcp-trust.json", "setup.json", "key", "state.db"),
        *tool,
    }
    new = tmp_path / "new"
    new.mkdir()
    restore(tmp_path / "b.tar.gz", new, tmp_path / "aside")
    assert (new / "plugins/Tool/lib/计算.py").read_text() == "1"
    modes = [(new / "plugins/Tool" / name).stat().st_mode & 0o777 for name in ("lib/run.sh", "config.env")]
    assert modes == [0o700, 0o600]
    assert not (tmp_path / "aside").exists()


@pytest.mark.requirement("backup:restore")
async def test_what_waits_is_put_in_place_by_the_next_start_and_what_was_there_is_kept(
    home: Path, tmp_path: Path
) -> None:
    await keep_something(home, "old")
    back_up(home, tmp_path / "b.tar.gz")
    await keep_something(home, "new")
    (home / "config.toml").write_text("# new\n")
    (home / "keys.json").write_text("{}")
    (home / "plugins/Later").mkdir()
    prepared = prepare(tmp_path / "b.tar.gz", home)
    assert (prepared.contents.plugins, prepared.contents.counts) == (["Tool"], {"thing": 1, "event": 1})
    assert find_scheduled(home) is None
    schedule_restore(prepared, home)
    assert (home / "config.toml").read_text() == "# new\n", "nothing is changed before the next start"
    assert find_scheduled(home) == prepared.contents
    done = apply_scheduled(home, tmp_path / "aside")
    assert done is not None
    assert (home / "config.toml").read_text() == "# old\n"
    assert not (home / "keys.json").exists()
    assert (tmp_path / "aside/keys.json").exists()
    assert not (home / "plugins/Later").exists()
    assert (tmp_path / "aside/plugins/Later").exists()
    assert (home / "plugin-data/Tool/x").read_text() == "mine"
    assert apply_scheduled(home, tmp_path / "another") is None
    assert [name for name in os.listdir(home) if name.startswith(".")] == []


@pytest.mark.requirement("backup:restore")
def test_what_waits_can_be_taken_back_and_a_later_one_takes_its_place(home: Path, tmp_path: Path) -> None:
    back_up(home, tmp_path / "b.tar.gz")
    (home / "host.env").unlink()
    back_up(home, tmp_path / "c.tar.gz")
    schedule_restore(prepare(tmp_path / "b.tar.gz", home), home)
    schedule_restore(prepare(tmp_path / "c.tar.gz", home), home)
    found = find_scheduled(home)
    assert found is not None
    assert "host.env" not in found.names
    cancel_scheduled(home)
    assert find_scheduled(home) is None
    assert apply_scheduled(home, tmp_path / "aside") is None
    assert (home / "config.toml").read_text() == "# old\n"


@pytest.mark.requirement("backup:restore")
def test_a_backup_without_plugins_leaves_those_of_the_home_alone(home: Path, tmp_path: Path) -> None:
    (tmp_path / "b.tar.gz").write_bytes(tarred(("config.toml", REG, b"# from elsewhere\n")))
    restore(tmp_path / "b.tar.gz", home, tmp_path / "aside")
    assert (home / "config.toml").read_text() == "# from elsewhere\n"
    assert (home / "plugins/Tool/config.env").read_text() == "K=s\n"
    assert (tmp_path / "aside/key").read_text() == "ty-old\n"


def tarred(*members: tuple[str, bytes, bytes]) -> bytes:
    """An archive of members: name, type and content."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, kind, content in members:
            info = tarfile.TarInfo(name)
            info.type, info.size, info.linkname = kind, len(content), "config.toml"
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


REFUSED = [
    b"",
    b"not an archive",
    tarred(),
    tarred(("../config.toml", REG, b"")),
    tarred(("/etc/passwd", REG, b"")),
    tarred(("plugins/x", REG, b"")),
    tarred(("plugins/../../x/y", REG, b"")),
    tarred(("plugins/a/../../../x", REG, b"")),
    tarred(("plugins//etc/passwd", REG, b"")),
    tarred(("plugins/.removed/x", REG, b"")),
    tarred(("plugins/a/b\\c", REG, b"")),
    tarred(("plugins/a/x", tarfile.SYMTYPE, b"")),
    tarred(("plugins/a", tarfile.DIRTYPE, b"")),
    tarred(("plugins/a/x", REG, b"1"), ("plugins/a/x", REG, b"2")),
    tarred(("plugins/a/x", REG, b"1"), ("plugins/a/x/y", REG, b"2")),
    tarred(("key", tarfile.SYMTYPE, b"")),
    tarred(("key", tarfile.LNKTYPE, b"")),
    tarred(("key", tarfile.FIFOTYPE, b"")),
    tarred(("key", tarfile.DIRTYPE, b"")),
    tarred(("key", REG, b"1"), ("key", REG, b"2")),
    tarred(("config.toml", REG, b""), ("state.db", REG, b"no database at all" * 99)),
    tarred(("config.toml", REG, b"a" * 9999))[:-40],
]


@pytest.mark.requirement("backup:restore")
@pytest.mark.parametrize("content", REFUSED, ids=itertools.count())  # the bytes hold the time
def test_an_archive_that_is_no_backup_changes_nothing(tmp_path: Path, content: bytes) -> None:
    home, archive = tmp_path / "home", tmp_path / "odd.tar.gz"
    home.mkdir()
    archive.write_bytes(content)
    with pytest.raises(StorageError):
        restore(archive, home, tmp_path / "aside")
    assert os.listdir(home) == []
    assert sorted(os.listdir(tmp_path)) == ["home", "odd.tar.gz"]


@pytest.mark.requirement("backup:restore")
def test_an_archive_of_too_many_or_too_large_files_is_refused(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    back_up(home, tmp_path / "b.tar.gz")
    monkeypatch.setattr(backup_archive, "MAX_FILES", 3)
    with pytest.raises(StorageError, match="more than 3 files"):
        prepare(tmp_path / "b.tar.gz", home)
    monkeypatch.undo()
    monkeypatch.setattr(backup_archive, "MAX_BYTES", 10)
    with pytest.raises(StorageError, match="more than"):
        prepare(tmp_path / "b.tar.gz", home)


@pytest.mark.requirement("backup:restore")
def test_a_folder_that_nobody_prepared_is_never_put_in_place(home: Path, tmp_path: Path) -> None:
    (home / ".restore").mkdir()
    for plan in ("", '{"names": ["../key"]}', '{"other": 1}'):
        (home / ".restore/plan.json").write_text(plan)
        with pytest.raises(StorageError, match="remove it"):
            apply_scheduled(home, tmp_path / "aside")
    assert (home / "key").read_text() == "ty-old\n"


# --- an archive from anywhere ---


def block(name: str, kind: bytes = REG, content: bytes = b"", size: int | None = None) -> bytes:
    """A member as it stands in an archive; ``size`` is what it says of its content."""
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, len(content) if size is None else size
    head = info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")
    return head + content + b"\0" * (-len(content) % tarfile.BLOCKSIZE)


def extended(*lines: bytes) -> bytes:
    """A header of the POSIX kind before a member."""
    records = (next(b"%d %s" % (n, line) for n in range(len(line), len(line) + 9) if len(b"%d %s" % (n, line)) == n)
               for line in (b"%s\n" % line for line in lines))  # fmt: skip
    return block("x", tarfile.XHDTYPE, b"".join(records))


def with_holes(size: int) -> bytes:
    """A file of one block that says to be larger, as GNU tar writes it."""
    head = bytearray(block("plugins/a/x", tarfile.GNUTYPE_SPARSE))
    head[386:482], head[482] = bytes(96), 0
    head[483:495] = b"%011o\0" % size if size >= 0 else b"\xff" + ((1 << 88) + size).to_bytes(11, "big")
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    return bytes(head)


END = bytes(2 * tarfile.BLOCKSIZE)
KEY = block("key", content=b"k" * 40)
TOOL = block("plugins/a/x", content=b"1")
HOSTILE = {
    "a header that is damaged in the middle": KEY + TOOL.replace(b"plugins", b"plugjns", 1) + END,
    "no end": KEY + TOOL,
    "an end in the middle": KEY + END + TOOL + END,
    "more than anybody pads": KEY + END + bytes(2**21),
    "a header that is cut off": KEY + TOOL[:300],
    "a large long name": block("x", tarfile.GNUTYPE_LONGNAME, b"key".ljust(2**20, b"\0")) + KEY + END,
    "a large header": extended(b"comment=" + b"a" * 9000) + KEY + END,
    "a header with less than nothing": block("x", tarfile.XHDTYPE, size=-512) + KEY + END,
    "a header for all": block("x", tarfile.XGLTYPE, b"13 comment=a\n") + KEY + END,
    "many headers": block("x", tarfile.XHDTYPE) * 1500 + KEY + END,
    "a file with holes": with_holes(2**30) + END,
    "a file with less than nothing": with_holes(-(2**50)) + TOOL + END,
    "a map of holes that is none": extended(b"GNU.sparse.map=a,b") + TOOL + END,
    "holes by number": extended(b"GNU.sparse.size=9999999", b"GNU.sparse.numblocks=1") + TOOL + END,
    "holes in the content": extended(b"GNU.sparse.major=1", b"GNU.sparse.minor=0", b"GNU.sparse.realsize=99999")
    + block("plugins/a/x", content=b"1\n0\n0\n")
    + END,
    "a real size": extended(b"GNU.sparse.realsize=-5") + TOOL + END,
    "a negative size": extended(b"size=-5") + TOOL + END,
    "a name of no text": block("plugins/\udc80") + END,
}


@pytest.mark.requirement("backup:restore")
@pytest.mark.parametrize("case", HOSTILE)
def test_an_archive_that_was_made_to_harm_is_refused_at_once_in_words(tmp_path: Path, case: str) -> None:
    home, archive = tmp_path / "home", tmp_path / "odd.tar.gz"
    home.mkdir()
    archive.write_bytes(gzip.compress(HOSTILE[case]))
    with pytest.raises(StorageError) as told:
        prepare(archive, home)
    str(told.value).encode()
    assert os.listdir(home) == []


@pytest.mark.requirement("backup:restore")
def test_the_members_that_hostile_archives_are_made_of_are_sound_alone(tmp_path: Path) -> None:
    (tmp_path / "b.tar.gz").write_bytes(gzip.compress(KEY + extended(b"path=plugins/a/y") + TOOL + END))
    prepared = prepare(tmp_path / "b.tar.gz", tmp_path)
    assert (prepared.folder / "plugins/a/y").read_bytes() == b"1"


@pytest.mark.requirement("backup:restore")
def test_one_bit_that_was_changed_anywhere_in_a_backup_is_seen(tmp_path: Path) -> None:
    home, archive = tmp_path / "home", tmp_path / "b.tar.gz"
    (home / "plugins/Tool").mkdir(parents=True)
    (home / "plugins/Tool/data").write_bytes(os.urandom(3000))
    back_up(home, archive)
    sound = archive.read_bytes()
    start = sound.index(b"\0", 10) + 1  # what stands before is a name and a time, which nobody reads
    for at in range(start, len(sound), 41):
        changed = bytearray(sound)
        changed[at] ^= 1
        archive.write_bytes(changed)
        with pytest.raises(StorageError):
            prepare(archive, home)
    archive.write_bytes(sound)
    prepare(archive, home).discard()


@pytest.mark.requirement("backup:restore")
def test_long_and_chinese_names_and_names_that_are_no_text_come_back(tmp_path: Path) -> None:
    home, archive = tmp_path / "home", tmp_path / "b.tar.gz"
    deep = "/".join(["深" * 60] * 10)
    names = ["长" * 60 + ".txt", "n" * 200, "计算.py", os.fsdecode("工具".encode("gbk")), f"{deep}/x"]
    odd = os.fsdecode(b"\xb9\xa4")
    for name in (*(f"plugins/Tool/{name}" for name in names), f"plugins/{odd}/x"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(name, errors="surrogateescape")
    back_up(home, archive)
    new = tmp_path / "new"
    new.mkdir()
    prepared = prepare(archive, new)
    assert prepared.contents.plugins == ["Tool", "\ufffd\ufffd"]
    for name in names:
        text = (prepared.folder / "plugins/Tool" / name).read_text(errors="surrogateescape")
        assert text == f"plugins/Tool/{name}"


@pytest.mark.requirement("backup:restore")
def test_a_full_disk_is_told_as_such_and_leaves_nothing(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    back_up(home, tmp_path / "b.tar.gz")
    before = sorted(os.listdir(home))

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(shutil, "copyfileobj", full)
    with pytest.raises(StorageUnwritable, match="the disk is full"):
        prepare(tmp_path / "b.tar.gz", home)
    assert sorted(os.listdir(home)) == before


@pytest.mark.requirement("backup:full-disk")
@pytest.mark.skipif(not may_mount(), reason="needs a file system of its own (unshare and mount)")
@pytest.mark.parametrize("options", ["size=4k,nr_inodes=1", "size=64k", "size=300k"])
def test_a_backup_on_a_full_disk_names_a_path_that_exists(home: Path, tmp_path: Path, options: str) -> None:
    (home / "plugins" / "Big").mkdir(parents=True)
    (home / "plugins" / "Big" / "noise").write_bytes(os.urandom(500_000))
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = f'mount -t tmpfs -o {options} tmpfs "$0" && exec "$@"'
    command = [sys.executable, "-m", "toolyard", "--home", str(home), "backup", str(disk / "b.tar.gz")]
    ended = subprocess.run(
        ["unshare", "-rm", "sh", "-c", mount, str(disk), *command], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr.count("the disk is full")) == (1, 1)
    (named,) = re.findall(r"/[^ :;]+", ended.stderr)
    assert named in (str(disk), str(home / "state.db"))


# --- a state from anywhere ---

STATES = {
    "a trigger": "CREATE TRIGGER t AFTER UPDATE ON records BEGIN DELETE FROM events; END",
    "a view": "CREATE VIEW v AS SELECT 1",
    "an index that computes": "CREATE INDEX i ON records (hex(owner))",
    "a column that computes": "ALTER TABLE records ADD COLUMN more AS (hex(owner))",
    "another table": "CREATE TABLE more (a CHECK (length(hex(a)) > 0))",
    "statistics that compute": "CREATE TABLE more (tbl, idx, stat AS (1)); PRAGMA writable_schema = ON; "
    "UPDATE sqlite_schema SET name = 'sqlite_stat1', tbl_name = 'sqlite_stat1', "
    "sql = 'CREATE TABLE sqlite_stat1(tbl, idx, stat AS (1))' WHERE name = 'more'",
    "no records": "DROP TABLE records",
    "no search": "DROP TABLE words",
    "other columns": "DROP TABLE records; CREATE TABLE records (kind TEXT)",
    "records that are a view": "DROP TABLE records; CREATE VIEW records AS SELECT 1 AS kind",
    "no format": "PRAGMA user_version = 0",
    "a format below all": "PRAGMA user_version = -1",
    "a schema that is no text": "PRAGMA writable_schema = ON; "
    "UPDATE sqlite_schema SET sql = CAST(x'ff66756c6cff' AS TEXT) WHERE name = 'records'",
}


@pytest.mark.requirement("backup:restore")
@pytest.mark.parametrize("case", STATES)
async def test_a_state_with_anything_but_the_tables_of_toolyard_is_refused_before_anything_in_it_runs(
    tmp_path: Path, case: str
) -> None:
    await keep_something(tmp_path, "one")
    state, archive, home = tmp_path / "state.db", tmp_path / "b.tar.gz", tmp_path / "home"
    home.mkdir()
    with closing(sqlite3.connect(state)) as db:
        db.execute("PRAGMA journal_mode = DELETE")
        db.executescript(STATES[case])
        db.commit()
    archive.write_bytes(tarred(("state.db", REG, state.read_bytes())))
    with pytest.raises(StorageError, match=r"state\.db in .*b\.tar\.gz is (no state of Toolyard|damaged)") as told:
        prepare(archive, home)
    assert not isinstance(told.value, StorageUnwritable)
    assert os.listdir(home) == []


@pytest.mark.requirement("backup:restore")
def test_a_state_that_is_empty_is_refused(tmp_path: Path) -> None:
    (tmp_path / "b.tar.gz").write_bytes(tarred(("state.db", REG, b"")))
    with pytest.raises(StorageError, match="no such table"):
        prepare(tmp_path / "b.tar.gz", tmp_path)
    assert os.listdir(tmp_path) == ["b.tar.gz"]


@pytest.mark.requirement("backup:restore")
async def test_a_state_that_its_owner_let_sqlite_measure_is_sound_and_odd_kinds_are_not_shown(tmp_path: Path) -> None:
    await keep_something(tmp_path, "one")
    with closing(sqlite3.connect(tmp_path / "state.db")) as db:
        db.execute("ANALYZE")
        db.execute("UPDATE records SET kind = x'00ff'")
        db.commit()
    check(tmp_path / "state.db")
    back_up(tmp_path, tmp_path / "b.tar.gz")
    prepared = prepare(tmp_path / "b.tar.gz", tmp_path)
    assert prepared.contents.counts == {"event": 1}
