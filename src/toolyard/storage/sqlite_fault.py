"""What SQLite says about a state file, as a StorageError: what is wrong, where, and how to fix it."""

import errno
import os
import shutil
import sqlite3
from pathlib import Path
from typing import Final

from toolyard.errors import StorageError, StorageIndexDamaged, StorageUnwritable
from toolyard.storage.sqlite_schema import HINT, REPAIR

FULL: Final = (errno.ENOSPC, errno.EDQUOT)
_ROOM = 2**20  # bytes that are left on a disk on which nothing more can be done


def to_storage_error(file: Path, error: Exception) -> StorageError:
    said = str(error)
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if _is_full(file, error, code):
        return StorageUnwritable(f"the disk is full: {file} cannot be written; free some space and try again")
    if isinstance(error, OSError) or code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return StorageUnwritable(_describe_unwritable(file, said))
    if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_CORRUPT_INDEX:
        return StorageIndexDamaged(f"{file} is damaged (an index does not match its records): {REPAIR}")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or isinstance(error, UnicodeError):
        return StorageError(f"{file} is damaged ({' '.join(said.split())}): {HINT}")
    return StorageError(f"{file}: {said}")


def _is_full(file: Path, error: Exception, code: int) -> bool:
    if code == sqlite3.SQLITE_FULL or (isinstance(error, OSError) and error.errno in FULL):
        return True
    return code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN) and not _has_room(file)


def _describe_unwritable(file: Path, said: str) -> str:
    for place in (file.parent, file):
        if _is_read_only(place):
            return f"{place} is on a file system that is mounted read-only: remount it writable, or use another --home"
        if place.exists() and not os.access(place, os.W_OK):
            return f"{place} is read-only for this user: make it writable, or use another --home"
    return f"{file} cannot be written ({said}): make the file and its folder writable"


def _is_read_only(place: Path) -> bool:
    try:
        return bool(os.statvfs(place).f_flag & os.ST_RDONLY)
    except OSError:
        return False


def _has_room(file: Path) -> bool:
    try:
        return shutil.disk_usage(file.parent).free >= _ROOM
    except OSError:
        return True
