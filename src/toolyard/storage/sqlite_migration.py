"""Bringing a state file to the latest format, with a copy of it first.

One process does it, under a lock of the home; others that start at the same moment wait for it. A process that has the
file open, such as a server of an older version, must be stopped first. The copy stands beside the file, whole, before
the file is touched, and all steps are one transaction: a crash leaves the file in the old format or in the new one.
"""

import contextlib
import fcntl
import logging
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

from toolyard.crashpoint import crashpoint
from toolyard.errors import StorageBusy, StorageError
from toolyard.message import Message
from toolyard.storage.damage import to_storage_error
from toolyard.storage.sqlite_schema import apply_migrations, latest_format, require_schema
from toolyard.storage.state_file import copy, fold_in
from toolyard.workspace.home_folder import sync_to_disk

_log = logging.getLogger(__name__)
_LOCK_TRIES = 30_000  # ten minutes for another process to migrate the same file
_OTHERS_TRIES = 250  # 5 s for others to let go of the file, which they open for a moment to see its format
_PAUSE_S = 0.02
_BUSY_S = 60.0


def ensure_latest_format(file: Path) -> None:
    """Make the file if there is none, and migrate it if it is older. Raises StorageError."""
    try:
        if _read_format(file) < latest_format():
            _migrate(file)
    except (sqlite3.Error, OSError, UnicodeError) as error:
        raise to_storage_error(file, error) from error


def _read_format(file: Path) -> int:
    with contextlib.closing(sqlite3.connect(file, timeout=_BUSY_S)) as db:
        file.chmod(0o600)
        return require_schema(db, file)


def _migrate(file: Path) -> None:
    with _lock(file):
        version = _read_format(file)
        if version == latest_format():  # another process was faster
            return
        if version:
            _fold_in(file)
            copy = _keep_copy(file, version)
            _log.warning("%s is brought from format %d to %d; as it is now, it is kept in %s",
                         file, version, latest_format(), copy)  # fmt: skip
        with contextlib.closing(sqlite3.connect(file, timeout=_BUSY_S, isolation_level=None)) as db:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("BEGIN EXCLUSIVE")
            apply_migrations(db, version, latest_format())
            crashpoint("store.before-migrated")
            db.execute("COMMIT")


def copy_path(file: Path, version: int) -> Path:
    """Return where the state of an older format is kept."""
    return file.with_name(f"{file.stem}-format-{version}{file.suffix}")


def _keep_copy(file: Path, version: int) -> Path:
    """Copy the file as it is; a copy that an earlier attempt made is replaced, because the file may have changed."""
    target = copy_path(file, version)
    draft = target.with_name(f".{target.name}.new")
    try:
        draft.unlink(missing_ok=True)
        copy(file, draft)
        sync_to_disk(draft)
        crashpoint("store.before-copy-kept")
        draft.replace(target)
        sync_to_disk(target.parent)
    except OSError as error:
        raise to_storage_error(target, error) from error
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
    return target


def _fold_in(file: Path) -> None:
    """Make sure that no other process has the file open."""
    for _ in range(_OTHERS_TRIES):
        with contextlib.suppress(StorageBusy):
            return fold_in(file)
        time.sleep(_PAUSE_S)
    return fold_in(file)


@contextlib.contextmanager
def _lock(file: Path) -> Iterator[None]:
    """Lock the folder of the file, which leaves nothing behind."""
    fd = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if not _try_lock(fd):
            raise StorageError(Message("{file} is being migrated by another process: try again later", file=file))
        yield
    finally:
        os.close(fd)


def _try_lock(fd: int) -> bool:
    for _ in range(_LOCK_TRIES):
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        time.sleep(_PAUSE_S)
    return False
