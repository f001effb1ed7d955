"""The lock of a machine in a home: all processes of one machine that use the state of the home share it.

Whoever shares a state in a file runs on the same kernel, because SQLite needs local locks. So a machine with another
name is another container, or this machine before it was renamed. Its processes cannot be seen from here; its lock can.
"""

import fcntl
import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import Final

_FOLDER: Final = "machines"
_SUFFIX: Final = ".lock"
_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC


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
