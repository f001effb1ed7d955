"""One path on its way down from the root, one component at a time.

Each step is opened relative to the descriptor of the step before, never through a link. A link is read and its target
walked the same way; whatever leads outside is ACCESS_DENIED. What is swapped for something else between a look and a
step is looked at again, a bounded number of times (S-10..S-16). Errors of the operating system on the way are Failures.

A name is any bytes that a file system allows. As text, valid UTF-8 is itself; bytes that are not are written ``\\xe9``:
readable, valid in every JSON, and something a model can type back. Two names are the same when they read the same in
Unicode's composed form (NFC), since nobody sees whether an ``é`` is one character or two; a name that is there exactly
as written always wins.
"""

import errno
import os
import stat
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from toolyard.message import Message
from toolyard.protocol.arguments import find_nearest
from toolyard.protocol.envelope import ErrorCode, Failure
from toolyard.workspace.home_folder import is_private, private_home_failure

_MAX_LINKS = 40  # as many as Linux follows
_MAX_RACES = 16  # a component that keeps changing its kind while we look is not worth more tries
_NEIGHBOURS = 1000  # names looked at for "did you mean"
_STEP = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
INSPECT_HINT = Message("Check the path, or list its folder with LS.")
# The flags that files and folders are opened with: never through a link, and no device, pipe or socket.
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class PathWalk:
    """One path on its way down: the folders entered so far, each held open."""

    def __init__(self, root: int, root_names: tuple[bytes, ...], path: str) -> None:
        self._root, self._root_names, self._path = root, root_names, path
        self._fds: list[int] = []
        self.steps: list[bytes] = []
        self._at: bytes | None = None  # the component that is being looked at
        self._is_outside = False
        self._links = self._races = 0
        self._pending: list[bytes] = []  # components still to walk, the next one last
        try:
            self._begin()
        except Failure:
            self.close()
            raise

    def _begin(self) -> None:
        if "\0" in self._path:
            raise Failure(
                ErrorCode.INVALID_PARAM,
                Message("The path holds a NUL character."),
                hint=Message("Send the path without it."),
            )
        self._push_path(self._path.encode())

    @property
    def fd(self) -> int:
        return self._fds[-1] if self._fds else self._root

    def close(self) -> None:
        """Harmless when done twice."""
        self._return_to_root()
        if self._root >= 0:
            os.close(self._root)
            self._root = -1

    def _return_to_root(self) -> None:
        while self._fds:
            os.close(self._fds.pop())
        self.steps.clear()

    def walk_to_existing(self) -> tuple[bytes, int]:
        """Walk all components but the last, whose name and mode are returned; it may be a folder but is no link."""
        name, mode = self.walk_to_place()
        if mode is None:
            raise self.missing_failure(name)
        return name, mode

    def walk_to_place(self, *, follow: bool = True) -> tuple[bytes, int | None]:
        """Walk a path that may not exist yet: the walk ends at the first missing name, with no mode.

        Unless ``follow``, a link at its very end is not walked.
        """
        while self._pending:
            name = self._at = self._pending.pop()
            if name == b"..":
                self._go_up()
                continue
            name, mode = self._find_name(name)
            self._at = name
            if mode is None:
                return name, None
            if stat.S_ISLNK(mode) and (follow or self._pending):
                self._follow(name)
            elif not self._pending:
                return name, mode
            elif stat.S_ISDIR(mode):
                self._enter(name)
            else:
                raise self._not_found_failure(
                    Message("'{path}' does not exist: '{name}' is not a folder.", path=self._path, name=to_text(name))
                )
        return b".", stat.S_IFDIR

    def _push_path(self, path: bytes) -> None:
        if path.startswith(b"/"):
            path = self._make_relative(path)
            self._return_to_root()
        self._pending.extend(reversed(split_steps(path)))

    def _make_relative(self, path: bytes) -> bytes:
        components = split_steps(path)
        for root in self._root_names:
            steps = split_steps(root)
            if components[: len(steps)] == steps:
                return b"/".join(components[len(steps) :])
        raise self._outside_failure()

    def _go_up(self) -> None:
        if not self._fds:
            raise self._outside_failure()
        self.leave()

    def leave(self) -> bytes:
        """Go back to the folder above; returns the name of the one left."""
        os.close(self._fds.pop())
        self._at = None
        return self.steps.pop()

    @property
    def resolved_path(self) -> str:
        """The path with links resolved as far as it was walked, then as written. Empty when it leads outside."""
        steps = list(self.steps)
        for step in ([] if self._at is None else [self._at]) + self.remaining:
            if step != b"..":
                steps.append(step)
            elif steps:
                steps.pop()
            else:
                return ""
        return "" if self._is_outside else "/".join(map(to_text, split_steps(b"/".join(steps)))) or "."

    @property
    def remaining(self) -> list[bytes]:
        """The components not walked yet."""
        return self._pending[::-1]

    def _find_name(self, name: bytes) -> tuple[bytes, int | None]:
        """The name on disk, which may be written with other bytes, and what it is; no mode when nothing is there."""
        try:
            return name, self._read_mode(name)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENAMETOOLONG):
                raise
            match = find_same_name(name, self._list_names())
            if match is None and error.errno == errno.ENOENT:
                return name, None
            if match is None:
                raise
        return match, self._read_mode(match)

    def _read_mode(self, name: bytes) -> int:
        return os.stat(name, dir_fd=self.fd, follow_symlinks=False).st_mode

    def _follow(self, name: bytes) -> None:
        self._links += 1
        if self._links > _MAX_LINKS:
            raise self._not_found_failure(Message("'{path}' does not exist: its links form a loop.", path=self._path))
        try:
            target = os.readlink(name, dir_fd=self.fd)
        except OSError as error:
            self._look_again(name, error, errno.EINVAL)
        else:
            self._at = None
            self._push_path(target)

    def _enter(self, name: bytes) -> None:
        try:
            fd = os.open(name, _STEP, dir_fd=self.fd)
        except OSError as error:
            self._look_again(name, error, errno.ENOTDIR, errno.ELOOP)
        else:
            self._fds.append(fd)
            self.steps.append(name)
            self._at = None
            if is_private(fd):
                raise private_home_failure(self._path)

    def _look_again(self, name: bytes, error: OSError, *swapped: int) -> None:
        """Go back to ``name`` when ``error`` says that it was swapped for something else since we looked."""
        self._races += 1
        if error.errno not in swapped or self._races > _MAX_RACES:
            raise error
        self._at = None
        self._pending.append(name)

    def _outside_failure(self) -> Failure:
        self._is_outside = True
        return Failure(
            ErrorCode.ACCESS_DENIED,
            Message("'{path}' leads outside the project.", path=self._path),
            hint=Message("Use a path inside the project, relative to its root."),
        )

    def missing_failure(self, name: bytes) -> Failure:
        guess = find_nearest(to_text(name), map(to_text, self._list_names()[:_NEIGHBOURS]))
        where = "/".join(map(to_text, self.steps))
        if not guess:
            return self._not_found_failure(Message("'{path}' does not exist.", path=self._path))
        similar = f"{where}/{guess}" if where else guess
        return self._not_found_failure(
            Message("'{path}' does not exist. Did you mean '{similar}'?", path=self._path, similar=similar)
        )

    def _not_found_failure(self, message: str) -> Failure:
        """Return the failure of a path that ends here; one on its way out of the project is refused as such."""
        depth = len(self.steps) + 1
        for step in reversed(self._pending):
            depth += -1 if step == b".." else 1
            if depth < 0:
                return self._outside_failure()
        return Failure(ErrorCode.NOT_FOUND, message, hint=INSPECT_HINT)

    def _list_names(self) -> list[bytes]:
        """All names in the folder reached so far, as far as we may see them."""
        try:
            own = os.open(b".", FOLDER, dir_fd=self.fd)
        except PermissionError:
            return []
        try:
            return [os.fsencode(name) for name in os.listdir(own)]
        finally:
            os.close(own)


