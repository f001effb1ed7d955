"""The project root, and the only way into it.

Every path is walked one component at a time from an open descriptor of the root, and each step is opened relative to
the descriptor of the step before, never through a link. A link is read and its target walked the same way, so links
inside the root work, and whatever leads outside is ACCESS_DENIED. A folder that is swapped for a link between two
steps changes nothing: the descriptor already held is the folder that was checked (S-10..S-16).
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from toolyard.protocol.arguments import nearest
from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure
from toolyard.workspace.faults import os_failure
from toolyard.workspace.names import readings, to_text

_MAX_LINKS = 40  # as many as Linux follows
_MAX_RACES = 16  # a component that keeps changing its kind while we look is not worth more tries
_NEIGHBOURS = 1000  # names looked at for "did you mean"
_STEP = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


@dataclass(frozen=True, slots=True)
class Opened:
    """An open file or folder; ``path`` is where it really is, relative to the root, with links resolved."""

    fd: int
    path: str
    stat: os.stat_result


class Workspace:
    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.realpath(root))
        self._names = tuple({os.fsencode(self.root), os.fsencode(os.path.abspath(root))})
        self._fd = os.open(self.root, _FOLDER)
        self._owner = os.fstat(self._fd).st_uid

    def close(self) -> None:
        os.close(self._fd)

    @contextmanager
    def folder(self, path: str) -> Iterator[Opened]:
        with self._walk(path) as (fd, name, where):
            with _mapped(path):
                own = os.open(name or b".", _FOLDER | os.O_NOFOLLOW, dir_fd=fd) if _is_folder(fd, name) else None
            if own is None:
                raise Failure(ErrorCode.INVALID_PARAM, f"'{path}' is a file, not a folder.", hint="Read it with Read.")
            try:
                yield Opened(own, where, os.fstat(own))
            finally:
                os.close(own)

    @contextmanager
    def file(self, path: str) -> Iterator[Opened]:
        """A regular file, open for reading. Folders, devices, pipes and sockets are refused before they are opened."""
        with self._walk(path) as (fd, name, where):
            with _mapped(path):
                if _is_folder(fd, name):
                    raise Failure(ErrorCode.IS_DIRECTORY, f"'{path}' is a folder, not a file.", hint="List it with LS.")
                _require_regular(os.stat(name, dir_fd=fd, follow_symlinks=False), path)
                own = os.open(name, _FILE, dir_fd=fd)
            try:
                info = os.fstat(own)
                _require_regular(info, path)
                self._require_own(info, path)
                yield Opened(own, where, info)
            finally:
                os.close(own)

    @contextmanager
    def _walk(self, path: str) -> Iterator[tuple[int, bytes, str]]:
        """The open folder that holds ``path``, the name in it (empty for the root), and the real path as text."""
        walk = _Walk(self._fd, self._names, path)
        try:
            with _mapped(path):
                name = walk.to_the_end()
            yield walk.fd, name, "/".join([*map(to_text, walk.steps), *([to_text(name)] if name else [])]) or "."
        finally:
            walk.close()

    def _require_own(self, info: os.stat_result, path: str) -> None:
        """A second name for somebody else's file may be a way to a secret outside (S-14)."""
        if info.st_nlink > 1 and info.st_uid != self._owner:
            raise Failure(
                ErrorCode.ACCESS_DENIED,
                f"'{path}' is a hard link to a file of another user, which may live outside the project.",
                hint="Copy the file into the project to use it.",
            )


