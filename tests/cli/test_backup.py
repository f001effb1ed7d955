"""Backup and restore of a home, and a state that cannot be used: real processes, real damage."""

import asyncio
import json
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.test_cli import Shell
from tests.workspace.nobody import shared_project
from toolyard.config import load_config
from toolyard.engine.ownership import OwnerLock
from toolyard.protocol.access import Effect
from toolyard.protocol.json import JsonObject
from toolyard.protocol.store import NewEvent, Query, Record, Store
from toolyard.protocol.tool import Origin
from toolyard.storage.sqlite import SqliteStore
from toolyard.workspace.home_folder import MachineLock
from toolyard.yard.yard import Yard

KINDS = ("call", "result", "task", "schedule", "approval", "rule")
WRITER = """
import asyncio, sys
from pathlib import Path
from toolyard.protocol.json import JsonObject
from toolyard.protocol.store import NewEvent, Record
from toolyard.storage.sqlite import SqliteStore

async def main():
    store = SqliteStore(Path(sys.argv[1]))
    for n in range(int(sys.argv[2])):
        made = [Record(kind=kind, id=f"w{n}", state="success", created=n, updated=n) for kind in ("call", "result")]
        assert await store.commit(made, [NewEvent(type="call.finished", at=n)])
        print(n, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


class Home:
    def __init__(self, shell: Shell) -> None:
        self.shell, self.place = shell, Path(shell.environment["TOOLYARD_HOME"])
        self.state = self.place / "state.db"

    async def fill(self) -> None:
        async with Yard(load_config(self.shell.project, self.place)) as yard:
            await yard.call("LS", {})
            await yard.state.schedules.submit(yard.calls.request("LS", {}, origin=Origin.CLI), cron="0 8 * * *")
            await yard.state.approvals.add_rule("Write", "", Effect.DENY, by="me")
            others = [Record(kind=kind, id=f"{kind}_1", state=state, created=1.0, updated=1.0, tool="T", text="words",
                             owner="another-machine/1/1/x", body={"call_id": "call_0", "arguments": {}})
                      for kind, state in (("call", "running"), ("approval", "pending"))]  # fmt: skip
            assert await yard.state.store.commit(others, [NewEvent(type="e", at=1.0)])
        (self.place / "config.toml").write_text('truncation_direction = "tail"\n')
        (self.place / "trust.json").write_text("{}")
        (self.place / "key").write_text("ty-key")


async def read_all_records(file: Path) -> dict[str, dict[str, tuple[str, JsonObject]]]:
    store: Store = SqliteStore(file)
    match = {kind: await store.find(kind, Query(), limit=1000) for kind in KINDS}
    events = await store.events(0, limit=1000)
    await store.close()
    result = {kind: {one.id: (one.state, one.body) for one in records} for kind, records in match.items()}
    return {**result, "event": {str(event.seq): (event.type, event.data) for event in events}}


@pytest.fixture
def home(project: Path, tmp_path: Path) -> Home:
    (project / "a.txt").write_text("x\n")
    return Home(Shell(project, tmp_path))


async def run(home: Home, *words: str) -> "subprocess.CompletedProcess[str]":
    return await asyncio.to_thread(home.shell.run, *words)


@pytest.mark.requirement("backup:restore")
async def test_a_backup_restored_into_an_empty_home_gives_the_same_state(home: Home, tmp_path: Path) -> None:
    await home.fill()
    archive = tmp_path / "backup.tar.gz"
    in_use = SqliteStore(home.state)
    assert await in_use.commit([Record(kind="task", id="t", state="failed", created=1.0, updated=1.0)])  # in the log
    done = await run(home, "backup", str(archive))
    await in_use.close()
    assert (done.returncode, done.stderr) == (0, "")
    before = await read_all_records(home.state)
    assert archive.stat().st_mode & 0o777 == 0o600
    new = tmp_path / "new home"
    done = await run(home, "restore", str(archive), "--home", str(new), "--json")
    result = json.loads(done.stdout)
    assert (done.returncode, result["files"]) == (0, ["config.toml", "trust.json", "key", "state.db"])
    assert await read_all_records(new / "state.db") == before
    assert (new / "config.toml").read_text() == 'truncation_direction = "tail"\n'
    assert {file.stat().st_mode & 0o777 for file in new.iterdir() if file.name in result["files"]} == {0o600}
    assert not [file for file in new.iterdir() if file.name.startswith(".")]


@pytest.mark.requirement("backup:restore", "p:P10")
async def test_what_ran_when_the_backup_was_made_is_interrupted_after_a_restore(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await home.fill()
    archive = tmp_path / "backup.tar.gz"
    monkeypatch.setattr(socket, "gethostname", lambda: "another-machine")
    machine = MachineLock.acquire(home.place)
    await run(home, "backup", str(archive))
    listed = json.loads((await run(home, "journal", "list", "--json", "--state", "running")).stdout)
    assert len(listed) == 1  # another machine's, which still uses the home
    machine.release()
    await run(home, "restore", str(archive), "--home", str(tmp_path / "new"))
    new = ("--json", "--home", str(tmp_path / "new"))
    assert json.loads((await run(home, "journal", "list", "--state", "running", *new)).stdout) == []
    (pending,) = json.loads((await run(home, "approval", "list", *new)).stdout)
    assert pending["state"] == "interrupted"


@pytest.mark.requirement("backup:restore")
async def test_a_backup_while_another_process_writes_is_of_one_moment(home: Home, tmp_path: Path) -> None:
    await home.fill()
    writer = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WRITER, str(home.state), "1000000", stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert writer.stdout is not None
    for number in range(3):
        lines = [await asyncio.wait_for(writer.stdout.readline(), 60) for _ in range(20)]
        assert (await run(home, "backup", str(tmp_path / f"{number}.tar.gz"))).returncode == 0
        await run(home, "restore", str(tmp_path / f"{number}.tar.gz"), "--home", str(tmp_path / f"home{number}"))
        store = SqliteStore(tmp_path / f"home{number}" / "state.db")
        calls = await store.find("call", Query(states=("success",)), limit=100_000)
        mine = sorted(int(one.id[1:]) for one in calls if one.id.startswith("w"))
        assert mine == list(range(len(mine)))
        assert len(mine) > int(lines[-1])  # what was acknowledged before is in it
        results = await store.find("result", Query(states=("success",)), limit=100_000)
        assert len(results) == len(mine)
        await store.close()
    writer.kill()
    _, output = await writer.communicate()
    assert output == b""


@pytest.mark.requirement("backup:restore")
async def test_restore_replaces_nothing_unless_forced_and_then_puts_it_aside(home: Home, tmp_path: Path) -> None:
    await home.fill()
    before = await read_all_records(home.state)
    archive = tmp_path / "backup.tar.gz"
    await run(home, "backup", str(archive))
    assert (await run(home, "backup", str(archive))).returncode == 1  # a backup is never written over
    await run(home, "call", "LS")
    refused = await run(home, "restore", str(archive))
    assert (refused.returncode, "--force" in refused.stderr) == (1, True)
    changed = await read_all_records(home.state)
    assert changed != before
    forced = json.loads((await run(home, "restore", "--force", str(archive), "--json")).stdout)
    assert await read_all_records(home.state) == before
    assert await read_all_records(Path(forced["aside"]) / "state.db") == changed


@pytest.mark.requirement("backup:restore", "r:R05")
async def test_restore_refuses_a_home_that_is_in_use(home: Home, tmp_path: Path) -> None:
    await home.fill()
    archive = tmp_path / "backup.tar.gz"
    lock = OwnerLock.acquire(home.place)
    assert (await run(home, "backup", str(archive))).returncode == 0
    refused = await run(home, "restore", "--force", str(archive))
    assert (refused.returncode, str(home.place) in refused.stderr) == (3, True)
    lock.release()
    store = SqliteStore(home.state)
    await store.event_span()
    refused = await run(home, "restore", "--force", str(archive))
    assert (refused.returncode, "is used by a running process" in refused.stderr) == (1, True)
    await store.close()
    assert (await run(home, "restore", "--force", str(archive))).returncode == 0


@pytest.mark.requirement("backup:restore")
def test_an_archive_that_is_no_backup_is_refused_with_its_name_and_changes_nothing(home: Home, tmp_path: Path) -> None:
    archive = tmp_path / "odd.tar.gz"
    archive.write_bytes(b"not an archive")
    done = home.shell.run("restore", "--force", str(archive))
    assert (done.returncode, str(archive) in done.stderr, "bug" in done.stderr) == (1, True, False)
    assert [file.name for file in home.place.iterdir()] == ["owner.lock"]


@pytest.mark.requirement("backup:restore")
async def test_a_backup_that_was_changed_is_refused_with_its_name_and_the_home_stays(
    home: Home, tmp_path: Path
) -> None:
    await home.fill()
    before = await read_all_records(home.state)
    archive = tmp_path / "backup.tar.gz"
    with closing(sqlite3.connect(home.state)) as db:
        db.execute("CREATE TRIGGER t AFTER UPDATE ON records BEGIN DELETE FROM events; END")
    refused = await run(home, "backup", str(archive))
    assert (refused.returncode, "is no state of Toolyard" in refused.stderr, archive.exists()) == (1, True, False)
    with closing(sqlite3.connect(home.state)) as db:
        db.execute("DROP TRIGGER t")
    assert (await run(home, "backup", str(archive))).returncode == 0
    content = bytearray(archive.read_bytes())
    content[len(content) // 2] ^= 1
    archive.write_bytes(content)
    refused = await run(home, "restore", "--force", str(archive))
    assert (refused.returncode, str(archive) in refused.stderr, "bug" in refused.stderr) == (1, True, False)
    assert await read_all_records(home.state) == before


@pytest.mark.requirement("backup:restore")
def test_there_is_no_backup_of_nothing_and_none_of_what_is_not_there(home: Home, tmp_path: Path) -> None:
    assert "nothing to back up" in home.shell.run("backup", str(tmp_path / "b.tar.gz")).stderr
    assert "does not exist" in home.shell.run("restore", str(tmp_path / "none.tar.gz")).stderr
    (home.place / "config.toml").write_text("")
    assert "cannot be written" in home.shell.run("backup", str(tmp_path / "no" / "such" / "b.tar.gz")).stderr


# --- a state that cannot be used ---


def flip_bytes(file: Path) -> None:
    """Bytes of every page but the first are turned around, as a bad disk does it."""
    content = bytearray(file.read_bytes())
    for page in range(4096, len(content), 4096):
        for at in range(page, page + 64):
            content[at] ^= 0xFF
    file.write_bytes(content)


def erase_header(file: Path) -> None:
    file.write_bytes(b"garbage!" * 2 + file.read_bytes()[16:])


def truncate_file(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: 4096 * 5])


def raise_version(file: Path) -> None:
    with closing(sqlite3.connect(file)) as db:
        db.execute("PRAGMA user_version = 999")


@pytest.mark.requirement("r:R06")
@pytest.mark.parametrize("damage", [flip_bytes, erase_header, truncate_file, raise_version])
async def test_a_damaged_or_newer_state_is_refused_with_its_path_and_never_written(
    home: Home, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    await home.fill()
    archive = tmp_path / "backup.tar.gz"
    await run(home, "backup", str(archive))
    before = await read_all_records(home.state)
    damage(home.state)
    damaged = home.state.read_bytes()
    for words in (("journal", "list"), ("call", "LS"), ("backup", str(tmp_path / "another.tar.gz"))):
        done = await run(home, *words)
        assert (words, done.returncode, done.stdout) == (words, 1, "")
        assert (str(home.state) in done.stderr, "bug" in done.stderr) == (True, False)
        assert "toolyard restore" in done.stderr or "use that version" in done.stderr
    assert home.state.read_bytes() == damaged
    checks = {one["name"]: one for one in json.loads((await run(home, "doctor", "--json")).stdout)}
    assert checks["state"]["health"] == "fail"
    assert str(home.state) in checks["state"]["detail"]
    assert "toolyard restore" in checks["state"]["fix"]
    assert (await run(home, "restore", "--force", str(archive))).returncode == 0
    assert await read_all_records(home.state) == before


READ_ONLY = """
import os, sys
import toolyard
from toolyard.errors import ToolyardError
project, home = sys.argv[1:]
with toolyard.open(project=project, home=home) as yard:
    yard.call("Read", {"path": "no such file"})
