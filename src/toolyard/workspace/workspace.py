"""The project root, and the only way into it.

Every path is walked one component at a time from an open descriptor of the root, and each step is opened relative to
the descriptor of the step before, never through a link. A link is read and its target walked the same way, so links
inside the root work, and whatever leads outside is ACCESS_DENIED. A folder that is swapped for a link between two
steps changes nothing: the descriptor already held is the folder that was checked (S-10..S-16).
"""

import errno
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from toolyard.protocol.arguments import nearest
from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure, Reason
from toolyard.workspace.faults import INSPECT, os_failure
from toolyard.workspace.names import same, to_text
from toolyard.workspace.private import is_private

_MAX_LINKS = 40  # as many as Linux follows
_MAX_RACES = 16  # a component that keeps changing its kind while we look is not worth more tries
_NEIGHBOURS = 1000  # names looked at for "did you mean"
_MORE = 64 * 1024  # bytes asked for at the end of a file, where there should be none
_STEP = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


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
        self._fd: int | None = os.open(self.root, _FOLDER)
        self._owner = os.fstat(self._fd).st_uid
        self._guard = threading.Lock()

    def close(self) -> None:
        with self._guard:
            if self._fd is not None:
                os.close(self._fd)
            self._fd = None

    def _open_root(self, path: str) -> int:
        """A descriptor of its own for each walk: a number that outlives ``close`` could be another folder by then."""
        with self._guard, _mapped(path):
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
            with _mapped(path):
                own = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=fd)
            try:
                if is_private(own):
                    raise _private(path)
                with _mapped(path):
                    yield Opened(own, where, os.fstat(own))
            finally:
                os.close(own)

    @contextmanager
    def file(self, path: str) -> Iterator[Opened]:
        """A regular file, open for reading. Folders, devices, pipes and sockets are refused before they are opened."""
        with self._walk(path) as (fd, name, mode, where):
            if stat.S_ISDIR(mode):
                raise Failure(ErrorCode.IS_DIRECTORY, f"'{path}' is a folder, not a file.", hint="List it with LS.")
            _require_regular(mode, path)
            with _mapped(path):
                own = os.open(name, _FILE, dir_fd=fd)
            try:
                info = os.fstat(own)
                _require_regular(info.st_mode, path)
                self.require_own(info, path)
                with _mapped(path):
                    yield Opened(own, where, info)
            finally:
                os.close(own)

    @contextmanager
    def target(self, path: str) -> Iterator["Target"]:
        """A file to be written: one that is there, or one that can be made, with the folders on the way to it."""
        walk = _Walk(self._open_root(path), self._names, path)
        target: Target | None = None
        try:
            with _mapped(path):
                name, mode = walk.to_the_place()
                if mode is None and b".." in walk.ahead:
                    raise walk.missing(name)
                if mode is not None and stat.S_ISDIR(mode):
                    raise Failure(
                        ErrorCode.IS_DIRECTORY, f"'{path}' is a folder, not a file.", hint="Name a file in it."
                    )
                if mode is not None:
                    _require_regular(mode, path)
                way = [name, *walk.ahead]
                place = "/".join(map(to_text, [*walk.steps, *way]))
                folder = os.open(b".", _FOLDER, dir_fd=walk.fd)  # one that can be locked and synced
                walk.close()
                target = Target(self, folder, way, place)
                yield target
        finally:
            if target is not None:
                target.close()
            walk.close()

    def is_link(self, path: str) -> bool:
        """Whether ``path`` itself is a link, wherever it leads."""
        with self.entry(path, follow=False) as entry:
            return stat.S_ISLNK(entry.stat.st_mode)

    @contextmanager
    def entry(self, path: str, *, follow: bool) -> Iterator["Entry"]:
        """What stands at ``path``, to be looked at, moved or removed; unless ``follow``, a link stands for itself."""
        walk = _Walk(self._open_root(path), self._names, path)
        try:
            with _mapped(path):
                name, mode = walk.to_the_place(follow=follow)
                if mode is None:
                    raise walk.missing(name)
                if name == b"." and walk.steps:  # the way led up again, into a folder that it had entered
                    name = walk.leave()
                folder = os.open(b".", _FOLDER, dir_fd=walk.fd)
            try:
                with _mapped(path):
                    info = os.stat(name, dir_fd=folder, follow_symlinks=False)
                    where = "/".join(map(to_text, _steps(b"/".join([*walk.steps, name])))) or "."
                    yield Entry(folder, name, where, info)
            finally:
                os.close(folder)
        finally:
            walk.close()

    @contextmanager
    def _walk(self, path: str) -> Iterator[tuple[int, bytes, int, str]]:
        """The open folder that holds ``path``, the name in it, what that is, and the real path as text."""
        walk = _Walk(self._open_root(path), self._names, path)
        try:
            with _mapped(path):
                name, mode = walk.to_the_end()
            yield walk.fd, name, mode, "/".join(map(to_text, _steps(b"/".join([*walk.steps, name])))) or "."
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


