"""The folder ``tool-output/`` under the project root, in which results and media of tools are kept 7 days.

A file appears complete under its name or not at all. The folder ignores itself in git, and our own listings and
searches leave it out. A full result that was too long to show is stored twice under one name: ``.json`` has the
envelope, ``.txt`` the text in pages. No name is ever used twice. Media that tools gave as bytes are named after their
content, so that the same picture is there once however often it was made; using it again keeps it for another 7 days.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from itertools import count
from secrets import token_hex
from typing import Final

from toolyard.crashpoint import crashpoint
from toolyard.protocol.content import Blob, Media, is_stored_path, sniff
from toolyard.protocol.envelope import Failure
from toolyard.protocol.truncation import StoredOutput
from toolyard.workspace.search.ignore import FILE_NAME, OUTPUT_FOLDER
from toolyard.workspace.workspace import Workspace

_NAME = re.compile(r"tool_\d{8}_\d{6}_[A-Za-z0-9_-]*(?:_\d+)?\.(?:json|txt)")
KEPT: Final = timedelta(days=7)
_DRAFT = re.compile(r"\.writing-[0-9a-f]+")
_MODE = 0o600  # a result may hold anything the tool could read
_MAX_LOADED = 64 * 1024 * 1024  # bytes of a file that are held in memory at once
_MEDIA_NAME = re.compile(r"media_[0-9a-f]{32}\.[a-z0-9]+")


class Outputs:
    def __init__(self, workspace: Workspace) -> None:
        self._root = workspace.root

    def save(self, tool: str, envelope: str, text: str, now: datetime) -> StoredOutput:
        """Store a result, its envelope as JSON and its text. Raises OSError when it cannot be stored."""
        with open_output_folder(self._root) as folder:
            remove_old_files(folder, _NAME, now)
            with write_draft(folder, envelope.encode()) as whole, write_draft(folder, text.encode()) as pages:
                crashpoint("output.draft-written")
                stem = _publish_pair(folder, whole, pages, _list_stems(tool, now))
            return StoredOutput(f"{OUTPUT_FOLDER}/{stem}.json", f"{OUTPUT_FOLDER}/{stem}.txt")


def _list_stems(tool: str, now: datetime) -> Iterator[str]:
    stem = f"tool_{now:%Y%m%d_%H%M%S}_{re.sub('[^A-Za-z0-9_-]', '', tool)[:64]}"
    yield stem
    yield from (f"{stem}_{number}" for number in count(2))


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
            remove_old_files(folder, _MEDIA_NAME, now)
            if has_file(folder, name):
                os.utime(name, dir_fd=folder, follow_symlinks=False)
                return
            with write_draft(folder, media.data) as draft:
                crashpoint("media.draft-written")
                with suppress(FileExistsError):  # another call has just stored the same
                    os.link(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