class _Walk:
    """One path on its way down: the folders entered so far, each held open."""

    def __init__(self, root: int, root_names: tuple[bytes, ...], path: str) -> None:
        if "\0" in path:
            raise Failure(ErrorCode.INVALID_PARAM, "The path holds a NUL character.")
        self._root, self._root_names, self._path = root, root_names, path
        self._fds: list[int] = []
        self.steps: list[bytes] = []
        self._links = self._races = 0
        self._pending: list[bytes] = []  # components still to walk, the next one last
        self._push(path.encode())

    @property
    def fd(self) -> int:
        return self._fds[-1] if self._fds else self._root

    def close(self) -> None:
        while self._fds:
            os.close(self._fds.pop())

    def to_the_end(self) -> bytes:
        """Walk all components but the last, whose name is returned; it may be a folder but is no link."""
        while self._pending:
            name = self._pending.pop()
            if name in (b"", b"."):
                continue
            if name == b"..":
                self._up()
                continue
            kind, name = self._look(name)
            if stat.S_ISLNK(kind):
                self._follow(name)
            elif not any(step not in (b"", b".") for step in self._pending):
                return name
            elif stat.S_ISDIR(kind):
                self._enter(name)
            else:
                raise Failure(ErrorCode.NOT_FOUND, f"'{self._path}' does not exist: '{to_text(name)}' is not a folder.")
        return b""

    def _push(self, path: bytes) -> None:
        if path.startswith(b"/"):
            path = self._beneath(path)
            self.close()
            self.steps.clear()
        self._pending.extend(reversed(path.split(b"/")))

    def _beneath(self, path: bytes) -> bytes:
        wanted = [step for step in path.split(b"/") if step not in (b"", b".")]
        for root in self._root_names:
            steps = [step for step in root.split(b"/") if step]
            if wanted[: len(steps)] == steps:
                return b"/".join(wanted[len(steps) :])
        raise self._outside()

    def _up(self) -> None:
        if not self._fds:
            raise self._outside()
        os.close(self._fds.pop())
        self.steps.pop()

    def _look(self, name: bytes) -> tuple[int, bytes]:
        for candidate in readings(name):
            try:
                return os.stat(candidate, dir_fd=self.fd, follow_symlinks=False).st_mode, candidate
            except FileNotFoundError:
                continue
        raise self._missing(name)

    def _follow(self, name: bytes) -> None:
        self._links += 1
        if self._links > _MAX_LINKS:
            raise Failure(ErrorCode.NOT_FOUND, f"'{self._path}' does not exist: its links form a loop.")
        self._push(os.readlink(name, dir_fd=self.fd))

    def _enter(self, name: bytes) -> None:
        try:
            fd = os.open(name, _STEP, dir_fd=self.fd)
        except NotADirectoryError:  # swapped for a link or a file since we looked: look again
            self._races += 1
            if self._races > _MAX_RACES:
                raise
            self._pending.append(name)
            return
        self._fds.append(fd)
        self.steps.append(name)

    def _outside(self) -> Failure:
        return Failure(
            ErrorCode.ACCESS_DENIED,
            f"'{self._path}' leads outside the project.",
            hint="Use a path inside the project, relative to its root.",
        )

    def _missing(self, name: bytes) -> Failure:
        guess = nearest(to_text(name), self._neighbours())
        where = "/".join(map(to_text, self.steps))
        close = f" Did you mean '{where + '/' if where else ''}{guess}'?" if guess else ""
        return Failure(
            ErrorCode.NOT_FOUND,
            f"'{self._path}' does not exist.{close}",
            hint="Check the path, or list its folder with LS.",
        )

    def _neighbours(self) -> list[str]:
        try:
            own = os.open(b".", _FOLDER, dir_fd=self.fd)
        except PermissionError:
            return []
        try:
            return [to_text(os.fsencode(name)) for name in os.listdir(own)[:_NEIGHBOURS]]
        finally:
            os.close(own)


def _is_folder(fd: int, name: bytes) -> bool:
    return not name or stat.S_ISDIR(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode)


def _require_regular(info: os.stat_result, path: str) -> None:
    if not stat.S_ISREG(info.st_mode):
        raise Failure(
            ErrorCode.INVALID_PARAM, f"'{path}' is not a regular file: devices, pipes and sockets are not read."
        )


@contextmanager
def _mapped(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise os_failure(error, path) from error