class Target:
    """A file to be written, known by the open folder that holds it. ``path`` is its real path, relative to the root."""

    def __init__(self, workspace: Workspace, folder: int, way: list[bytes], path: str) -> None:
        self._workspace, self._way = workspace, way
        self.folder, self.path = folder, path  # the folder is the deepest one that exists
        self._opened = [folder]
        self._made: list[tuple[int, bytes]] = []

    @property
    def exists(self) -> bool:
        """Whether anything stands there now."""
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
            own = os.open(self._way[0], _FILE, dir_fd=self.folder)
        except FileNotFoundError:
            return None
        try:
            info = os.fstat(own)
            _require_regular(info.st_mode, self.path)
            self._workspace.require_own(info, self.path)
            if info.st_size > max_bytes:
                raise Failure(
                    Reason.TOO_LARGE,
                    f"'{self.path}' has {info.st_size} bytes; files are changed up to {max_bytes}.",
                    hint="Change it with a program made for large files.",
                )
            return _whole(own, info.st_size)
        finally:
            os.close(own)

    def descend(self) -> None:
        """Enter the folders on the way that somebody made since we looked."""
        with suppress(FileNotFoundError):
            while len(self._way) > 1:
                self._go_down(self._way[0])
                del self._way[0]

    def make(self) -> tuple[int, bytes]:
        """The open folder and the name in it, once the folders on the way are made."""
        while len(self._way) > 1:
            name = self._way[0]
            with suppress(FileExistsError):
                os.mkdir(name, 0o777, dir_fd=self.folder)
                self._made.append((self.folder, name))
            self._go_down(name)
            del self._way[0]
        return self.folder, self._way[0]

    @property
    def made(self) -> int:
        """How many folders were made on the way."""
        return len(self._made)

    def unmake(self) -> None:
        """Take back the folders that were made, when nothing came to stand in them."""
        for folder, name in reversed(self._made):
            with suppress(OSError):
                os.rmdir(name, dir_fd=folder)
        self._made.clear()

    def _go_down(self, name: bytes) -> None:
        self.folder = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=self.folder)
        self._opened.append(self.folder)

    def close(self) -> None:
        while self._opened:
            os.close(self._opened.pop())


