"""Media that tools gave as bytes, kept in the output folder for whoever has the reference.

A file is named after its content, so that the same picture is there once however often it was made; using it again
keeps it for another 7 days.
"""

import os
import re
from contextlib import suppress
from datetime import datetime

from toolyard.crashpoint import crashpoint
from toolyard.protocol.content import Blob, Media, sniff
from toolyard.protocol.content_reference import is_stored_path
from toolyard.protocol.failure import Failure
from toolyard.workspace.ignore import OUTPUT_FOLDER
from toolyard.workspace.output_folder import has_file, open_output_folder, remove_old_files, write_draft
from toolyard.workspace.workspace import Workspace

_MAX_LOADED = 64 * 1024 * 1024  # bytes of a file that are held in memory at once
_NAME = re.compile(r"media_[0-9a-f]{32}\.[a-z0-9]+")


class MediaFiles:
    def __init__(self, workspace: Workspace) -> None:
        self._workspace, self._root = workspace, workspace.root

    def load(self, source: str) -> Media | None:
        """Return stored media by their ``source``; None if they are gone, too large or no media. Blocks."""
        if not is_stored_path(source):
            return None
        try:
            with self._workspace.open_file(source) as file:
                data = os.pread(file.fd, _MAX_LOADED, 0) if file.stat.st_size <= _MAX_LOADED else b""
        except Failure:
            return None
        mime = sniff(data)
        return Media(mime, data, source.rpartition("/")[2], source=source) if mime else None

    def save(self, media: Media | Blob, now: datetime) -> None:
        """Store the bytes at their ``source``. Raises OSError when they cannot be stored."""
        if not is_stored_path(media.source):
            raise ValueError(f"{media.source} is no place for media")
        name = media.source.removeprefix(f"{OUTPUT_FOLDER}/")
        with open_output_folder(self._root) as folder:
            remove_old_files(folder, _NAME, now)
            if has_file(folder, name):
                os.utime(name, dir_fd=folder, follow_symlinks=False)
                return
            with write_draft(folder, media.data) as draft:
                crashpoint("media.draft-written")
                with suppress(FileExistsError):  # another call has just stored the same
                    os.link(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
