"""The home on disk: only its owner can enter it, however it came to be.

The home holds keys, results and the old content of files. Folders that are made in it have the mode 0700, those on the
way too; ``mkdir`` alone gives its mode to the last folder only. A home that somebody made with another mode is closed
when it is first used.

``StateFile`` is a small JSON file in it that several processes update atomically, private to its owner. Reading costs
one ``stat`` while nothing has changed. A file that cannot be read counts as empty and says why in ``problem``; it is
never written over, so that nothing in it is lost. Writers take turns by a lock file beside it, and wait for each other
no longer than a few seconds.

A home is no place for tools, also when it stands inside the project: it holds what makes writes safe and, in its
settings, a key. No tool enters it: not by a path, a listing or a search.

The lock of a machine in a home is shared by all of its processes that use the state of the home. Whoever shares a state
in a file runs on the same kernel, because SQLite needs local locks. So a machine with another name is another
container, or this machine before it was renamed. Its processes cannot be seen from here; its lock can.
"""

import fcntl
import json
import logging
import os
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from toolyard.crashpoint import crashpoint
from toolyard.errors import ConfigError, StorageUnwritable
from toolyard.message import Message
from toolyard.protocol.envelope import ErrorCode, Failure
from toolyard.protocol.json import JsonObject

_log = logging.getLogger(__name__)
_LEFT_OPEN = ("transactions", "trash")  # by earlier versions
_MAX_BYTES = 64 * 2**20
_WAIT_S = 0.02
_MAX_WAITS = 250
_MACHINES = "machines"  # the folder of their locks
_MACHINE_LOCK = ".lock"
_LOCK_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
_homes: set[str] = set()


def make_private_folder(folder: Path) -> None:
    """Make a folder, and those on the way that are missing, for its owner alone. Raises OSError."""
    try:
        folder.mkdir(mode=0o700)
    except FileNotFoundError:
        make_private_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
    except FileExistsError:
        if not folder.is_dir():
            raise


def restrict_home(home: Path) -> None:
    """Take a home that exists away from everybody but its owner. A home of another user is only warned about."""
    try:
        facts = home.stat()
        if not facts.st_mode & 0o077:
            return
        if facts.st_mode & stat.S_ISVTX:  # /tmp and its like are for everybody
            _log.warning("%s is open to every user of this machine: use a home of your own", home)
            return
        home.chmod(stat.S_IMODE(facts.st_mode) & 0o700)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        _log.warning("%s can be read by others (%s): run chmod 700 on it", home, error.strerror)
        return
    for name in _LEFT_OPEN:
        with suppress(OSError):
            if not (home / name).is_symlink():
                (home / name).chmod(0o700)


class StateFile:
    def __init__(self, path: Path) -> None:
        self.path, self._name = path, os.fspath(path)
        self.problem = ""
        self._value: JsonObject = {}
        self._seen: tuple[int, ...] | None = None

    def read(self) -> JsonObject:
        """Return the content of the file; not to be changed."""
        seen = self.signature()
        if seen != self._seen:
            self._value, self.problem = self._load()
            self._seen = seen
        return self._value

    def update(self, edit: Callable[[JsonObject], None]) -> None:
        """Write the file as ``edit`` leaves its content; raises ConfigError and StorageUnwritable."""
        try:
            make_private_folder(self.path.parent)
            with lock_file(self.path.with_name(f".{self.path.name}.lock")):
                value, problem = self._load()
                if problem:
                    raise ConfigError(Message("{problem}: correct it, or remove it and begin anew", problem=problem))
                edit(value)
                write_private_file(
                    self.path, json.dumps(value, ensure_ascii=False, indent=1).encode(errors="surrogatepass")
                )
        except OSError as error:
            raise StorageUnwritable.from_os_error(self.path, error) from error

    def _load(self) -> tuple[JsonObject, str]:
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            with os.fdopen(fd, "rb") as file:
                value = json.loads(file.read(_MAX_BYTES).decode())
        except FileNotFoundError:
            return {}, ""
        except OSError as error:
            return {}, Message("{path} cannot be read: {error}", path=self.path, error=error.strerror)
        except (ValueError, RecursionError) as error:
            return {}, Message("{path} is not valid JSON ({error})", path=self.path, error=error)
        if isinstance(value, dict):
            return value, ""
        return {}, Message("{path} is not a JSON object", path=self.path)

    def signature(self) -> tuple[int, ...]:
        """Return a value that changes whenever the file does."""
        try:
            info = os.stat(self._name)  # half the time of the method
        except OSError as error:
            return (error.errno or 0,)
        return info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns


