"""Whole results that were too long to show, kept 7 days in ``tool-output/`` under the project root.

A result appears complete under its name or not at all; no name is ever used twice. The folder ignores itself in git,
and our own listings and searches leave it out.
"""

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import count
from secrets import token_hex

from toolyard.crashpoint import crashpoint
from toolyard.workspace.ignore import FILE_NAME, OUTPUT_FOLDER
from toolyard.workspace.workspace import Workspace

KEPT = timedelta(days=7)
_NAME = re.compile(r"tool_\d{8}_\d{6}_[A-Za-z0-9_-]*(?:_\d+)?\.json|\.writing-[0-9a-f]+")
_MODE = 0o600  # a result may hold anything the tool could read


class Outputs:
    def __init__(self, workspace: Workspace) -> None:
        self._root = workspace.root

    def save(self, tool: str, whole: str, now: datetime) -> str:
        """Store a result; returns its path relative to the root. Raises OSError when it cannot be stored."""
        folder = self._open_folder()
        try:
            _sweep(folder, now)
            if not os.access(FILE_NAME, os.F_OK, dir_fd=folder, follow_symlinks=False):
                with suppress(FileExistsError):
                    _publish(folder, [FILE_NAME], b"*\n")
            return f"{OUTPUT_FOLDER}/{_publish(folder, _names(tool, now), whole.encode())}"
        finally:
            os.close(folder)

    def _open_folder(self) -> int:
        root = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with suppress(FileExistsError):
                os.mkdir(OUTPUT_FOLDER, 0o700, dir_fd=root)
            return os.open(OUTPUT_FOLDER, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=root)
        finally:
            os.close(root)


def _names(tool: str, now: datetime) -> Iterable[str]:
    stem = f"tool_{now:%Y%m%d_%H%M%S}_{re.sub('[^A-Za-z0-9_-]', '', tool)[:64]}"
    yield f"{stem}.json"
    yield from (f"{stem}_{number}.json" for number in count(2))


def _publish(folder: int, names: Iterable[str], content: bytes) -> str:
    """Write a file under the first of ``names`` that is free. It is complete from the moment it has its name."""
    draft = f".writing-{token_hex(8)}"
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, _MODE, dir_fd=folder)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(file, view) :]
        os.fsync(file)
        crashpoint("output.draft-written")
        return _link(folder, draft, names)
    finally:
        os.close(file)
        os.unlink(draft, dir_fd=folder)


def _link(folder: int, draft: str, names: Iterable[str]) -> str:
    for name in names:
        with suppress(FileExistsError):
            os.link(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
            return name
    raise FileExistsError


def _sweep(folder: int, now: datetime) -> None:
    """Remove what is too old. What cannot be removed is no reason not to store the next one."""
    oldest = (now - KEPT).timestamp()
    with os.scandir(folder) as entries:
        for entry in entries:
            if _NAME.fullmatch(entry.name):
                with suppress(OSError):
                    if entry.stat(follow_symlinks=False).st_mtime < oldest:
                        os.unlink(entry.name, dir_fd=folder)
