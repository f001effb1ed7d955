"""Damage of a state: refusals of a damaged or foreign one, and errors of SQLite about it, with what helps."""

import errno
import os
import sqlite3
from pathlib import Path

from toolyard.errors import FULL, StorageBusy, StorageError, StorageIndexDamaged, StorageUnwritable
from toolyard.message import Message
from toolyard.own_command import OwnCommand

_ROOM = 2**20  # bytes that are left on a disk on which nothing more can be done


def needs_backup(problem: str, file: Path) -> StorageError:
    """Return the error for a state that only a backup replaces; ``file`` is in its home."""
    return StorageError(
        Message(
            "{problem}: put it aside and restore a backup with '{command}'",
            problem=problem,
            command=OwnCommand(file.parent).format("restore BACKUP --force"),
        )
    )


def damaged_record(problem: str) -> StorageError:
    """Return the error for a record that only a backup replaces."""
    return StorageError(Message("{problem}: restore a backup of this home", problem=problem))


def needs_rebuild(problem: str, file: Path) -> StorageIndexDamaged:
    """Return the error for a state whose indexes can be rebuilt from its records; ``file`` is in its home."""
    return StorageIndexDamaged(
        Message(
            "{problem}: rebuild it with '{command}'",
            problem=problem,
            command=OwnCommand(file.parent).format("doctor --repair"),
        )
    )


def without_remedy(error: StorageError) -> str:
    """Return the problem alone if it needs a backup; any other error in full."""
    message = str(error)
    if isinstance(message, Message) and message.code in ("state.needs_backup", "state.record_needs_backup"):
        return str(message.params["problem"])
    return message


def to_storage_error(file: Path, error: Exception) -> StorageError:
    message = str(error)
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if _is_full(file, error, code):
        return StorageUnwritable.from_os_error(file, OSError(errno.ENOSPC, message))
    if isinstance(error, OSError) or code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        cause = error if isinstance(error, OSError) else OSError(0, message)
        return StorageUnwritable.from_os_error(file, cause)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StorageBusy(
            Message("{file} is held by another process ({message}): try again in a moment", file=file, message=message)
        )
    if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_CORRUPT_INDEX:
        return needs_rebuild(Message("{file} is damaged (an index does not match its records)", file=file), file)
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or isinstance(error, UnicodeError):
        return needs_backup(Message("{file} is damaged ({reason})", file=file, reason=" ".join(message.split())), file)
    return StorageError(Message("{file}: {message}", file=file, message=message))


def _is_full(file: Path, error: Exception, code: int) -> bool:
    if code == sqlite3.SQLITE_FULL or (isinstance(error, OSError) and error.errno in FULL):
        return True
    return code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN) and not _has_room(file)


def _has_room(file: Path) -> bool:
    try:
        disk = os.statvfs(file.parent)
    except OSError:
        return True
    return disk.f_bavail * disk.f_frsize >= _ROOM
