"""The project root, and the only way into it: files and folders to read, places to write, and consistent reading.

Every path is walked one component at a time from an open descriptor of the root (``path_walk``), so links inside the
root work, and whatever leads outside is ACCESS_DENIED. A folder that is swapped for a link between two steps changes
nothing: the descriptor already held is the folder that was checked (S-10..S-16). A file may be written while it is
read: what is returned is one version of it (R96).
"""

import os
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, TypeVar
from urllib.parse import unquote

from toolyard.message import Message
from toolyard.protocol.envelope import ErrorCode, Failure, Reason
from toolyard.workspace.encoding import BINARY_PROBE, detect_encoding, looks_binary
from toolyard.workspace.home_folder import is_private, private_home_failure
from toolyard.workspace.path_walk import (
    FILE,
    FOLDER,
    PathWalk,
    locate_failures,
    map_os_errors,
    require_regular,
    split_steps,
    to_text,
)

MAX_TEXT = 10 * 1024 * 1024  # bytes of a file that is read as one text
_MAX_PATH = 4096  # characters of a path that Linux follows at once
_MORE = 64 * 1024  # bytes asked for at the end of a file, where there should be none
T = TypeVar("T")
RequireOwn = Callable[[os.stat_result, str], None]
"""Raises Failure for the file at a path when it may be somebody else's."""


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
                        "'{path}' has {st_size} bytes; files are changed up to {limit}.",
                        path=self.path,
                        st_size=info.st_size,
                        limit=max_bytes,
                    ),
                    hint=Message("Change it with a program made for large files."),
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
                raise Failure(Reason.CANCELLED, Message("The Yard was closed before the call could begin."))
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
                    Message("'{path}' is not a folder.", path=path),
                    hint=Message("Read a file with Read; LS lists folders."),
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
                    Message("'{path}' is a folder, not a file.", path=path),
                    hint=Message("List it with LS."),
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

    def read_text(self, path: str, fallback_encodings: Sequence[str] = ()) -> str:
        """Return the text of a file, in whatever encoding it is. Raises Failure, also for a binary or huge one."""
        with self.open_file(path) as file:
            size = file.stat.st_size
            if size > MAX_TEXT:
                raise Failure(
                    Reason.TOO_LARGE,
                    Message(
                        "'{path}' has {size} bytes; at most {limit} are read.", path=path, size=size, limit=MAX_TEXT
                    ),
                )
            raw = read_consistently(file, lambda now: read_exactly(now.fd, 0, now.stat.st_size))
        if looks_binary(raw[:BINARY_PROBE]):
            raise Failure(ErrorCode.BINARY_FILE, Message("'{path}' is a binary file.", path=path))
        encoding = detect_encoding(raw, whole=True, fallbacks=fallback_encodings)
        return encoding.to_utf8(raw[len(encoding.bom) :]).decode()

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
                        Message("'{path}' is a folder, not a file.", path=path),
                        hint=Message("Name a file in it."),
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
                    "'{path}' is a hard link to a file of another user, which may live outside the project.", path=path
                ),
                hint=Message("Copy the file into the project to use it."),
            )


def read_exactly(fd: int, offset: int, count: int) -> bytes:
    pieces = []
    while count > 0:
        piece = os.pread(fd, count, offset)
        if not piece:
            raise Failure(
                ErrorCode.CONFLICT,
                Message("The file became shorter while it was read."),
                hint=Message("Read it again."),
            )
        pieces.append(piece)
        offset += len(piece)
        count -= len(piece)
    return b"".join(pieces)


def read_consistently(file: OpenHandle, read: Callable[[OpenHandle], T]) -> T:
    """Return the value of ``read``, never half of one version and half of another.

    A file that was touched meanwhile is read again as it is then. One that is touched even then is still being written:
    it must read alike twice, as one does that only grows.
    """
    value = read(file)
    now = file._replace(stat=os.fstat(file.fd))
    if _version(now) == _version(file):
        return value
    value = read(now)
    if _version(now) != _version(file._replace(stat=os.fstat(file.fd))) and read(now) != value:
        raise Failure(
            ErrorCode.CONFLICT,
            Message("'{path}' changed while it was read.", path=file.path),
            hint=Message("Read it again."),
        )
    return value


def _version(file: OpenHandle) -> tuple[int, int, int]:
    return file.stat.st_size, file.stat.st_mtime_ns, file.stat.st_ctime_ns


def _read_whole(fd: int, size: int) -> bytes:
    """All that is in an open file, which had ``size`` bytes a moment ago."""
    pieces = []
    while piece := os.read(fd, size + 1):
        pieces.append(piece)
        size = max(size - len(piece), _MORE)
    return b"".join(pieces)
