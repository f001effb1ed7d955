"""New files, copies, moves and folders: never over anything, never outside, whatever changes meanwhile."""

import errno
import os
import stat
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.workspace.vectors import put
from toolyard.protocol.envelope import ErrorCode, Failure, Reason
from toolyard.workspace.changes.arranger import MAX_COPY_BYTES, Arranger, list_free_names
from toolyard.workspace.changes.transaction import Transactions
from toolyard.workspace.changes.undo_records import Folder
from toolyard.workspace.workspace import Workspace


def never() -> None:
    """A checkpoint that lets everything pass."""


@pytest.fixture
def arranger(workspace: Workspace, tmp_path: Path) -> Iterator[Arranger]:
    transactions = Transactions(tmp_path / "home", workspace.root)
    yield Arranger(workspace, transactions)
    transactions.close()


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    put(folder, {"secret.txt": "secret"})
    return folder


def tree(root: Path) -> dict[str, str]:
    """Every file below ``root`` with its text; links by their targets."""
    return {
        path.relative_to(root).as_posix(): f"-> {os.readlink(path)}" if path.is_symlink() else path.read_text()
        for path in sorted(root.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


def refused(work: Any, *words: Any, **more: Any) -> Failure:
    with pytest.raises(Failure) as caught:
        work(*words, **more)
    return caught.value


@pytest.mark.requirement("fileoperator:write")
@pytest.mark.parametrize(
    ("name", "is_folder", "second"),
    [
        (b"a.txt", False, b"a(1).txt"),
        (b"a.tar.gz", False, b"a.tar(1).gz"),
        (b"Makefile", False, b"Makefile(1)"),
        (b".env", False, b".env(1)"),
        (b"v1.2", True, b"v1.2(1)"),
        (b"caf\xe9.txt", False, b"caf\xe9(1).txt"),
    ],
)
def test_a_taken_name_gets_its_number_before_its_ending(name: bytes, is_folder: bool, second: bytes) -> None:
    names = list_free_names(name, is_folder=is_folder)
    assert [next(names), next(names)] == [name, second]


@pytest.mark.requirement("fileoperator:write")
def test_parallel_creations_of_one_name_all_land_under_names_of_their_own(project: Path, arranger: Arranger) -> None:
    with ThreadPoolExecutor(8) as pool:
        placed = list(pool.map(lambda n: arranger.create("d/a.txt", str(n).encode(), never).path, range(20)))
    assert sorted(placed) == sorted(tree(project))
    assert sorted(map(int, tree(project).values())) == list(range(20))


@pytest.mark.requirement("fileoperator:copy-move")
def test_a_copy_has_the_content_and_the_mode_of_its_source(project: Path, arranger: Arranger) -> None:
    put(project, {"run.sh": "echo"})
    (project / "run.sh").chmod(0o755)
    placed = arranger.copy("run.sh", "new/folder/copy.sh", never)
    copied = project / "new/folder/copy.sh"
    assert (placed.path, placed.is_renamed, copied.read_text()) == ("new/folder/copy.sh", False, "echo")
    assert stat.S_IMODE(copied.stat().st_mode) == 0o755


@pytest.mark.requirement("fileoperator:copy-move")
@pytest.mark.parametrize("work", ["copy", "move"])
@pytest.mark.parametrize(
    ("destination", "path"),
    [
        ("b.txt", "b(1).txt"),
        ("sub", "sub/a.txt"),
        ("sub/", "sub/a.txt"),
        ("fresh/", "fresh/a.txt"),
        ("full", "full/a(1).txt"),
        ("other/c.txt", "other/c.txt"),
        ("link", "sub/a.txt"),
    ],
)
def test_a_taken_name_is_never_replaced_and_a_folder_means_into_it(
    project: Path, arranger: Arranger, work: str, destination: str, path: str
) -> None:
    put(project, {"a.txt": "a", "b.txt": "b", "sub": {"dir": True}, "full/a.txt": "old", "link": {"symlink": "sub"}})
    before = tree(project)
    placed = getattr(arranger, work)("a.txt", destination, never)
    assert (placed.path, placed.is_renamed) == (path, "(1)" in path)
    gone = {"a.txt"} if work == "move" else set()
    assert tree(project) == {name: text for name, text in before.items() if name not in gone} | {path: "a"}


@pytest.mark.requirement("fileoperator:copy-move")
def test_a_folder_moves_with_all_that_is_in_it(project: Path, arranger: Arranger) -> None:
    put(project, {"src/a/b.txt": "b", "src/link": {"symlink": "a"}, "taken/x": "x", "taken(1)": "file"})
    os.mkdir(project / "empty")
    assert arranger.move("src", "moved/here", never).path == "moved/here"
    assert arranger.move("moved", "taken/", never).path == "taken/moved"
    assert arranger.move("empty", "taken/moved", never).path == "taken/moved/empty"
    assert tree(project) == {
        "taken/moved/here/a/b.txt": "b",
        "taken/moved/here/link": "-> a",
        "taken/x": "x",
        "taken(1)": "file",
    }


@pytest.mark.requirement("fileoperator:copy-move")
def test_a_rename_refuses_any_name_that_is_taken(project: Path, arranger: Arranger) -> None:
    put(project, {"a.txt": "a", "b.txt": "b", "sub/x": "x", "dangling": {"symlink": "nothing"}})
    before = tree(project)
    found = [refused(arranger.move, "a.txt", name, never, exactly=True).reason for name in ("b.txt", "sub")]
    assert (found, tree(project)) == ([Reason.ALREADY_EXISTS] * 2, before)
    assert arranger.move("a.txt", "c.txt", never, exactly=True).path == "c.txt"


@pytest.mark.requirement("fileoperator:copy-move")
@pytest.mark.parametrize(
    ("source", "destination", "code"),
    [
        ("sub", "sub/inner", ErrorCode.INVALID_PARAM),
        ("sub", "sub/inner/deep", ErrorCode.INVALID_PARAM),
        ("a.txt", "a.txt", ErrorCode.INVALID_PARAM),
        ("a.txt", ".", ErrorCode.INVALID_PARAM),
        ("a.txt", "./sub/../a.txt", ErrorCode.INVALID_PARAM),
        ("missing", "b", ErrorCode.NOT_FOUND),
        (".", "b", ErrorCode.ACCESS_DENIED),
        ("sub/..", "b", ErrorCode.ACCESS_DENIED),
        ("a.txt", "a.txt/b", ErrorCode.NOT_FOUND),
        ("a.txt", ".git/hooks/pre-commit", ErrorCode.ACCESS_DENIED),
        (".git/config", "b", ErrorCode.ACCESS_DENIED),
    ],
)
def test_a_move_that_makes_no_sense_changes_nothing(
    project: Path, arranger: Arranger, source: str, destination: str, code: ErrorCode
) -> None:
    put(project, {"a.txt": "a", "sub/x": "x", ".git/config": "c"})
    before = tree(project)
    assert refused(arranger.move, source, destination, never).code is code
    assert tree(project) == before


@pytest.mark.requirement("fileoperator:copy-move", "s:S-12:write")
def test_a_link_is_moved_as_a_link_and_copied_as_its_content(project: Path, arranger: Arranger) -> None:
    put(project, {"real.txt": "real", "link": {"symlink": "real.txt"}, "dangling": {"symlink": "nothing"}})
    arranger.copy("link", "copy.txt", never)
    arranger.move("link", "moved", never)
    arranger.move("dangling", "still", never)
    assert tree(project) == {"real.txt": "real", "copy.txt": "real", "moved": "-> real.txt", "still": "-> nothing"}


@pytest.mark.requirement("s:S-12:write", "s:S-10:write")
@pytest.mark.parametrize("path", ["../outside/x", "link/x", "link", "file", "/etc/x", "sub/../../outside/x", "chain/x"])
def test_nothing_is_made_copied_or_moved_outside(project: Path, arranger: Arranger, outside: Path, path: str) -> None:
    put(project, {"a.txt": "a", "sub/x": "x", "link": {"symlink": str(outside)}, "chain": {"symlink": "link"}})
    put(project, {"file": {"symlink": str(outside / "secret.txt")}})
    before = tree(outside), tree(project)
    into = path if path.endswith("x") else f"{path}/"
    found = [
        refused(arranger.copy, "a.txt", into, never).code,
        refused(arranger.move, "a.txt", into, never).code,
        refused(arranger.move, "a.txt", into, never, exactly=True).code,
        refused(arranger.create, path, b"x", never).code,
        refused(arranger.make_folder, path).code,
        refused(arranger.move, path, "b", never).code,
        refused(arranger.copy, path, "b", never).code,
    ]
    assert set(found) == {ErrorCode.ACCESS_DENIED}
    assert (tree(outside), tree(project)) == before


@pytest.mark.requirement("s:S-13:write")
def test_swapping_a_folder_for_a_link_never_lets_a_move_or_copy_out(
    project: Path, arranger: Arranger, outside: Path
) -> None:
    put(project, {"a.txt": "a", "swap": {"dir": True}})
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            with suppress(OSError):
                os.rename(project / "swap", project / "aside")
                os.symlink(outside, project / "swap")
            with suppress(OSError):
                os.unlink(project / "swap")
                os.rename(project / "aside", project / "swap")

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for number in range(60):
            with suppress(Failure):
                arranger.copy("a.txt", f"swap/{number}.txt", never)
            with suppress(Failure):
                arranger.create(f"m{number}.txt", b"m", never)
                arranger.move(f"m{number}.txt", f"swap/m{number}.txt", never)
            with suppress(Failure):
                arranger.copy("swap/secret.txt", "stolen.txt", never)
    finally:
        stop.set()
        thread.join()
    assert tree(outside) == {"secret.txt": "secret"}
    assert not (project / "stolen.txt").exists()


@pytest.mark.requirement("fileoperator:copy-move")
def test_a_move_to_another_file_system_copies_first_and_removes_last(
    project: Path, arranger: Arranger, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(project, {"src/a/b.txt": "b", "src/link": {"symlink": "a"}, "file.txt": "f", "other": {"dir": True}})
    (project / "src/a/b.txt").chmod(0o640)
    os.utime(project / "src/a/b.txt", (1_000_000_000, 1_000_000_000))
    across = os.stat(project / "other").st_ino
    link, rename = os.link, os.rename

    def no_link(source: Any, new: Any, *, dst_dir_fd: int, **more: Any) -> None:
        if os.fstat(dst_dir_fd).st_ino == across and not bytes(source).startswith(b".toolyard"):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        link(source, new, dst_dir_fd=dst_dir_fd, **more)

    def no_rename(source: Any, new: Any, *, dst_dir_fd: int, **more: Any) -> None:
        if os.fstat(dst_dir_fd).st_ino == across and not bytes(source).startswith(b".toolyard"):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        rename(source, new, dst_dir_fd=dst_dir_fd, **more)

    monkeypatch.setattr(os, "link", no_link)
    monkeypatch.setattr(os, "rename", no_rename)
    arranger.move("src", "other/", never)
    arranger.move("file.txt", "other/", never)
    assert tree(project) == {"other/src/a/b.txt": "b", "other/src/link": "-> a", "other/file.txt": "f"}
    moved = (project / "other/src/a/b.txt").stat()
    assert (stat.S_IMODE(moved.st_mode), moved.st_mtime) == (0o640, 1_000_000_000)


@pytest.mark.requirement("fileoperator:folders")
def test_a_folder_is_made_with_its_parents_and_made_twice_is_no_error(project: Path, arranger: Arranger) -> None:
    put(project, {"file": "x", "link": {"symlink": "."}})
    assert arranger.make_folder("a/b/c") == Folder("a/b/c", 3)
    assert arranger.make_folder("link/a/b/c/") == Folder("a/b/c", 0)
    assert (project / "a/b/c").is_dir()
    assert refused(arranger.make_folder, "file").reason is Reason.ALREADY_EXISTS
    assert refused(arranger.make_folder, "file/x").code is ErrorCode.NOT_FOUND
    assert refused(arranger.make_folder, ".git/hooks").code is ErrorCode.ACCESS_DENIED


@pytest.mark.requirement("fileoperator:copy-move", "s:S-16")
def test_only_regular_files_of_a_sane_size_are_copied(project: Path, arranger: Arranger) -> None:
    os.mkfifo(project / "pipe")
    (project / "folder").mkdir()
    with (project / "big").open("wb") as file:
        file.truncate(MAX_COPY_BYTES + 1)
    found = [refused(arranger.copy, name, "new", never) for name in ("pipe", "folder", "big")]
    assert [failure.code for failure in found] == [
        ErrorCode.INVALID_PARAM,
        ErrorCode.IS_DIRECTORY,
        ErrorCode.INVALID_PARAM,
    ]
    assert found[2].reason is Reason.TOO_LARGE


@pytest.mark.requirement("fileoperator:copy-move")
def test_a_name_that_is_no_text_keeps_its_bytes(project: Path, arranger: Arranger) -> None:
    (project / os.fsdecode(b"caf\xe9.txt")).write_text("x")
    (project / "sub").mkdir()
    assert arranger.move("caf\\xe9.txt", "sub", never).path == "sub/caf\\xe9.txt"
    assert os.listdir(os.fsencode(project / "sub")) == [b"caf\xe9.txt"]


@pytest.mark.requirement("fileoperator:copy-move")
def test_a_name_that_is_no_text_keeps_its_bytes_in_a_folder_that_is_made_for_it(
    project: Path, arranger: Arranger
) -> None:
    (project / os.fsdecode(b"caf\xe9.txt")).write_text("x")
    assert arranger.move("caf\\xe9.txt", "new/sub/", never).path == "new/sub/caf\\xe9.txt"
    assert os.listdir(os.fsencode(project / "new/sub")) == [b"caf\xe9.txt"]


@pytest.mark.requirement("fileoperator:copy-move", "fileoperator:write")
@pytest.mark.parametrize("name", [f"new/deep/{'x' * 300}", "new/deep/"])
def test_what_fails_leaves_no_folder_behind(project: Path, arranger: Arranger, name: str) -> None:
    put(project, {"a.txt": "a", "sub/x": "x"})

    def stopped() -> None:
        raise Failure(ErrorCode.TIMEOUT, "too late")

    checkpoint = stopped if name.endswith("/") else never
    refused(arranger.create, f"{name}x", b"", checkpoint)
    refused(arranger.copy, "a.txt", name, checkpoint)
    refused(arranger.move, "a.txt", name, checkpoint)
    refused(arranger.move, "sub", "sub/new/", never)
    refused(arranger.move, "sub", "a.txt/", never)
    refused(arranger.make_folder, f"new/deep/{'x' * 300}")
    assert sorted(path.name for path in project.rglob("*")) == ["a.txt", "sub", "x"]


@pytest.mark.requirement("fileoperator:copy-move")
def test_no_descriptor_is_left_open(project: Path, arranger: Arranger) -> None:
    put(project, {"a.txt": "a", "sub/x": "x"})
    arranger.copy("a.txt", "first.txt", never)  # which leaves a record for the next one
    before = set(os.listdir("/dev/fd"))
    arranger.copy("a.txt", "new/b.txt", never)
    arranger.move("new", "sub", never)
    arranger.make_folder("x/y/z")
    for source in ("missing", "../x", "sub/../.."):
        refused(arranger.move, source, "sub", never)
    assert set(os.listdir("/dev/fd")) <= before


@pytest.mark.requirement("fileoperator:copy-move")
@pytest.mark.parametrize("mode", [0o600, 0o400, 0o666])
def test_a_copy_never_has_a_wider_mode_than_its_source(
    project: Path, arranger: Arranger, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    put(project, {"secret": "s"})
    (project / "secret").chmod(mode)
    modes: list[int] = []
    link = os.link

    def watched(*words: Any, **more: Any) -> None:
        modes.append(stat.S_IMODE(os.stat(words[0], dir_fd=more["src_dir_fd"]).st_mode))
        link(*words, **more)

    monkeypatch.setattr(os, "link", watched)
    arranger.copy("secret", "copy", never)
    assert (modes, stat.S_IMODE((project / "copy").stat().st_mode)) == ([mode], mode)
