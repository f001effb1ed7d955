"""Files that plugins publish are opened below one folder, whatever the path says."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolyard.workspace.path_walk import open_published

pytestmark = pytest.mark.requirement("http:published:confined")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    """``image/`` with a picture, beside a secret."""
    place = tmp_path / "image"
    (place / "sub").mkdir(parents=True)
    (place / "sub/cat 猫.png").write_bytes(b"cat")
    (place / "plain.png").write_bytes(b"plain")
    (place / ".hidden").mkdir()
    (place / ".hidden/a.png").write_bytes(b"hidden")
    (place / ".env").write_text("secret")
    (tmp_path / "secret.png").write_bytes(b"secret")
    (place / "out.png").symlink_to("../secret.png")
    (place / "absolute.png").symlink_to(tmp_path / "secret.png")
    (place / "up").symlink_to("..")
    (place / "loop.png").symlink_to("loop.png")
    (place / "inner.png").symlink_to("sub/cat 猫.png")
    os.mkfifo(place / "pipe.png")
    fd = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    yield fd
    os.close(fd)


@pytest.mark.parametrize(
    ("path", "content"), [("plain.png", b"plain"), ("sub/cat 猫.png", b"cat"), ("inner.png", b"cat")]
)
def test_a_file_of_the_folder_is_opened_for_reading(folder: int, path: str, content: bytes) -> None:
    file = open_published(folder, path)
    assert file
    try:
        assert (os.pread(file.fd, 100, 0), file.size, file.name) == (content, len(content), path.rpartition("/")[2])
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.write(file.fd, b"x")
    finally:
        os.close(file.fd)


@pytest.mark.parametrize(
    "path",
    [
        "", "/", ".", "..", "../secret.png", "sub/../../secret.png", "sub/../plain.png", "./plain.png", "/plain.png",
        "plain.png/", "plain.png/x", "sub", "sub/", "sub//cat 猫.png", ".env", ".hidden/a.png", "out.png",
        "absolute.png", "up/secret.png", "loop.png", "pipe.png", "missing.png", "plain.png\0.png", "\0", "%2e%2e/a",
        "..\\secret.png", "a" * 5000, "a/" * 3000 + "b", "\udcff.png",
    ],
)  # fmt: skip
def test_nothing_else_is_opened(folder: int, path: str) -> None:
    before = len(os.listdir("/proc/self/fd"))
    assert open_published(folder, path) is None
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_second_name_of_somebody_elses_file_is_not_opened(folder: int, tmp_path: Path) -> None:
    if os.geteuid():
        pytest.skip("only root can give a file to somebody else")
    os.link(tmp_path / "secret.png", tmp_path / "image/linked.png")
    found = open_published(folder, "linked.png")
    assert found
    os.close(found.fd)
    os.chown(tmp_path / "secret.png", 12345, 12345)
    assert open_published(folder, "linked.png") is None
