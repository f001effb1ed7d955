"""The trash: what is deleted or overwritten comes back as it was."""

import errno
import os
import stat
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import FakeClock
from tests.workspace.test_arranger import never, refused, tree
from tests.workspace.vectors import put
from toolyard.protocol.envelope import ErrorCode, Reason
from toolyard.workspace.changes.transaction import Transactions
from toolyard.workspace.changes.trash import RETENTION, Trash
from toolyard.workspace.workspace import Workspace

pytestmark = pytest.mark.requirement("fileoperator:delete")


class Bench:
    def __init__(self, workspace: Workspace, home: Path) -> None:
        self.clock = FakeClock()
        self.folder = home / "trash"
        self.transactions = Transactions(home / "t", workspace.root)
        self.trash = Trash(self.folder, workspace, self.transactions, self.clock.now)

    @property
    def trashed_names(self) -> list[str]:
        return sorted(path.name for path in self.folder.glob("*/*"))


@pytest.fixture
def bench(workspace: Workspace, tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(workspace, tmp_path / "home")
    yield bench
    bench.transactions.close()


def across(monkeypatch: pytest.MonkeyPatch, project: Path) -> None:
    """Let the project and the home be on two file systems, as far as renames and links can tell."""
    real = {"rename": os.rename, "link": os.link}

    def inside(fd: int) -> bool:
        return os.readlink(f"/proc/self/fd/{fd}").startswith(f"{project}")

    def barred(name: str) -> Any:
        def work(*words: Any, src_dir_fd: int, dst_dir_fd: int, **more: Any) -> None:
            if inside(src_dir_fd) != inside(dst_dir_fd):
                raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
            real[name](*words, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd, **more)

        return work

    for name in real:
        monkeypatch.setattr(os, name, barred(name))


@pytest.mark.parametrize("far", [False, True])
def test_files_folders_and_links_come_back_as_they_were(
    project: Path, bench: Bench, monkeypatch: pytest.MonkeyPatch, far: bool
) -> None:
    if far:
        if not os.path.isdir("/proc/self/fd"):
            pytest.skip("no /proc to tell where a descriptor leads")
        across(monkeypatch, project)
    put(project, {"d/a.txt": "a", "d/link": {"symlink": "a.txt"}, "run.sh": "x", "l": {"symlink": "run.sh"}})
    put(project, {"empty": {"dir": True}})
    (project / "run.sh").chmod(0o750)
    os.utime(project / "run.sh", (1_000_000_000, 1_000_000_000))
    before = tree(project)
    trashed = [bench.trash.move_to_trash(path, never) for path in ("l", "run.sh", "./d/", "empty")]
    assert [one.path for one in trashed] == ["l", "run.sh", "d", "empty"]
    assert list(project.iterdir()) == []
    assert [bench.trash.restore(one.id, never) for one in trashed] == ["l", "run.sh", "d", "empty"]
    assert (tree(project), bench.trashed_names) == (before, [])
    info = (project / "run.sh").stat()
    assert (stat.S_IMODE(info.st_mode), info.st_mtime) == (0o750, 1_000_000_000)
    assert (project / "empty").is_dir()


def test_a_place_that_is_taken_again_is_not_touched(project: Path, bench: Bench) -> None:
    put(project, {"a.txt": "old"})
    trashed = bench.trash.move_to_trash("a.txt", never)
    put(project, {"a.txt": "new"})
    assert refused(bench.trash.restore, trashed.id, never).reason is Reason.ALREADY_EXISTS
    (project / "a.txt").unlink()
    bench.trash.restore(trashed.id, never)
    assert tree(project) == {"a.txt": "old"}


def test_the_folders_on_the_way_are_made_again(project: Path, bench: Bench) -> None:
    put(project, {"a/b/c.txt": "c"})
    file = bench.trash.move_to_trash("a/b/c.txt", never)
    bench.trash.move_to_trash("a", never)
    bench.trash.restore(file.id, never)
    assert tree(project) == {"a/b/c.txt": "c"}


def test_an_old_version_takes_the_place_of_the_new_one_which_is_kept_in_turn(project: Path, bench: Bench) -> None:
    put(project, {"a.txt": "new"})
    old = bench.trash.keep_version("a.txt", b"old")
    bench.trash.restore(old.id, never)
    assert tree(project) == {"a.txt": "old"}
    [new] = [path.name for path in bench.folder.glob("*/*")]
    bench.trash.restore(new, never)
    assert tree(project) == {"a.txt": "new"}


def test_an_old_version_of_a_file_that_is_gone_makes_it_again(project: Path, bench: Bench) -> None:
    bench.trash.restore(bench.trash.keep_version("sub/a.txt", b"old").id, never)
    assert tree(project) == {"sub/a.txt": "old"}


@pytest.mark.parametrize("own", ["", "..", "../..", "x", "20261115T093000-0000000000000000", "a/b", "\0"])
def test_an_id_that_names_nothing_is_not_found_and_is_never_a_path(bench: Bench, own: str) -> None:
    assert refused(bench.trash.restore, own, never).code is ErrorCode.NOT_FOUND


def test_what_came_back_cannot_come_back_again(project: Path, bench: Bench) -> None:
    put(project, {"a.txt": "a"})
    trashed = bench.trash.move_to_trash("a.txt", never)
    bench.trash.restore(trashed.id, never)
    assert refused(bench.trash.restore, trashed.id, never).code is ErrorCode.NOT_FOUND


def test_an_old_version_that_two_ask_for_at_once_takes_nothing_away(project: Path, bench: Bench) -> None:
    (project / "a.txt").write_text("new")
    kept = bench.trash.keep_version("a.txt", b"old")

    def other_first() -> None:
        for file in bench.folder.glob(f"*/{kept.id}/*"):
            file.unlink()  # as whoever was given it does

    assert refused(lambda: bench.trash.restore(kept.id, other_first)).code is ErrorCode.NOT_FOUND
    assert (project / "a.txt").read_text() == "new"


def test_what_was_kept_long_enough_goes_when_something_new_comes(project: Path, bench: Bench) -> None:
    put(project, {"a.txt": "a", "b/x": "b", "c.txt": "c"})
    first, second = bench.trash.move_to_trash("a.txt", never), bench.trash.move_to_trash("b", never)
    bench.clock.advance(RETENTION.total_seconds())
    third = bench.trash.move_to_trash("c.txt", never)
    assert bench.trashed_names == sorted([first.id, second.id, third.id])
    bench.clock.advance(1)
    put(project, {"d.txt": "d"})
    last = bench.trash.move_to_trash("d.txt", never)
    assert bench.trashed_names == sorted([third.id, last.id])


def test_ids_tell_the_time_in_utc(project: Path, bench: Bench) -> None:
    zone = datetime(2026, 1, 1, 8, 0, tzinfo=UTC).astimezone(tz=None).tzinfo
    bench.clock.wall = datetime(2026, 3, 1, 12, 0, 5, tzinfo=UTC).astimezone(zone) + timedelta(0)
    assert bench.trash.keep_version("a", b"").id.startswith("20260301T120005-")


@pytest.mark.requirement("s:S-12:write", "s:S-10:write")
def test_nothing_outside_is_deleted_and_neither_is_the_root(project: Path, bench: Bench, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    put(outside, {"secret.txt": "s"})
    put(project, {"link": {"symlink": str(outside)}, "file": {"symlink": str(outside / "secret.txt")}, "sub/x": "x"})
    put(project, {".git/config": "c"})
    paths = ["../outside", "link", "file", "link/secret.txt", "/etc/hostname", ".", "sub/..", "", ".git", ".git/config"]
    found = {path: refused(bench.trash.move_to_trash, path, never).code for path in paths}
    assert found == dict.fromkeys(paths, ErrorCode.ACCESS_DENIED)
    assert (tree(outside), bench.trashed_names) == ({"secret.txt": "s"}, [])


def test_a_folder_reached_by_a_way_up_is_the_folder(project: Path, bench: Bench) -> None:
    put(project, {"a/b/x": "x", "a/y": "y"})
    assert bench.trash.move_to_trash("a/b/..", never).path == "a"
    assert tree(project) == {}


def test_what_cannot_be_taken_stays_where_it_is(project: Path, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    put(project, {"a.txt": "a"})

    def full(*words: Any, **more: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", full)
        assert refused(bench.trash.move_to_trash, "a.txt", never).code is ErrorCode.EXECUTION_ERROR
    assert (tree(project), bench.trashed_names) == ({"a.txt": "a"}, [])


def test_a_name_that_is_no_text_comes_back_with_its_bytes(project: Path, bench: Bench) -> None:
    (project / os.fsdecode(b"caf\xe9.txt")).write_text("x")
    trashed = bench.trash.move_to_trash("caf\\xe9.txt", never)
    bench.trash.restore(trashed.id, never)
    assert os.listdir(os.fsencode(project)) == [b"caf\xe9.txt"]


def test_owner_and_attributes_survive_another_file_system_as_far_as_the_system_allows(
    project: Path, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not hasattr(os, "setxattr") or not os.path.isdir("/proc/self/fd"):
        pytest.skip("only Linux has these")
    put(project, {"d/run.sh": "x", "d/l": {"symlink": "run.sh"}})
    file = project / "d/run.sh"
    try:
        os.setxattr(file, "user.note", b"kept")
    except OSError:
        pytest.skip("this file system keeps no attributes")
    owner = 12345 if os.geteuid() == 0 else os.geteuid()
    os.chown(file, owner, -1)
    os.chown(project / "d/l", owner, -1, follow_symlinks=False)
    file.chmod(0o4750)
    across(monkeypatch, project)
    trashed = bench.trash.move_to_trash("d", never)
    bench.trash.restore(trashed.id, never)
    info = file.stat()
    assert (info.st_uid, stat.S_IMODE(info.st_mode), os.getxattr(file, "user.note")) == (owner, 0o4750, b"kept")
    assert (project / "d/l").lstat().st_uid == owner


def test_a_copy_that_cannot_keep_its_owner_does_not_run_with_the_rights_of_another(
    project: Path, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused_by_the_system(*_: Any, **__: Any) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("no /proc to tell where a descriptor leads")
    put(project, {"run.sh": "x"})
    (project / "run.sh").chmod(0o4750)
    across(monkeypatch, project)
    monkeypatch.setattr(os, "fchown", refused_by_the_system)
    bench.trash.restore(bench.trash.move_to_trash("run.sh", never).id, never)
    assert stat.S_IMODE((project / "run.sh").stat().st_mode) == 0o750
