"""The folders that a program may write, before it starts: access to a path can be granted only when it is there."""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from toolyard.message import Message
from toolyard.plugins.plugin_access import is_below


def make_granted_folders(project: Path, paths: Iterable[str]) -> None:
    """Create those of ``paths`` that are missing folders of the project."""
    for path in paths:
        if _is_missing_folder(project, path):
            with suppress(OSError):  # the program will say what it misses
                os.makedirs(_resolve(project, path), exist_ok=True)


def list_missing_paths(project: Path, paths: Iterable[str]) -> tuple[str, ...]:
    """Return those of ``paths`` that do not exist and are not created either: nothing can be granted there."""
    missing = (path for path in paths if not os.path.exists(_resolve(project, path)))
    return tuple(path for path in missing if not _is_missing_folder(project, path))


def describe_missing_paths(paths: Iterable[str]) -> Message:
    return Message(
        "access.paths_missing",
        "cannot write {paths}: there is no such file or folder, and only folders of the project are created",
        paths=", ".join(paths),
    )


def _is_missing_folder(project: Path, path: str) -> bool:
    """Return whether ``path`` is to be a folder in the project: a name with an ending, such as ``.db``, is a file."""
    place = _resolve(project, path)
    looks_like_folder = path.endswith("/") or not Path(path).suffix
    return looks_like_folder and is_below(place, os.path.realpath(project)) and not os.path.exists(place)


def _resolve(project: Path, path: str) -> str:
    return os.path.realpath(os.path.join(project, path))
