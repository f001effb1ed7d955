"""Media that tools gave as bytes, kept in the project for a while."""

import hashlib
import os
import stat
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from toolyard.protocol.content import Blob, Media, make_stored_path
from toolyard.workspace.outputs import KEPT, MediaFiles
from toolyard.workspace.workspace import Workspace

pytestmark = pytest.mark.requirement("media:stored")

NOW = datetime.now(UTC)


def medium(data: bytes, mime: str) -> Media:
    return Media(mime, data, source=make_stored_path(data, mime))


PNG = medium(b"\x89PNG\r\n\x1a\n", "image/png")


@pytest.fixture
def files(project: Path) -> Iterator[MediaFiles]:
    workspace = Workspace(project)
    yield MediaFiles(workspace)
    workspace.close()


def test_bytes_are_stored_under_a_name_of_their_own_for_the_owner_only(files: MediaFiles, project: Path) -> None:
    files.save(PNG, NOW)
    assert PNG.source == f"tool-output/media_{hashlib.sha256(PNG.data).hexdigest()[:32]}.png"
    assert (project / PNG.source).read_bytes() == PNG.data
    assert stat.S_IMODE((project / PNG.source).stat().st_mode) == 0o600
    assert (project / "tool-output/.gitignore").read_text() == "*\n"
    blob = Blob("?", data=b"MZ", source=make_stored_path(b"MZ"))
    files.save(blob, NOW)
    assert blob.source.endswith(".bin")
    assert (project / blob.source).read_bytes() == b"MZ"


@pytest.mark.parametrize("source", ["", "a.png", "tool-output/a.png", "../media_1.png", "tool-output/../a"])
def test_nothing_is_stored_anywhere_else(files: MediaFiles, source: str) -> None:
    with pytest.raises(ValueError, match="no place for media"):
        files.save(Media("image/png", b"x", source=source), NOW)


def test_the_same_bytes_are_stored_once_and_kept_as_long_as_they_are_used(files: MediaFiles, project: Path) -> None:
    files.save(PNG, NOW)
    old = (NOW - KEPT + timedelta(hours=1)).timestamp()
    os.utime(project / PNG.source, (old, old))
    files.save(PNG, NOW)
    assert (project / PNG.source).stat().st_mtime > old
    assert len(list((project / "tool-output").glob("media_*"))) == 1


def test_what_is_too_old_goes_with_the_next_one_and_nothing_else(files: MediaFiles, project: Path) -> None:
    files.save(PNG, NOW)
    others = [project / "tool-output" / name for name in ("mine.png", "tool_20260101_000000_X.json")]
    for file in others:
        file.write_text("kept")
    old = (NOW - KEPT - timedelta(hours=1)).timestamp()
    for file in (project / PNG.source, *others):
        os.utime(file, (old, old))
    files.save(medium(b"GIF89a", "image/gif"), NOW)
    assert not (project / PNG.source).exists()
    assert all(file.exists() for file in others)


def test_a_folder_that_is_a_link_is_not_followed(files: MediaFiles, project: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (project / "tool-output").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="tool-output"):
        files.save(PNG, NOW)
    assert not list((tmp_path / "elsewhere").iterdir())


def test_no_draft_is_left_behind(files: MediaFiles, project: Path) -> None:
    files.save(PNG, NOW)
    files.save(PNG, NOW)
    assert sorted(file.name[:6] for file in (project / "tool-output").iterdir()) == [".gitig", "media_"]