class _Walk:
    """One path on its way down: the folders entered so far, each held open."""

    def __init__(self, root: int, root_names: tuple[bytes, ...], path: str) -> None:
        self._root, self._root_names, self._path = root, root_names, path
        self._fds: list[int] = []
        self.steps: list[bytes] = []
        self._links = self._races = 0
        self._pending: list[bytes] = []  # components still to walk, the next one last
        try:
            self._begin()
        except Failure:
            self.close()
            raise

    def _begin(self) -> None:
        if "\0" in self._path:
            raise Failure(ErrorCode.INVALID_PARAM, "The path holds a NUL character.", hint="Send the path without it.")
        self._push(self._path.encode())

    @property
    def fd(self) -> int:
        return self._fds[-1] if self._fds else self._root

    def close(self) -> None:
        """Harmless when done twice."""
        self._back_to_root()
        if self._root >= 0:
            os.close(self._root)
            self._root = -1

    def _back_to_root(self) -> None:
        while self._fds:
            os.close(self._fds.pop())
        self.steps.clear()

    def to_the_end(self) -> tuple[bytes, int]:
        """Walk all components but the last, whose name and mode are returned; it may be a folder but is no link."""
        name, mode = self.to_the_place()
        if mode is None:
            raise self.missing(name)
        return name, mode

    def to_the_place(self, *, follow: bool = True) -> tuple[bytes, int | None]:
        """The same for a way that may not exist yet: it ends at the first name that is missing, with no mode.

        Unless ``follow``, a link at its very end is not walked.
        """
        while self._pending:
            name = self._pending.pop()
            if name == b"..":
                self._up()
                continue
            name, mode = self._look(name)
            if mode is None:
                return name, None
            if stat.S_ISLNK(mode) and (follow or self._pending):
                self._follow(name)
            elif not self._pending:
                return name, mode
            elif stat.S_ISDIR(mode):
                self._enter(name)
            else:
                raise self._absent(f": '{to_text(name)}' is not a folder.")
        return b".", stat.S_IFDIR

    def _push(self, path: bytes) -> None:
        if path.startswith(b"/"):
            path = self._beneath(path)
            self._back_to_root()
        self._pending.extend(reversed(_steps(path)))

    def _beneath(self, path: bytes) -> bytes:
        wanted = _steps(path)
        for root in self._root_names:
            steps = _steps(root)
            if wanted[: len(steps)] == steps:
                return b"/".join(wanted[len(steps) :])
        raise self._outside()

    def _up(self) -> None:
        if not self._fds:
            raise self._outside()
        self.leave()

    def leave(self) -> bytes:
        """Go back to the folder above; returns the name of the one left."""
        os.close(self._fds.pop())
        return self.steps.pop()

    @property
    def ahead(self) -> list[bytes]:
        """The components not walked yet."""
        return self._pending[::-1]

    def _look(self, name: bytes) -> tuple[bytes, int | None]:
        """The name on disk, which may be written with other bytes, and what it is; no mode when nothing is there."""
        try:
            return name, self._mode(name)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENAMETOOLONG):
                raise
            found = same(name, self._names())
            if found is None and error.errno == errno.ENOENT:
                return name, None
            if found is None:
                raise
        return found, self._mode(found)

    def _mode(self, name: bytes) -> int:
        return os.stat(name, dir_fd=self.fd, follow_symlinks=False).st_mode

    def _follow(self, name: bytes) -> None:
        self._links += 1
        if self._links > _MAX_LINKS:
            raise self._absent(": its links form a loop.")
        try:
            target = os.readlink(name, dir_fd=self.fd)
        except OSError as error:
            self._look_again(name, error, errno.EINVAL)
        else:
            self._push(target)

    def _enter(self, name: bytes) -> None:
        try:
            fd = os.open(name, _STEP, dir_fd=self.fd)
        except OSError as error:
            self._look_again(name, error, errno.ENOTDIR, errno.ELOOP)
        else:
            self._fds.append(fd)
            self.steps.append(name)
            if is_private(fd):
                raise _private(self._path)

    def _look_again(self, name: bytes, error: OSError, *swapped: int) -> None:
        """Go back to ``name`` when ``error`` says that it was swapped for something else since we looked."""
        self._races += 1
        if error.errno not in swapped or self._races > _MAX_RACES:
            raise error
        self._pending.append(name)

    def _outside(self) -> Failure:
        return Failure(
            ErrorCode.ACCESS_DENIED,
            f"'{self._path}' leads outside the project.",
            hint="Use a path inside the project, relative to its root.",
        )

    def missing(self, name: bytes) -> Failure:
        guess = nearest(to_text(name), map(to_text, self._names()[:_NEIGHBOURS]))
        where = "/".join(map(to_text, self.steps))
        return self._absent(f". Did you mean '{where + '/' if where else ''}{guess}'?" if guess else ".")

    def _absent(self, why: str) -> Failure:
        """A way that ends here, unless it was on its way out: then it does not matter what is missing."""
        depth = len(self.steps) + 1
        for step in reversed(self._pending):
            depth += -1 if step == b".." else 1
            if depth < 0:
                return self._outside()
        return Failure(ErrorCode.NOT_FOUND, f"'{self._path}' does not exist{why}", hint=INSPECT)

    def _names(self) -> list[bytes]:
        """All names in the folder reached so far, as far as we may see them."""
        try:
            own = os.open(b".", _FOLDER, dir_fd=self.fd)
        except PermissionError:
            return []
        try:
            return [os.fsencode(name) for name in os.listdir(own)]
        finally:
            os.close(own)


def _private(path: str) -> Failure:
    return Failure(
        ErrorCode.ACCESS_DENIED,
        f"'{path}' is in Toolyard's own home, which no tool enters.",
        hint="Use the command line to look at settings and state.",
    )


def _whole(fd: int, size: int) -> bytes:
    """All that is in an open file, which had ``size`` bytes a moment ago."""
    pieces = []
    while piece := os.read(fd, size + 1):
        pieces.append(piece)
        size = max(size - len(piece), _MORE)
    return b"".join(pieces)


def _steps(path: bytes) -> list[bytes]:
    return [step for step in path.split(b"/") if step not in (b"", b".")]


def _require_regular(mode: int, path: str) -> None:
    if not stat.S_ISREG(mode):
        raise Failure(
            ErrorCode.INVALID_PARAM,
            f"'{path}' is not a regular file: devices, pipes and sockets are not read.",
            hint="Choose a regular file.",
        )


@contextmanager
def _mapped(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise os_failure(error, path) from error
