"""Landlock in a thread of its own, with every version of its interface that this kernel knows."""

import os
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from toolyard.confinement import landlock, linux
from toolyard.confinement.thread import forbid_new_privileges

NEWEST = landlock.interface_version()
pytestmark = [
    pytest.mark.requirement("confinement:landlock"),
    pytest.mark.skipif(not NEWEST, reason="this kernel has no Landlock"),
]


def run_confined(trees: list[tuple[str, int]], work: Callable[[], None]) -> list[BaseException]:
    """Run ``work`` in a thread that may reach ``trees`` only; return what it raises."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            forbid_new_privileges()
            with ExitStack() as stack:
                opened = [(linux.open_without_links(path), access) for path, access in trees]
                for number, _ in opened:
                    stack.callback(os.close, number)
                landlock.restrict_thread(opened)
            work()
        except BaseException as error:  # noqa: BLE001 it is looked at
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return errors


@pytest.fixture(params=range(1, 8))
def version(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    if request.param > NEWEST:
        pytest.skip(f"this kernel knows version {NEWEST}")
    monkeypatch.setattr(landlock, "interface_version", lambda: request.param)
    return int(request.param)


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path, Path]:
    """Folders to read, to write and to keep out of, each with a file."""
    for name in ("readable", "writable", "closed"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("content")
    return tmp_path / "readable", tmp_path / "writable", tmp_path / "closed"


def test_every_version_confines_files(version: int, folders: tuple[Path, Path, Path]) -> None:
    readable, writable, closed = folders

    def work() -> None:
        assert (readable / "file").read_text() == "content"
        (writable / "new").write_text("x")
        (writable / "new").rename(writable / "renamed")
        (writable / "file").unlink()
        for forbidden in (
            (closed / "file").read_text,
            lambda: (closed / "file").write_text("x"),
            lambda: os.listdir(closed),
            lambda: (readable / "file").write_text("x"),
            (readable / "file").unlink,
            (readable / "new").touch,
        ):
            with pytest.raises(PermissionError):
                forbidden()
        for move in (os.link, os.rename):
            with pytest.raises(OSError, match=r"Permission denied|cross-device"):
                move(closed / "file", writable / "moved")

    assert run_confined([(str(readable), landlock.READ), (str(writable), landlock.WRITE)], work) == []
    assert (closed / "file").read_text() == "content"


def test_a_version_that_knows_truncation_guards_it(version: int, folders: tuple[Path, Path, Path]) -> None:
    readable = folders[0]

    def work() -> None:
        os.truncate(readable / "file", 0)

    errors = run_confined([(str(readable), landlock.READ)], work)
    assert [type(error) for error in errors] == ([PermissionError] if version >= landlock.VERSION_TRUNCATE else [])


def test_a_file_can_be_granted_alone(version: int, folders: tuple[Path, Path, Path]) -> None:
    closed = folders[2]
    (closed / "other").write_text("other")

    def work() -> None:
        assert (closed / "file").read_text() == "content"
        (closed / "file").write_text("written")
        with pytest.raises(PermissionError):
            (closed / "other").read_text()

    assert run_confined([(str(closed / "file"), landlock.WRITE)], work) == []


def test_the_thread_that_asked_is_not_confined(folders: tuple[Path, Path, Path]) -> None:
    assert run_confined([], lambda: None) == []
    assert (folders[2] / "file").read_text() == "content"


def test_a_kernel_without_landlock_has_version_0(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError("there is no such call")

    landlock.interface_version.cache_clear()
    monkeypatch.setattr("toolyard.confinement.linux.syscall", refuse)
    assert landlock.interface_version() == 0
    landlock.interface_version.cache_clear()