def write_private_file(path: Path, content: bytes) -> None:
    """Replace a file atomically, private to its owner. Raises OSError."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with suppress(FileNotFoundError):
        draft.unlink()  # of a process of this number that died
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(fd)
        crashpoint("state-file.before-replace")
        draft.replace(path)
        crashpoint("state-file.after-replace")
    except BaseException:
        with suppress(FileNotFoundError):
            draft.unlink()
        raise


@contextmanager
def lock_file(lock: Path) -> Iterator[None]:
    """Hold an exclusive lock among processes. Raises ConfigError when it takes too long."""
    own = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    pause = threading.Event()
    try:
        for _ in range(_MAX_WAITS):
            try:
                fcntl.flock(own, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                pause.wait(_WAIT_S)
            except OSError:
                break  # a file system without locks
        else:
            raise ConfigError(Message("{lock} is held by another process: try again when it has ended", lock=lock))
        yield
    finally:
        os.close(own)


def sync_to_disk(path: Path) -> None:
    """Sync a file, or the names in a folder. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def keep_private(home: Path, root: Path) -> None:
    """Close ``home`` to all tools, if it is inside ``root``; it need not exist yet."""
    real = os.path.realpath(home)
    if Path(real).is_relative_to(os.path.realpath(root)):
        _homes.add(real)


def is_private(folder: int) -> bool:
    """Return whether an open folder is such a home."""
    return bool(_homes) and any(_is_same_folder(home, folder) for home in tuple(_homes))  # another thread may add one


def private_home_failure(path: str) -> Failure:
    return Failure(
        ErrorCode.ACCESS_DENIED,
        Message("'{path}' is in Toolyard's own home, which no tool enters.", path=path),
        hint=Message("Use the command line to look at settings and state."),
    )


def _is_same_folder(home: str, folder: int) -> bool:
    try:
        return os.path.samestat(os.stat(home), os.fstat(folder))
    except FileNotFoundError:
        return False


class MachineLock:
    """The shared lock of this machine in a home, held until ``release`` or the end of the process."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    @classmethod
    def acquire(cls, home: Path) -> "MachineLock":
        """Take it. Raises OSError in a home that cannot be written."""
        folder = home / _MACHINES
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        file = folder / (socket.gethostname() + _MACHINE_LOCK)
        while True:
            fd = os.open(file, _LOCK_FLAGS, 0o600)
            fcntl.flock(fd, fcntl.LOCK_SH)  # others hold it exclusively for a moment only
            if _is_same(fd, file):
                return cls(fd)
            os.close(fd)  # somebody found it without a holder, and removed it

    def release(self) -> None:
        os.close(self._fd)


def list_machines(home: Path) -> frozenset[str]:
    """Return the names of the machines whose processes use this home, and remove the locks of all others."""
    try:
        files = list((home / _MACHINES).iterdir())
    except OSError:
        return frozenset()
    return frozenset(file.name.removesuffix(_MACHINE_LOCK) for file in files if not _remove_unheld(file))


def _remove_unheld(file: Path) -> bool:
    try:
        fd = os.open(file, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_same(fd, file):
            file.unlink()
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


def _is_same(fd: int, file: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), file.stat())
    except FileNotFoundError:
        return False
