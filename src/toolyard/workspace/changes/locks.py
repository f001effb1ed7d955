"""One writer at a time in a folder: between the threads of this host and between hosts on one machine.

The lock is on the open folder itself, so nothing is created and nothing is left behind by a crash. Several folders are
always taken in one order, so that two calls cannot wait for each other. A waiting call stops at its checkpoint.
"""

import fcntl
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Protocol

from toolyard.protocol.tool import Checkpoint

_WAIT_S = 0.02  # how long to wait before looking at the checkpoint again
_guard = threading.Lock()
_held: dict[tuple[int, int], tuple[threading.Lock, int]] = {}  # folder -> its lock, how many want it


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
