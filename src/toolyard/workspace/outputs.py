"""Whole results that were too long to show, kept 7 days in ``tool-output/`` under the project root.

A result appears complete under its name or not at all; no name is ever used twice. The folder ignores itself in git,
and our own listings and searches leave it out.
"""

import os
import re
from contextlib import suppress
from datetime import datetime, timedelta

from toolyard.workspace.ignore import FILE_NAME, OUTPUT_FOLDER
from toolyard.workspace.workspace import Workspace

KEPT = timedelta(days=7)
_NAME = re.compile(r"tool_\d{8}_\d{6}_[A-Za-z0-9_-]*(?:_\d+)?\.json|\.writing-\d+-\d+")
_MODE = 0o600  # a result may hold anything the tool could read


class Outputs:
    def __init__(self, workspace: Workspace) -> None:
        self._root = workspace.root
        self._count = 0

    def save(self, tool: str, whole: str, now: datetime) -> str:
        """Store a result; returns its path relative to the root. Raises OSError when it cannot be stored."""
        folder = self._open_folder()
        try:
            self._sweep(folder, now)
            return f"{OUTPUT_FOLDER}/{self._write(folder, _stem(tool, now), whole.encode())}"
        finally:
            os.close(folder)

    def _open_folder(self) -> int:
        root = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with suppress(FileExistsError):
                os.mkdir(OUTPUT_FOLDER, 0o700, dir_fd=root)
            folder = os.open(OUTPUT_FOLDER, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=root)
        finally:
            os.close(root)
        with suppress(FileExistsError):
            os.close(_create(folder, FILE_NAME, b"*\n"))
        return folder

    def _write(self, folder: int, stem: str, whole: bytes) -> str:
        self._count += 1
        draft = f".writing-{os.getpid()}-{self._count}"
        file = _create(folder, draft, whole)
        try:
            os.fsync(file)
            number = 1
            while True:
                name = f"{stem}.json" if number == 1 else f"{stem}_{number}.json"
                try:
                    os.link(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
                except FileExistsError:
                    number += 1
                    continue
                return name
        finally:
            os.close(file)
            os.unlink(draft, dir_fd=folder)

    def _sweep(self, folder: int, now: datetime) -> None:
        oldest = (now - KEPT).timestamp()
        with os.scandir(folder) as entries:
            old = [
                e.name for e in entries if _NAME.fullmatch(e.name) and e.stat(follow_symlinks=False).st_mtime < oldest
            ]
            for name in old:
                os.unlink(name, dir_fd=folder)


def _stem(tool: str, now: datetime) -> str:
    return f"tool_{now:%Y%m%d_%H%M%S}_{re.sub('[^A-Za-z0-9_-]', '', tool)[:64]}"


def _create(folder: int, name: str, content: bytes) -> int:
    file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, _MODE, dir_fd=folder)
    view = memoryview(content)
    while view:
        view = view[os.write(file, view) :]
    return file
