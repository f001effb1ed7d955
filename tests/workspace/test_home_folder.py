"""The home on disk is its owner's alone."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

import toolyard
from toolyard.workspace.home_folder import make_private_folder, restrict_home

pytestmark = pytest.mark.requirement("home:private")


def open_to_others(home: Path) -> list[str]:
    """What in a home has a mode that lets others in, but for what the trash keeps as it was."""
    found = [home, *home.rglob("*")]
    return [str(path) for path in found if path.name != "item" and path.lstat().st_mode & 0o077]


@pytest.fixture(autouse=True)
def usual_mask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.parametrize("existed", [True, False])
def test_a_home_and_what_is_made_in_it_are_closed_to_others(project: Path, tmp_path: Path, existed: bool) -> None:
    home = tmp_path / "some/home"
    if existed:
        home.mkdir(parents=True)
        (home / "trash").mkdir()
        home.chmod(0o755)
    with toolyard.open(project=project, home=home) as yard:
        for name, arguments in (
            ("Write", {"path": "new.txt", "content": "x\n"}),
            ("Edit", {"path": "new.txt", "old_string": "x", "new_string": "y"}),
            ("FileOperator", {"command": "EditFile", "filePath": "new.txt", "content": "z"}),
            ("FileOperator", {"command": "DeleteFile", "filePath": "new.txt"}),
        ):
            assert yard.call(name, arguments).error is None
        assert {"trash", "transactions", "undo", "state.db"} <= {path.name for path in home.iterdir()}
        assert open_to_others(home) == []


def test_folders_on_the_way_are_closed_too(tmp_path: Path) -> None:
    make_private_folder(tmp_path / "a/b/c")
    make_private_folder(tmp_path / "a/b/c")
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("a", "a/b", "a/b/c")] == [0o700] * 3
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        make_private_folder(tmp_path / "file")


def test_a_folder_for_everybody_is_not_closed_but_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("WARNING", "toolyard")
    tmp_path.chmod(0o1777)
    restrict_home(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o1777
    assert "open to every user" in caplog.text
    restrict_home(tmp_path / "missing")
