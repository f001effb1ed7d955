"""The folders that a program may write, before it starts: access to a path can be granted only when it is there."""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from toolyard.confinement.program_files import resolve_links
from toolyard.message import Message
from toolyard.plugins.plugin_access import is_below, make_plain

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def make_granted_folders(project: Path, paths: Iterable[str]) -> None:
    """Create those of ``paths`` that are missing folders of the project; through a link nothing is created."""
    for path in paths:
        if _is_missing_folder(project, path):
            with suppress(OSError):  # the program will say what it misses
                _make_folders(project, os.path.relpath(make_plain(project, path), project))


def list_missing_paths(project: Path, paths: Iterable[str]) -> tuple[str, ...]:
    """Return those of ``paths`` that do not exist and are not created either: nothing can be granted there."""
    missing = (path for path in paths if not os.path.exists(os.path.join(project, path)))
    return tuple(path for path in missing if not _is_missing_folder(project, path))


def describe_missing_paths(paths: Iterable[str]) -> Message:
    return Message(
        "access.paths_missing",
        "cannot write {paths}: there is no such file or folder, and only folders of the project are created",
        paths=", ".join(paths),
    )


def _is_missing_folder(project: Path, path: str) -> bool:
    """Return whether ``path`` is to be a folder in the project: a name with an ending, such as ``.db``, is a file."""
    place = make_plain(project, path)
    looks_like_folder = path.endswith("/") or not Path(path).suffix
    return (
        looks_like_folder
        and is_below(place, str(project))
        and not os.path.exists(place)
        and is_below(resolve_links(place), str(project))
    )


def _make_folders(project: Path, path: str) -> None:
    folder = os.open(project, _FOLDER)
    try:
        for name in path.split("/"):
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=folder)
            inner = os.open(name, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
    finally:
        os.close(folder)
