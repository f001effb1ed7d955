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
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure, Reason
from toolyard.workspace.faults import locate_failures, mapped
from toolyard.workspace.names import to_text
from toolyard.workspace.opening import FILE, FOLDER, require_regular
from toolyard.workspace.path_walk import PathWalk, steps_of
from toolyard.workspace.private import is_private, not_entered
from toolyard.workspace.target import Target

_MAX_PATH = 4096  # characters of a path that Linux follows at once


@dataclass(frozen=True, slots=True)
class Opened:
    """An open file or folder; ``path`` is where it really is, relative to the root, with links resolved."""

    fd: int
    path: str
    stat: os.stat_result


@dataclass(frozen=True, slots=True)
class Entry:
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
        with self._guard, mapped(path):
            if self._fd is None:
                raise Failure(Reason.CANCELLED, "The Yard was closed before the call could begin.")
            return os.dup(self._fd)

    def open_folder(self, path: str) -> int:
        """A descriptor of a folder, for the caller to close."""
        with self.folder(path) as folder:
            return os.dup(folder.fd)

    @contextmanager
    def folder(self, path: str) -> Iterator[Opened]:
        with self._walk(path) as (fd, name, mode, where):
            if not stat.S_ISDIR(mode):
                raise Failure(
                    ErrorCode.INVALID_PARAM,
                    f"'{path}' is not a folder.",
                    hint="Read a file with Read; LS lists folders.",
                )
            with mapped(path):
                own = os.open(name, FOLDER | os.O_NOFOLLOW, dir_fd=fd)
            try:
                if is_private(own):
                    raise not_entered(path)
                with mapped(path):
                    yield Opened(own, where, os.fstat(own))
            finally:
                os.close(own)

    @contextmanager
    def file(self, path: str) -> Iterator[Opened]:
        """A regular file, open for reading. Folders, devices, pipes and sockets are refused before they are opened."""
        with self._walk(path) as (fd, name, mode, where):
            if stat.S_ISDIR(mode):
                raise Failure(ErrorCode.IS_DIRECTORY, f"'{path}' is a folder, not a file.", hint="List it with LS.")
            require_regular(mode, path)
            with mapped(path):
                own = os.open(name, FILE, dir_fd=fd)
            try:
                info = os.fstat(own)
                require_regular(info.st_mode, path)
                self.require_own(info, path)
                with mapped(path):
                    yield Opened(own, where, info)
            finally:
                os.close(own)

    @contextmanager
    def target(self, path: str) -> Iterator[Target]:
        """A file to be written: one that is there, or one that can be made, with the folders on the way to it."""
        walk = PathWalk(self._open_root(path), self._names, path)
        target: Target | None = None
        try:
            with locate_failures(lambda: target.path if target else walk.place), mapped(path):
                name, mode = walk.to_the_place()
                if mode is None and b".." in walk.ahead:
                    raise walk.missing(name)
                if mode is not None and stat.S_ISDIR(mode):
                    raise Failure(
                        ErrorCode.IS_DIRECTORY, f"'{path}' is a folder, not a file.", hint="Name a file in it."
                    )
                if mode is not None:
                    require_regular(mode, path)
                way = [name, *walk.ahead]
                place = "/".join(map(to_text, [*walk.steps, *way]))
                folder = os.open(b".", FOLDER, dir_fd=walk.fd)  # one that can be locked and synced
                walk.close()
                target = Target(folder, way, place, self.require_own)
                yield target
        finally:
            if target is not None:
                target.close()
            walk.close()

    def leads_to(self, path: str) -> Iterator[str]:
        """Where a path leads, relative to the root, links resolved and whether it exists or not; absolute when outside.

        For judging only: it may be another place a moment later. What cannot be walked leads nowhere.
        """
        if path.startswith("file://"):
            path = unquote(path.removeprefix("file://"))
        try:
            walk = PathWalk(self._open_root(path), self._names, path.encode().decode())
        except (Failure, UnicodeError):
            walk = None
        if walk is not None:
            with suppress(Failure), closing(walk), mapped(path):
                name, _ = walk.to_the_place()
                yield "/".join(map(to_text, [*walk.steps, name, *walk.ahead]))
        if len(path) <= _MAX_PATH:
            with suppress(OSError, ValueError):
                place = os.path.realpath(self.root / path)
                yield os.path.relpath(place, self.root) if Path(place).is_relative_to(self.root) else place

    def is_link(self, path: str) -> bool:
        """Whether ``path`` itself is a link, wherever it leads."""
        with self.entry(path, follow=False) as entry:
            return stat.S_ISLNK(entry.stat.st_mode)

    @contextmanager
    def entry(self, path: str, *, follow: bool) -> Iterator["Entry"]:
        """What stands at ``path``, to be looked at, moved or removed; unless ``follow``, a link stands for itself."""
        walk = PathWalk(self._open_root(path), self._names, path)
        where = ""
        try:
            with locate_failures(lambda: where or walk.place), mapped(path):
                name, mode = walk.to_the_place(follow=follow)
                if mode is None:
                    raise walk.missing(name)
                if name == b"." and walk.steps:  # the way led up again, into a folder that it had entered
                    name = walk.leave()
                where = "/".join(map(to_text, steps_of(b"/".join([*walk.steps, name])))) or "."
                folder = os.open(b".", FOLDER, dir_fd=walk.fd)
                try:
                    yield Entry(folder, name, where, os.stat(name, dir_fd=folder, follow_symlinks=False))
                finally:
                    os.close(folder)
        finally:
            walk.close()

    @contextmanager
    def _walk(self, path: str) -> Iterator[tuple[int, bytes, int, str]]:
        """The open folder that holds ``path``, the name in it, what that is, and the real path as text."""
        walk = PathWalk(self._open_root(path), self._names, path)
        try:
            with locate_failures(lambda: walk.place):
                with mapped(path):
                    name, mode = walk.to_the_end()
                yield walk.fd, name, mode, "/".join(map(to_text, steps_of(b"/".join([*walk.steps, name])))) or "."
        finally:
            walk.close()

    def require_own(self, info: os.stat_result, path: str) -> None:
        """A second name for somebody else's file may be a way to a secret outside (S-14)."""
        if info.st_nlink > 1 and info.st_uid != self._owner:
            raise Failure(
                ErrorCode.ACCESS_DENIED,
                f"'{path}' is a hard link to a file of another user, which may live outside the project.",
                hint="Copy the file into the project to use it.",
            )
