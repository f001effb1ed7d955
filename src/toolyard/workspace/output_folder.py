"""The folder ``tool-output/`` under the project root, in which results and media of tools are kept 7 days.

A file appears complete under its name or not at all. The folder ignores itself in git, and our own listings and
searches leave it out.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from secrets import token_hex
from typing import Final

from toolyard.crashpoint import crashpoint
from toolyard.workspace.ignore import FILE_NAME, OUTPUT_FOLDER

KEPT: Final = timedelta(days=7)
_DRAFT = re.compile(r"\.writing-[0-9a-f]+")
_MODE = 0o600  # a result may hold anything the tool could read


@contextmanager
def open_output_folder(root: str | os.PathLike[str]) -> Iterator[int]:
    """Open the folder below ``root``, made if it is missing; never through a link. Gives its descriptor."""
    project = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(FileExistsError):
            os.mkdir(OUTPUT_FOLDER, 0o700, dir_fd=project)
        folder = os.open(OUTPUT_FOLDER, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=project)
    finally:
        os.close(project)
    try:
        if not has_file(folder, FILE_NAME):
            with suppress(FileExistsError), write_draft(folder, b"*\n") as draft:
                crashpoint("output.ignore-written")
                os.link(draft, FILE_NAME, src_dir_fd=folder, dst_dir_fd=folder)
        yield folder
    finally:
        os.close(folder)


def has_file(folder: int, name: str) -> bool:
    return os.access(name, os.F_OK, dir_fd=folder, follow_symlinks=False)


@contextmanager
def write_draft(folder: int, content: bytes) -> Iterator[str]:
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


def remove_old_files(folder: int, names: re.Pattern[str], now: datetime) -> None:
    """Remove the files of these names, and drafts, that are too old. One that cannot be removed stays."""
    oldest = (now - KEPT).timestamp()
    with os.scandir(folder) as entries:
        for entry in entries:
            if names.fullmatch(entry.name) or _DRAFT.fullmatch(entry.name):
                with suppress(OSError):
                    if entry.stat(follow_symlinks=False).st_mtime < oldest:
                        os.unlink(entry.name, dir_fd=folder)
