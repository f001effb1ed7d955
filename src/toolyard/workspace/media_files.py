"""Media that tools gave as bytes, kept 7 days in ``tool-output/`` under the project root for whoever has the reference.

A file is named after its content, so that the same picture is there once however often it was made; using it again
keeps it for another 7 days. It appears complete or not at all. The folder ignores itself in git, and our own listings
and searches leave it out.
"""

import os
import re
from contextlib import suppress
from datetime import datetime, timedelta
from secrets import token_hex

from toolyard.crashpoint import crashpoint
from toolyard.protocol.content import Blob, Media
from toolyard.protocol.content_reference import is_stored_path
from toolyard.workspace.ignore import FILE_NAME, OUTPUT_FOLDER
from toolyard.workspace.outputs import open_output_folder
from toolyard.workspace.workspace import Workspace

KEPT = timedelta(days=7)
_NAME = re.compile(r"media_[0-9a-f]{32}\.[a-z0-9]+|\.media-[0-9a-f]+")
_MODE = 0o600  # as other results: they may hold anything the tool could read


class MediaFiles:
    def __init__(self, workspace: Workspace) -> None:
        self._root = workspace.root

    def save(self, media: Media | Blob, now: datetime) -> None:
        """Store the bytes at their ``source``. Raises OSError when they cannot be stored."""
        if not is_stored_path(media.source):
            raise ValueError(f"{media.source} is no place for media")
        name = media.source.removeprefix(f"{OUTPUT_FOLDER}/")
        folder = open_output_folder(self._root)
        try:
            _sweep(folder, now)
            _publish(folder, FILE_NAME, b"*\n")
            if not _publish(folder, name, media.data):
                os.utime(name, dir_fd=folder, follow_symlinks=False)
        finally:
            os.close(folder)


def _publish(folder: int, name: str, content: bytes) -> bool:
    """Write a file that is complete from the moment it has its name. False when there is one of that name."""
    if os.access(name, os.F_OK, dir_fd=folder, follow_symlinks=False):
        return False
    draft = f".media-{token_hex(8)}"
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, _MODE, dir_fd=folder)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(file, view) :]
        os.fsync(file)
        crashpoint("media.draft-written")
        with suppress(FileExistsError):
            os.link(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
            return True
        return False
    finally:
        os.close(file)
        os.unlink(draft, dir_fd=folder)


def _sweep(folder: int, now: datetime) -> None:
    """Remove what is too old. What cannot be removed is no reason not to store the next one."""
    oldest = (now - KEPT).timestamp()
    with os.scandir(folder) as entries:
        for entry in entries:
            if _NAME.fullmatch(entry.name):
                with suppress(OSError):
                    if entry.stat(follow_symlinks=False).st_mtime < oldest:
                        os.unlink(entry.name, dir_fd=folder)
