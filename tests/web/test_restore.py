"""A backup from anywhere over HTTP: what no server should take or could start with is refused in words."""

import errno
import io
import os
import shutil
import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path

import pytest

from tests.web.conftest import RunningServer, run_server
from toolyard.config import load_config
from toolyard.errors import UsageError
from toolyard.storage.backup_restore import prepare, schedule_restore
from toolyard.web.server.lifecycle import Server, ServerOptions

GZIP = {"Content-Type": "application/gzip"}
RESTORE = "/v1/backup/restore"


def archive(**files: bytes) -> bytes:
    return pack({name.replace("_", "."): content for name, content in files.items()})


def pack(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", format=tarfile.GNU_FORMAT, errors="surrogateescape") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


def write_endless_state(place: Path) -> bytes:
    """A state that never ends when one of its records is changed."""
    with closing(sqlite3.connect(place)) as db:
        db.executescript(
            "CREATE TABLE records (kind TEXT, owner TEXT, version INT); CREATE TABLE events (a);"
            "INSERT INTO records VALUES ('a', 'o', 1); PRAGMA user_version = 1;"
            "CREATE TRIGGER t AFTER UPDATE ON records BEGIN INSERT INTO events WITH RECURSIVE c(x) AS "
            "(SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 20000000) SELECT count(*) FROM c; END"
        )
    return place.read_bytes()


@pytest.mark.requirement("http:status", "backup:restore")
async def test_a_backup_that_was_made_to_harm_is_refused_in_words_and_leaves_nothing(
    running_server: RunningServer, tmp_path: Path
) -> None:
    before = sorted(os.listdir(running_server.home))
    sound = pack({"plugins/a/x": os.urandom(5000)})
    changed = bytearray(sound)
    changed[2500] ^= 1
    for content, output in (
        (archive(state_db=write_endless_state(tmp_path / "endless.db")), "is no state of Toolyard"),
        (archive(state_db=b""), "no such table"),
        (archive(key=b"\n"), "its key is empty"),
        (archive(key=b"\xff\xfe"), "its key cannot be read"),
        (archive(key=b"k" * (2**20 + 1)), "larger than 1 MiB"),
        (archive(config_toml=b"#" * (2**20 + 1)), "larger than 1 MiB"),
        (archive(config_toml=b"\xff"), "could not start with its settings"),
        (pack({"full\udc80": b""}), "'full\\udc80'"),
        (bytes(changed), "cannot be read as a backup"),
    ):
        refused = await running_server.post(RESTORE, data=content, headers=GZIP)
        message = refused.json["error"]["message"]
        assert (refused.status, output in message, str(running_server.home) in message) == (400, True, False), message
    assert sorted(os.listdir(running_server.home)) == before
    assert (await running_server.post(RESTORE, data=sound, headers=GZIP)).status == 201
    assert (await running_server.post(RESTORE, data=pack({"plugins/\udc80/x": b""}), headers=GZIP)).json["plugins"] == [
        "\ufffd"
    ]


@pytest.mark.requirement("http:status", "backup:restore")
async def test_a_disk_that_is_full_is_no_fault_of_the_backup(
    running_server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sorted(os.listdir(running_server.home))

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(shutil, "copyfileobj", full)
    response = await running_server.post(RESTORE, data=archive(key=b"k" * 40), headers=GZIP)
    assert (response.status, "the disk is full" in response.json["error"]["message"]) == (507, True)
    assert sorted(os.listdir(running_server.home)) == before


@pytest.mark.requirement("s:S-41", "backup:restore")
async def test_a_backup_with_a_short_key_does_not_open_a_server_to_other_machines(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    for folder in (home, project):
        folder.mkdir()
    (home / "key").write_text("k" * 40)
    (tmp_path / "b.tar.gz").write_bytes(archive(key=b"short\n"))
    schedule_restore(prepare(tmp_path / "b.tar.gz", home), home)
    with pytest.raises(UsageError, match="32 characters"):
        Server(load_config(project, home), ServerOptions(host="0.0.0.0", port=0, allow_remote=True))
    assert (home / "key").read_text() == "short\n"
    async with run_server(tmp_path) as running:
        assert running.server.key == "short"
