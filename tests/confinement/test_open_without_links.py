"""A path is opened through no link at all, by the kernel's own call and, where that is refused, step by step."""

import os
import sys
from collections.abc import Callable
from errno import ELOOP
from pathlib import Path

import pytest

from toolyard.confinement import linux
from toolyard.confinement.profile import Profile
from toolyard.confinement.start import start_process

pytestmark = [
    pytest.mark.requirement("confinement:links"),
    pytest.mark.skipif(not linux.IS_LINUX, reason="only Linux has descriptors that are not read"),
]


@pytest.fixture(params=["openat2", "step by step"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "openat2" and not linux._has_openat2():
        pytest.skip("this kernel or container has no openat2")
    monkeypatch.setattr(linux, "_has_openat2", lambda: request.param == "openat2")
    return str(request.param)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "real/inner").mkdir(parents=True)
    (tmp_path / "real/file").touch()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "dangling").symlink_to("missing")
    return tmp_path


@pytest.mark.parametrize("name", ["real", "real/inner", "real/file", "real//inner/", "real/./file"])
def test_a_path_without_links_is_opened(way: str, place: Path, name: str) -> None:
    for path, at in ((str(place / name), None), (name, place)):
        folder = os.open(place, os.O_RDONLY)
        opened = linux.open_without_links(path, folder) if at else linux.open_without_links(path)
        assert os.path.samestat(os.fstat(opened), os.stat(place / name))
        os.close(opened)
        os.close(folder)


@pytest.mark.parametrize(
    "find",
    [
        lambda place: place / "link",
        lambda place: place / "link/inner",
        lambda place: place / "dangling",
        lambda _: "/proc/self/cwd",
        lambda place: f"/proc/{os.getpid()}/root{place}/real",
    ],
)
def test_a_link_is_refused_wherever_it_stands(way: str, place: Path, find: "Callable[[Path], str | Path]") -> None:
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match=os.strerror(ELOOP)):
        linux.open_without_links(str(find(place)))
    assert len(os.listdir("/proc/self/fd")) == before, "nothing stays open"


@pytest.mark.parametrize("name", ["missing", "real/file/inner"])
def test_what_does_not_exist_is_said_to_be_missing(way: str, place: Path, name: str) -> None:
    with pytest.raises((FileNotFoundError, NotADirectoryError)):
        linux.open_without_links(str(place / name))


def test_a_program_does_not_start_with_a_link_in_its_profile(way: str, place: Path) -> None:
    linked = (str(place / "link/inner"),)
    for profile in (Profile(read=linked), Profile(write=linked), Profile(covered=linked)):
        with pytest.raises(OSError, match="has become a link"):
            start_process(profile, [sys.executable, "-c", "pass"])


def test_what_does_not_exist_is_left_out_of_a_profile(way: str, place: Path) -> None:
    missing = (str(place / "missing"), str(place / "real/file/inner"))
    assert start_process(Profile(read=missing, write=missing), ["/bin/sh", "-c", "exit 7"]).process.wait(60) == 7
