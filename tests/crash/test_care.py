"""kill -9 while a home is looked after: keys, addresses, plugins, backups. Each is there whole, or not yet."""

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.crash.scene import ENVIRONMENT, ROOT, Ended, ended
from toolyard.storage.backup_restore import apply_scheduled, restore

POINTS = ["key.before-link:1", "presence.before-replace:1", "presence.before-replace:2", "plugin.before-unpacked:1",
          "plugin.before-removal:1", "backup.before-rename:1", "restore.put-aside:1", "restore.put-aside:2",
          "restore.put-in-place:1", "restore.put-in-place:2", "restore.before-wait:1",
          "restore.before-removal:1", "repair.before-replace:1"]  # fmt: skip


def things(file: Path) -> set[str]:
    with closing(sqlite3.connect(file)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return {name for (name,) in db.execute("SELECT id FROM records")}


def run(place: Path, point: str) -> Ended:
    command = [sys.executable, "-m", "tests.crash.care", str(place), point]
    return ended(
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=ENVIRONMENT)
    )


@pytest.mark.requirement("p:P7", "crash:invariants", "r:R01")
@pytest.mark.parametrize("point", POINTS)
def test_a_home_that_was_being_looked_after_is_whole_after_kill_9(tmp_path: Path, point: str) -> None:
    host, home = run(tmp_path, point), tmp_path / "home"
    assert host.killed, host.errors
    done = {ack["what"] for ack in host.acks}
    if "key" in done:  # a restore that was cut off is to be done again; what it put aside is there
        key = home / "key" if (home / "key").exists() else tmp_path / "aside" / "key"
        assert key.read_text() == host.of("key")[0]["text"] + "\n"
    elif (home / "key").exists():
        assert (home / "key").read_text().startswith("ty-")
    urls = [ack["url"] for ack in host.of("announced")]
    server = home / "server.json"
    assert not urls or json.loads(server.read_text())["url"] >= urls[-1]
    inside = [file for file in home.rglob("main.py") if file.parent.parent.name in ("plugins", ".removed")]
    assert [file.read_text() for file in inside] == (["whole"] if "installed" in done else [])
    if (tmp_path / "backup.tar.gz").exists():
        (tmp_path / "another").mkdir()
        restore(tmp_path / "backup.tar.gz", tmp_path / "another", tmp_path / "nothing")
        assert things(tmp_path / "another" / "state.db") == {"first"}
    begun = point.startswith("restore.put") or point == "restore.before-removal:1"
    states = [file for file in (home / "state.db", tmp_path / "aside" / "state.db") if file.exists()]
    found = [things(file) for file in states]
    assert {"first"} in found if "backup" not in done else {"first", "second"} in found, "what was there is kept"
    if begun:  # the next start finishes it
        contents = apply_scheduled(home, tmp_path / "not needed")
        assert contents is not None
        assert things(home / "state.db") == {"first"}
        assert (home / "config.toml").read_text() == "# first\n"
        assert things(tmp_path / "aside" / "state.db") == {"first", "second"}
        assert (tmp_path / "aside" / "config.toml").read_text() == "# second\n"
        assert apply_scheduled(home, tmp_path / "not needed") is None
        assert [file.name for file in home.iterdir() if file.name.startswith(".restor")] == []
