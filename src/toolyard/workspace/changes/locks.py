"""One writer at a time in a folder: between the threads of this host and between hosts on one machine.

The lock is on the open folder itself, so nothing is created and nothing is left behind by a crash. Several folders are
always taken in one order, so that two calls cannot wait for each other. A waiting call stops at its checkpoint.

The lock of a machine in a home is shared by all of its processes that use the state of the home. Whoever shares a state
in a file runs on the same kernel, because SQLite needs local locks. So a machine with another name is another
container, or this machine before it was renamed. Its processes cannot be seen from here; its lock can.
"""

import fcntl
import os
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, Protocol

from toolyard.protocol.tool import Checkpoint

_WAIT_S = 0.02  # how long to wait before looking at the checkpoint again
_guard = threading.Lock()
_held: dict[tuple[int, int], tuple[threading.Lock, int]] = {}  # folder -> its lock, how many want it
_FOLDER: Final = "machines"
_SUFFIX: Final = ".lock"
_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC


@contextmanager
def lock_folders(folders: Sequence[int], checkpoint: Checkpoint) -> Iterator[None]:
    """Hold the folders open as these descriptors, each once."""
    by_identity = {(info.st_dev, info.st_ino): fd for fd in folders for info in [os.fstat(fd)]}
    with ExitStack() as stack:
        for identity in sorted(by_identity):
            stack.enter_context(_lock_among_threads(identity, checkpoint))
            stack.enter_context(_lock_among_processes(by_identity[identity], checkpoint))
        yield


class LockableTarget(Protocol):
    """A file to be written, in the deepest folder of its way that exists."""

    @property
    def folder(self) -> int: ...

    def enter_existing_folders(self) -> None: ...


@contextmanager
def lock_targets(targets: Sequence[LockableTarget], checkpoint: Checkpoint) -> Iterator[None]:
    """Hold the folders of files that are to be written.

    A folder that was made while the lock on its parent was waited for is entered, and then the lock is on that one: two
    calls never write one file under different locks.
    """
    while True:
        with lock_folders([target.folder for target in targets], checkpoint):
            held = [target.folder for target in targets]
            for target in targets:
                target.enter_existing_folders()
            if [target.folder for target in targets] == held:
                yield
                return


@contextmanager
def _lock_among_threads(identity: tuple[int, int], checkpoint: Checkpoint) -> Iterator[None]:
    with _guard:
        lock, waiting = _held.get(identity, (threading.Lock(), 0))
        _held[identity] = lock, waiting + 1
    try:
        while not lock.acquire(timeout=_WAIT_S):
            checkpoint()
        try:
            yield
        finally:
            lock.release()
    finally:
        with _guard:
            lock, waiting = _held[identity]
            if waiting == 1:
                del _held[identity]
            else:
                _held[identity] = lock, waiting - 1


@contextmanager
def _lock_among_processes(folder: int, checkpoint: Checkpoint) -> Iterator[None]:
    own = os.open(b".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)  # a lock belongs to one opening
    try:
        while True:
            try:
                fcntl.flock(own, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                checkpoint()
                threading.Event().wait(_WAIT_S)
            except OSError:
                break  # a file system without locks: the threads of this host are still kept apart
        yield
    finally:
        os.close(own)


class MachineLock:
    """The shared lock of this machine in a home, held until ``release`` or the end of the process."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    @classmethod
    def acquire(cls, home: Path) -> "MachineLock":
        """Take it. Raises OSError in a home that cannot be written."""
        folder = home / _FOLDER
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        file = folder / (socket.gethostname() + _SUFFIX)
        while True:
            fd = os.open(file, _FLAGS, 0o600)
            fcntl.flock(fd, fcntl.LOCK_SH)  # others hold it exclusively for a moment only
            if _is_same(fd, file):
                return cls(fd)
            os.close(fd)  # somebody found it without a holder, and removed it

    def release(self) -> None:
        os.close(self._fd)


def list_machines(home: Path) -> frozenset[str]:
    """Return the names of the machines whose processes use this home, and remove the locks of all others."""
    try:
        files = list((home / _FOLDER).iterdir())
    except OSError:
        return frozenset()
    return frozenset(file.name.removesuffix(_SUFFIX) for file in files if not _remove_unheld(file))


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
