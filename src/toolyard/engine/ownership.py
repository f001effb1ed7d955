"""Ownership: process identities, liveness of owners, orphaned records, and the lock of a home."""

import fcntl
import os
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, NamedTuple
from uuid import uuid4

from toolyard.errors import AlreadyOwned, StorageUnwritable
from toolyard.message import Message
from toolyard.process_numbers import is_process_alive, process_start_time
from toolyard.protocol.store import PageCursor, Query, Record, Store
from toolyard.workspace.home_folder import list_machines, make_private_folder

LOCK = "owner.lock"
_LOCK_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
IsAlive = Callable[[str], bool]
_PAGE = 500
_TRIES = 500
_TRY_S = 0.02


class ProcessIdentity(NamedTuple):
    """A process on a machine; its name is never used again."""

    name: str
    machine: str


def identify_process() -> ProcessIdentity:
    machine = socket.gethostname()
    return ProcessIdentity(f"{machine}/{os.getpid()}/{process_start_time(os.getpid())}/{uuid4().hex[:8]}", machine)


def is_owner_alive(owner: str) -> bool:
    """Return whether an owner's process still runs; one on another machine counts as alive."""
    machine, _, rest = owner.partition("/")
    if machine != socket.gethostname():
        return bool(owner)
    pid, _, rest = rest.partition("/")
    began, _, _ = rest.partition("/")
    return pid.isdigit() and began.isdigit() and is_process_alive(int(pid), int(began))


def make_home_liveness(home: Path) -> IsAlive:
    """Return ``is_owner_alive`` for the records of a state in a file: an owner on a machine of another name is alive
    while processes of that machine use the home."""
    machines = list_machines(home)

    def is_alive(owner: str) -> bool:
        machine = owner.partition("/")[0]
        return is_owner_alive(owner) if machine == socket.gethostname() else machine in machines

    return is_alive


async def find_orphans(store: Store, kind: str, states: tuple[str, ...], alive: IsAlive) -> AsyncIterator[list[Record]]:
    """Yield pages of the records in ``states`` whose owner is dead, newest first."""
    alive = cache(alive)
    after: PageCursor | None = None
    while page := await store.find(kind, Query(states=states), limit=_PAGE, after=after):
        after = PageCursor(at=page[-1].created, id=page[-1].id)
        if orphaned := [record for record in page if not alive(record.owner)]:
            yield orphaned


def is_owned(home: Path) -> bool:
    """Return whether a running Toolyard owns this home."""
    try:
        with (home / LOCK).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # there is no lock: nobody ever owned it
    return False


class OwnerLock:
    """The lock of a home: held while its server runs, released by the kernel when the process dies."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    @classmethod
    def acquire(cls, home: Path) -> "OwnerLock":
        try:
            make_private_folder(home)
            file = os.fdopen(os.open(home / LOCK, _LOCK_FLAGS, 0o600), "a+", encoding="utf-8")
        except OSError as error:
            raise StorageUnwritable.from_os_error(home / LOCK, error) from error
        if not _try_lock(file):
            file.seek(0)
            who = file.read().strip() or "another process"
            file.close()
            raise AlreadyOwned(
                Message(
                    "{home} belongs to a running Toolyard ({who}): stop it first, or use another --home",
                    home=home,
                    who=who,
                )
            )
        with suppress(OSError):  # a full disk; the lock holds anyway, and whoever needs room says so
            os.ftruncate(file.fileno(), 0)
            os.write(file.fileno(), f"process {os.getpid()}".encode())
        return cls(file)

    def release(self) -> None:
        self._file.close()


def _try_lock(file: IO[str]) -> bool:
    """Try to lock exclusively; a shared lock of ``is_owned`` is held only for a moment, so it is retried."""
    for _ in range(_TRIES):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pass
        else:
            return True
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        fcntl.flock(file, fcntl.LOCK_UN)
        time.sleep(_TRY_S)
    return False
