"""Whole results that were too long to show, kept 7 days in ``tool-output/`` under the project root.

Each is stored twice under one name: ``.json`` has the envelope, ``.txt`` the text in pages. A file appears complete
under its name or not at all; no name is ever used twice. The folder ignores itself in git, and our own listings and
searches leave it out.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from itertools import count
from secrets import token_hex

from toolyard.crashpoint import crashpoint
from toolyard.protocol.truncation import StoredOutput
from toolyard.workspace.ignore import FILE_NAME, OUTPUT_FOLDER
from toolyard.workspace.workspace import Workspace

KEPT = timedelta(days=7)
_NAME = re.compile(r"tool_\d{8}_\d{6}_[A-Za-z0-9_-]*(?:_\d+)?\.(?:json|txt)|\.writing-[0-9a-f]+")
_MODE = 0o600  # a result may hold anything the tool could read


class Outputs:
    def __init__(self, workspace: Workspace) -> None:
        self._root = workspace.root

    def save(self, tool: str, envelope: str, text: str, now: datetime) -> StoredOutput:
        """Store a result, its envelope as JSON and its text. Raises OSError when it cannot be stored."""
        folder = open_output_folder(self._root)
        try:
            _sweep(folder, now)
            if not os.access(FILE_NAME, os.F_OK, dir_fd=folder, follow_symlinks=False):
                with suppress(FileExistsError), _draft(folder, b"*\n") as ignore:
                    os.link(ignore, FILE_NAME, src_dir_fd=folder, dst_dir_fd=folder)
            with _draft(folder, envelope.encode()) as whole, _draft(folder, text.encode()) as pages:
                crashpoint("output.draft-written")
                stem = _publish_pair(folder, whole, pages, _stems(tool, now))
            return StoredOutput(f"{OUTPUT_FOLDER}/{stem}.json", f"{OUTPUT_FOLDER}/{stem}.txt")
        finally:
            os.close(folder)


def open_output_folder(root: str | os.PathLike[str]) -> int:
    """Open the folder of stored outputs below ``root``, made if it is missing; never through a link."""
    project = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(FileExistsError):
            os.mkdir(OUTPUT_FOLDER, 0o700, dir_fd=project)
        return os.open(OUTPUT_FOLDER, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=project)
    finally:
        os.close(project)


def _stems(tool: str, now: datetime) -> Iterator[str]:
    stem = f"tool_{now:%Y%m%d_%H%M%S}_{re.sub('[^A-Za-z0-9_-]', '', tool)[:64]}"
    yield stem
    yield from (f"{stem}_{number}" for number in count(2))


@contextmanager
def _draft(folder: int, content: bytes) -> Iterator[str]:
    """Write ``content`` under a name that nobody looks for; the name goes, what was linked to it stays."""
    draft = f".writing-{token_hex(8)}"
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, _MODE, dir_fd=folder)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(file, view) :]
        os.fsync(file)
        yield draft
    finally:
        os.close(file)
        os.unlink(draft, dir_fd=folder)


def _publish_pair(folder: int, whole: str, pages: str, stems: Iterator[str]) -> str:
    """Link both drafts under the first stem that is free for both."""
    for stem in stems:
        with suppress(FileExistsError):
            os.link(pages, f"{stem}.txt", src_dir_fd=folder, dst_dir_fd=folder)
            try:
                os.link(whole, f"{stem}.json", src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                os.unlink(f"{stem}.txt", dir_fd=folder)
                raise
            return stem
    raise FileExistsError  # the stems are endless


def _sweep(folder: int, now: datetime) -> None:
    """Remove what is too old. What cannot be removed is no reason not to store the next one."""
    oldest = (now - KEPT).timestamp()
    with os.scandir(folder) as entries:
        for entry in entries:
            if _NAME.fullmatch(entry.name):
                with suppress(OSError):
                    if entry.stat(follow_symlinks=False).st_mtime < oldest:
                        os.unlink(entry.name, dir_fd=folder)