for place, mode in (("state.db", 0o444), ("state.db-wal", 0o444), ("state.db-shm", 0o444), (".", 0o555)):
    if os.path.exists(os.path.join(home, place)):
        os.chmod(os.path.join(home, place), mode)
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
try:
    with toolyard.open(project=project, home=home) as yard:
        print(yard.call("LS", {}).status.value)
except ToolyardError as error:
    print(error)
"""


@pytest.mark.requirement("r:R06")
@pytest.mark.requirement("home:unwritable")
def test_a_home_that_is_read_only_is_named_and_no_call_runs_without_a_record() -> None:
    with shared_project() as project:
        home = project.parent / "home"
        command = [sys.executable, "-c", READ_ONLY, str(project), str(home)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
        home.chmod(0o700)
    result = f"{home} is read-only for this user: make it writable, or use another --home\n"
    assert (done.returncode, done.stdout) == (0, result), done.stderr


@pytest.mark.requirement("r:R06", "p:P7")
async def test_a_log_cut_short_leaves_every_whole_commit_before_the_cut(home: Home) -> None:
    await home.fill()
    killed = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WRITER, str(home.state), "30", stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert killed.stdout is not None
    for _ in range(30):
        await asyncio.wait_for(killed.stdout.readline(), 60)
    killed.kill()
    await killed.communicate()
    log = home.state.with_name("state.db-wal")
    log.write_bytes(log.read_bytes()[: log.stat().st_size * 2 // 3 + 7])
    checks = {one["name"]: one for one in json.loads((await run(home, "doctor", "--json")).stdout)}
    assert checks["state"]["health"] == "ok"
    store = SqliteStore(home.state)
    result = [await store.find(kind, Query(states=("success",)), limit=10_000) for kind in ("call", "result")]
    calls, results = ({one.id for one in records if one.id.startswith("w")} for records in result)
    await store.close()
    assert 0 < len(calls) < 30
    assert calls == results == {f"w{number}" for number in range(len(calls))}
