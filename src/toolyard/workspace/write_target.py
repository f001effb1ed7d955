"""A file to be written, held by the open folder that it is in or will be in."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from toolyard.message import Message
from toolyard.protocol.failure import Failure, Reason
from toolyard.workspace.names import to_text
from toolyard.workspace.open_flags import FILE, FOLDER, require_regular

_MORE = 64 * 1024  # bytes asked for at the end of a file, where there should be none

RequireOwn = Callable[[os.stat_result, str], None]
"""Raises Failure for the file at a path when it may be somebody else's."""


class WriteTarget:
    """A file to be written, known by the open folder that holds it. ``path`` is its real path, relative to the root."""

    def __init__(self, folder: int, way: list[bytes], path: str, require_own: RequireOwn) -> None:
        self._way, self._require_own = way, require_own
        self.folder, self.path = folder, path  # the folder is the deepest one that exists
        self._opened = [folder]
        self._made: list[tuple[int, bytes]] = []

    @property
    def exists(self) -> bool:
        """Return whether anything stands there now."""
        try:
            os.stat(self._way[0], dir_fd=self.folder, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return len(self._way) == 1

    def read(self, max_bytes: int) -> bytes | None:
        """The whole file as it is now, or None when there is none."""
        if len(self._way) > 1:
            return None
        try:
            own = os.open(self._way[0], FILE, dir_fd=self.folder)
        except FileNotFoundError:
            return None
        try:
            info = os.fstat(own)
            require_regular(info.st_mode, self.path)
            self._require_own(info, self.path)
            if info.st_size > max_bytes:
                raise Failure(
                    Reason.TOO_LARGE,
                    Message(
                        "edit.file_too_large",
                        "'{path}' has {st_size} bytes; files are changed up to {limit}.",
                        path=self.path,
                        st_size=info.st_size,
                        limit=max_bytes,
                    ),
                    hint=Message("hint.change_large", "Change it with a program made for large files."),
                )
            return _read_whole(own, info.st_size)
        finally:
            os.close(own)

    def enter_existing_folders(self) -> None:
        """Enter the folders on the way that somebody made since we looked."""
        with suppress(FileNotFoundError):
            while len(self._way) > 1:
                self._enter_folder(self._way[0])
                del self._way[0]

    def make_folders(self) -> tuple[int, bytes]:
        """The open folder and the name in it, once the folders on the way are made."""
        while len(self._way) > 1:
            name = self._way[0]
            with suppress(FileExistsError):
                os.mkdir(name, 0o777, dir_fd=self.folder)
                self._made.append((self.folder, name))
            self._enter_folder(name)
            del self._way[0]
        return self.folder, self._way[0]

    def append_name(self, name: bytes) -> None:
        """Mean something of this name in a folder that is to be made here, and no longer the file itself."""
        self._way.append(name)
        self.path = f"{self.path}/{to_text(name)}"

    @property
    def made_count(self) -> int:
        """The number of folders that were made on the way."""
        return len(self._made)

    @contextmanager
    def removing_on_failure(self) -> Iterator[None]:
        """Remove the folders that were made when the block fails, unless something came to stand in them."""
        try:
            yield
        except BaseException:
            for folder, name in reversed(self._made):
                with suppress(OSError):
                    os.rmdir(name, dir_fd=folder)
            self._made.clear()
            raise

    def _enter_folder(self, name: bytes) -> None:
        self.folder = os.open(name, FOLDER | os.O_NOFOLLOW, dir_fd=self.folder)
        self._opened.append(self.folder)

    def close(self) -> None:
        while self._opened:
            os.close(self._opened.pop())


def _read_whole(fd: int, size: int) -> bytes:
    """All that is in an open file, which had ``size`` bytes a moment ago."""
    pieces = []
    while piece := os.read(fd, size + 1):
        pieces.append(piece)
        size = max(size - len(piece), _MORE)
    return b"".join(pieces)