def split_steps(path: bytes) -> list[bytes]:
    return [step for step in path.split(b"/") if step not in (b"", b".")]


def to_failure(error: OSError, path: str) -> Failure:
    """The one mapping from errno to error code."""
    match error.errno:
        case errno.ENOENT | errno.ENOTDIR:
            return Failure(ErrorCode.NOT_FOUND, Message("'{path}' does not exist.", path=path), hint=INSPECT_HINT)
        case errno.ELOOP:  # we follow links ourselves: the system sees one only where it was put in the meantime
            return Failure(
                ErrorCode.CONFLICT,
                Message("'{path}' became a link while it was opened.", path=path),
                hint=Message("Try again."),
            )
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return Failure(
                ErrorCode.PERMISSION_DENIED,
                Message(
                    "The operating system refuses access to '{path}': {errno}.",
                    path=path,
                    errno=os.strerror(error.errno),
                ),
                hint=Message("Change the file's permissions, or run Toolyard as a user who may."),
            )
        case errno.ENAMETOOLONG:
            return Failure(
                ErrorCode.INVALID_PARAM,
                Message("The path is longer than this system allows: '{path}...'.", path=path[:100]),
                hint=INSPECT_HINT,
            )
        case errno.EISDIR:
            return Failure(
                ErrorCode.IS_DIRECTORY, Message("'{path}' is a folder.", path=path), hint=Message("List it with LS.")
            )
        case errno.ENOSPC | errno.EDQUOT:
            return Failure(
                ErrorCode.EXECUTION_ERROR,
                Message("The disk is full: '{path}' was not written.", path=path),
                hint=Message("Free some space."),
            )
        case _:
            return Failure(
                ErrorCode.EXECUTION_ERROR,
                Message("'{path}': {error}.", path=path, error=error.strerror or error),
                hint=Message("Try again; if it stays, look at the disk or file system."),
            )


