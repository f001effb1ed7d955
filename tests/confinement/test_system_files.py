"""The files of the system that every program may read: for root, what an ordinary user could read of /etc."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolyard.confinement import program_files
from toolyard.confinement.program_files import list_readable_trees, list_system_trees

pytestmark = pytest.mark.requirement("confinement:root-only")


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder in place of /etc, for a server that is root."""
    folder = tmp_path / "etc"
    for name in ("public/inner", "mixed/inner", "closed", "unlisted"):
        (folder / name).mkdir(parents=True)
    for name in (
        "hosts",
        "shadow",
        "public/inner/file",
        "mixed/inner/file",
        "mixed/key",
        "closed/file",
        "unlisted/file",
    ):
        (folder / name).write_text("x")
        (folder / name).chmod(0o644)
    for name in ("shadow", "mixed/key"):
        (folder / name).chmod(0o600)
    (folder / "closed").chmod(0o700)
    (folder / "unlisted").chmod(0o711)
    (folder / "mixed/link").symlink_to("key")
    (folder / "public/away").symlink_to(tmp_path)
    monkeypatch.setattr(program_files, "_SETTINGS", str(folder))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    list_system_trees.cache_clear()
    yield folder
    list_system_trees.cache_clear()


def list_settings(folder: Path) -> set[str]:
    return {os.path.relpath(path, folder) for path in list_readable_trees() if path.startswith(str(folder))}


def test_what_only_root_may_read_is_left_out_at_any_depth(settings: Path) -> None:
    assert list_settings(settings) == {"hosts", "public", "mixed/inner", "unlisted/file"}


def test_another_user_may_read_what_the_modes_say(settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert list_settings(settings) == {"."}


def test_what_is_added_later_counts_at_the_next_start(settings: Path) -> None:
    assert "public" in list_settings(settings)
    (settings / "public/inner/key").touch(mode=0o600)
    assert list_settings(settings) >= {"public/inner/file"}
    assert "public" not in list_settings(settings)
    (settings / "public").chmod(0o700)
    assert not [path for path in list_settings(settings) if path.startswith("public")]


def test_a_folder_without_end_is_not_read_without_end(settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_files, "_MAX_ENTRIES", 0)
    assert list_settings(settings) == set()


def test_there_are_no_links_in_the_paths() -> None:
    trees = list_readable_trees()
    assert trees
    assert [path for path in trees if os.path.realpath(path) != path] == []
