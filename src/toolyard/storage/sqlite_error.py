"""Errors of SQLite about a state file as StorageErrors: the problem, its place, and how to fix it."""

import errno
import os
import sqlite3
from pathlib import Path

from toolyard.errors import FULL, StorageBusy, StorageError, StorageUnwritable
from toolyard.message import Message
from toolyard.storage.damage import needs_backup, needs_rebuild

_ROOM = 2**20  # bytes that are left on a disk on which nothing more can be done


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
            Message(
                "state.busy",
                "{file} is held by another process ({message}): try again in a moment",
                file=file,
                message=message,
            )
        )
    if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_CORRUPT_INDEX:
        return needs_rebuild(
            Message("state.damaged_index", "{file} is damaged (an index does not match its records)", file=file),
            file,
        )
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or isinstance(error, UnicodeError):
        return needs_backup(
            Message("state.damaged", "{file} is damaged ({reason})", file=file, reason=" ".join(message.split())),
            file,
        )
    return StorageError(Message("state.file_error", "{file}: {message}", file=file, message=message))


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