@contextmanager
def map_os_errors(path: str) -> Iterator[None]:
    """Errors of the system about ``path`` as Failures."""
    try:
        yield
    except OSError as error:
        raise to_failure(error, path) from error


@contextmanager
def locate_failures(place: Callable[[], str]) -> Iterator[None]:
    """Add the path ``place``, relative to the root, to Failures of the block, unless it is empty."""
    try:
        yield
    except Failure as failure:
        if where := place():
            failure.context.setdefault("path_resolved", where)
        raise


def require_regular(mode: int, path: str) -> None:
    if not stat.S_ISREG(mode):
        raise Failure(
            ErrorCode.INVALID_PARAM,
            Message("'{path}' is not a regular file: devices, pipes and sockets are not read.", path=path),
            hint=Message("Choose a regular file."),
        )


@dataclass(frozen=True, slots=True)
class PublishedFile:
    """An open file that a plugin publishes. ``fd`` is for its holder to close."""

    fd: int
    name: str
    size: int
    modified_ns: int


def open_published(folder: int, path: str) -> PublishedFile | None:
    """Open a file that a plugin publishes, below one folder, by a path that a stranger wrote; None: there is none.

    Nothing outside that folder is reached, by ``..``, by a link or by a second name of somebody else's file; hidden
    names, folders, devices and pipes are as good as missing.
    """
    steps = path.split("/")
    if any(not step or step.startswith(".") for step in steps) or "\0" in path or not _is_text(path):
        return None
    try:
        with map_os_errors(path):
            return _open_regular(folder, path, steps[-1])
    except Failure:
        return None


def _is_text(path: str) -> bool:
    try:
        return bool(path.encode())
    except UnicodeEncodeError:
        return False


def _open_regular(folder: int, path: str, name: str) -> PublishedFile:
    walk = PathWalk(os.dup(folder), (), path)
    try:
        last, mode = walk.walk_to_existing()
        require_regular(mode, path)
        fd = os.open(last, FILE, dir_fd=walk.fd)
    finally:
        walk.close()
    try:
        info = os.fstat(fd)
        require_regular(info.st_mode, path)
        if info.st_nlink > 1 and info.st_uid != os.fstat(folder).st_uid:
            raise PermissionError(f"{path} is a second name of a file of another user")
    except BaseException:
        os.close(fd)
        raise
    return PublishedFile(fd, name, info.st_size, info.st_mtime_ns)


def to_text(name: bytes) -> str:
    return name.decode(errors="backslashreplace")


def find_same_name(written: bytes, names: Iterable[bytes]) -> bytes | None:
    """The first of ``names`` that reads like ``written``."""
    if written.isascii() and b"\\x" not in written:
        return None  # such a name can only stand for itself
    composed = _to_composed(written)
    return next((name for name in names if _to_composed(name) == composed), None)


def _to_composed(name: bytes) -> str:
    return unicodedata.normalize("NFC", to_text(name))


def to_printable(text: str) -> str:
    """Text that was decoded with lone surrogates for bytes that are no text, as every JSON can carry it."""
    return text if text.isascii() else to_text(text.encode(errors="surrogateescape"))
