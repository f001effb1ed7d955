"""What a backup holds, what is refused as one, and a restore that waits for the next start."""

import io
import itertools
import os
import tarfile
from pathlib import Path

import pytest

from toolyard.errors import StorageError
from toolyard.protocol.store import NewEvent, Record
from toolyard.storage import backup
from toolyard.storage.backup import back_up
from toolyard.storage.restore import finish, forget, keep, prepare, restore, waiting
from toolyard.storage.sqlite import SqliteStore

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
    assert waiting(home) is None
    keep(prepared, home)
    assert (home / "config.toml").read_text() == "# new\n", "nothing is changed before the next start"
    assert waiting(home) == prepared.contents
    done = finish(home, tmp_path / "aside")
    assert done is not None
    assert (home / "config.toml").read_text() == "# old\n"
    assert not (home / "keys.json").exists()
    assert (tmp_path / "aside/keys.json").exists()
    assert not (home / "plugins/Later").exists()
    assert (tmp_path / "aside/plugins/Later").exists()
    assert (home / "plugin-data/Tool/x").read_text() == "mine"
    assert finish(home, tmp_path / "another") is None
    assert [name for name in os.listdir(home) if name.startswith(".")] == []


@pytest.mark.requirement("backup:restore")
def test_what_waits_can_be_taken_back_and_a_later_one_takes_its_place(home: Path, tmp_path: Path) -> None:
    back_up(home, tmp_path / "b.tar.gz")
    (home / "host.env").unlink()
    back_up(home, tmp_path / "c.tar.gz")
    keep(prepare(tmp_path / "b.tar.gz", home), home)
    keep(prepare(tmp_path / "c.tar.gz", home), home)
    found = waiting(home)
    assert found is not None
    assert "host.env" not in found.names
    forget(home)
    assert waiting(home) is None
    assert finish(home, tmp_path / "aside") is None
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
    monkeypatch.setattr(backup, "MAX_FILES", 3)
    with pytest.raises(StorageError, match="more than 3 files"):
        prepare(tmp_path / "b.tar.gz", home)
    monkeypatch.undo()
    monkeypatch.setattr(backup, "MAX_BYTES", 10)
    with pytest.raises(StorageError, match="more than"):
        prepare(tmp_path / "b.tar.gz", home)


@pytest.mark.requirement("backup:restore")
def test_a_folder_that_nobody_prepared_is_never_put_in_place(home: Path, tmp_path: Path) -> None:
    (home / ".restore").mkdir()
    for plan in ("", '{"names": ["../key"]}', '{"other": 1}'):
        (home / ".restore/plan.json").write_text(plan)
        with pytest.raises(StorageError, match="remove it"):
            finish(home, tmp_path / "aside")
    assert (home / "key").read_text() == "ty-old\n"
