"""The project root, and the only way into it.

Every path is walked one component at a time from an open descriptor of the root (``path_walk``), so links inside the
root work, and whatever leads outside is ACCESS_DENIED. A folder that is swapped for a link between two steps changes
nothing: the descriptor already held is the folder that was checked (S-10..S-16).
"""

import os
import stat
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from toolyard.message import Message
from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure, Reason
from toolyard.workspace.names import to_text
from toolyard.workspace.open_flags import FILE, FOLDER, require_regular
from toolyard.workspace.os_failures import locate_failures, map_os_errors
from toolyard.workspace.path_walk import PathWalk, split_steps
from toolyard.workspace.private_home import is_private, private_home_failure
from toolyard.workspace.write_target import WriteTarget

_MAX_PATH = 4096  # characters of a path that Linux follows at once


class OpenHandle(NamedTuple):
    """An open file or folder; ``path`` is where it really is, relative to the root, with links resolved."""

    fd: int
    path: str
    stat: os.stat_result


class Entry(NamedTuple):
    """A name in an open folder; ``path`` is where it really is, relative to the root. The root itself is ``.``."""

    folder: int
    name: bytes
    path: str
    stat: os.stat_result


class Workspace:
    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.realpath(root))
        self._names = tuple({os.fsencode(self.root), os.fsencode(os.path.abspath(root))})
        self._fd: int | None = os.open(self.root, FOLDER)
        self._owner = os.fstat(self._fd).st_uid
        self._guard = threading.Lock()

    def close(self) -> None:
        with self._guard:
            if self._fd is not None:
                os.close(self._fd)
            self._fd = None

    def _open_root(self, path: str) -> int:
        """A descriptor of its own for each walk: a number that outlives ``close`` could be another folder by then."""
        with self._guard, map_os_errors(path):
            if self._fd is None:
                raise Failure(
                    Reason.CANCELLED,
                    Message("call.closed_before_start", "The Yard was closed before the call could begin."),
                )
            return os.dup(self._fd)

    def open_descriptor(self, path: str) -> int:
        """A descriptor of a folder, for the caller to close."""
        with self.open_folder(path) as folder:
            return os.dup(folder.fd)

    @contextmanager
    def open_folder(self, path: str) -> Iterator[OpenHandle]:
        with self._walk_to(path) as (fd, name, mode, where):
            if not stat.S_ISDIR(mode):
                raise Failure(
                    ErrorCode.INVALID_PARAM,
                    Message("file.not_folder", "'{path}' is not a folder.", path=path),
                    hint=Message("hint.read_or_ls", "Read a file with Read; LS lists folders."),
                )
            with map_os_errors(path):
                own = os.open(name, FOLDER | os.O_NOFOLLOW, dir_fd=fd)
            try:
                if is_private(own):
                    raise private_home_failure(path)
                with map_os_errors(path):
                    yield OpenHandle(own, where, os.fstat(own))
            finally:
                os.close(own)

    @contextmanager
    def open_file(self, path: str) -> Iterator[OpenHandle]:
        """A regular file, open for reading. Folders, devices, pipes and sockets are refused before they are opened."""
        with self._walk_to(path) as (fd, name, mode, where):
            if stat.S_ISDIR(mode):
                raise Failure(
                    ErrorCode.IS_DIRECTORY,
                    Message("file.folder_not_file", "'{path}' is a folder, not a file.", path=path),
                    hint=Message("hint.list_with_ls", "List it with LS."),
                )
            require_regular(mode, path)
            with map_os_errors(path):
                own = os.open(name, FILE, dir_fd=fd)
            try:
                info = os.fstat(own)
                require_regular(info.st_mode, path)
                self.require_owner(info, path)
                with map_os_errors(path):
                    yield OpenHandle(own, where, info)
            finally:
                os.close(own)

    @contextmanager
    def open_target(self, path: str) -> Iterator[WriteTarget]:
        """A file to be written: one that is there, or one that can be made, with the folders on the way to it."""
        walk = PathWalk(self._open_root(path), self._names, path)
        target: WriteTarget | None = None
        try:
            with locate_failures(lambda: target.path if target else walk.resolved_path), map_os_errors(path):
                name, mode = walk.walk_to_place()
                if mode is None and b".." in walk.remaining:
                    raise walk.missing_failure(name)
                if mode is not None and stat.S_ISDIR(mode):
                    raise Failure(
                        ErrorCode.IS_DIRECTORY,
                        Message("file.folder_not_file", "'{path}' is a folder, not a file.", path=path),
                        hint=Message("hint.name_file_in_it", "Name a file in it."),
                    )
                if mode is not None:
                    require_regular(mode, path)
                way = [name, *walk.remaining]
                place = "/".join(map(to_text, [*walk.steps, *way]))
                folder = os.open(b".", FOLDER, dir_fd=walk.fd)  # one that can be locked and synced
                walk.close()
                target = WriteTarget(folder, way, place, self.require_owner)
                yield target
        finally:
            if target is not None:
                target.close()
            walk.close()

    def list_destinations(self, path: str) -> Iterator[str]:
        """List where a path leads, relative to the root with links resolved, existing or not; absolute when outside.

        For judging only: it may be another place a moment later. What cannot be walked leads nowhere.
        """
        if path.startswith("file://"):
            path = unquote(path.removeprefix("file://"))
        try:
            walk = PathWalk(self._open_root(path), self._names, path.encode().decode())
        except (Failure, UnicodeError):
            walk = None
        if walk is not None:
            with suppress(Failure), closing(walk), map_os_errors(path):
                name, _ = walk.walk_to_place()
                yield "/".join(map(to_text, [*walk.steps, name, *walk.remaining]))
        if len(path) <= _MAX_PATH:
            with suppress(OSError, ValueError):
                place = os.path.realpath(self.root / path)
                yield os.path.relpath(place, self.root) if Path(place).is_relative_to(self.root) else place

    def is_link(self, path: str) -> bool:
        """Return whether ``path`` itself is a link, wherever it leads."""
        with self.open_entry(path, follow=False) as entry:
            return stat.S_ISLNK(entry.stat.st_mode)

    @contextmanager
    def open_entry(self, path: str, *, follow: bool) -> Iterator["Entry"]:
        """Open the entry at ``path``, to look at, move or remove it; unless ``follow``, a link stands for itself."""
        walk = PathWalk(self._open_root(path), self._names, path)
        where = ""
        try:
            with locate_failures(lambda: where or walk.resolved_path), map_os_errors(path):
                name, mode = walk.walk_to_place(follow=follow)
                if mode is None:
                    raise walk.missing_failure(name)
                if name == b"." and walk.steps:  # the way led up again, into a folder that it had entered
                    name = walk.leave()
                where = "/".join(map(to_text, split_steps(b"/".join([*walk.steps, name])))) or "."
                folder = os.open(b".", FOLDER, dir_fd=walk.fd)
                try:
                    yield Entry(folder, name, where, os.stat(name, dir_fd=folder, follow_symlinks=False))
                finally:
                    os.close(folder)
        finally:
            walk.close()

    @contextmanager
    def _walk_to(self, path: str) -> Iterator[tuple[int, bytes, int, str]]:
        """The open folder that holds ``path``, the name in it, what that is, and the real path as text."""
        walk = PathWalk(self._open_root(path), self._names, path)
        try:
            with locate_failures(lambda: walk.resolved_path):
                with map_os_errors(path):
                    name, mode = walk.walk_to_existing()
                yield walk.fd, name, mode, "/".join(map(to_text, split_steps(b"/".join([*walk.steps, name])))) or "."
        finally:
            walk.close()

    def require_owner(self, info: os.stat_result, path: str) -> None:
        """A second name for somebody else's file may be a way to a secret outside (S-14)."""
        if info.st_nlink > 1 and info.st_uid != self._owner:
            raise Failure(
                ErrorCode.ACCESS_DENIED,
                Message(
                    "file.foreign_hard_link",
                    "'{path}' is a hard link to a file of another user, which may live outside the project.",
                    path=path,
                ),
                hint=Message("hint.copy_into_project", "Copy the file into the project to use it."),
            )
