"""The state file of a home, from outside: its integrity, its size, and a consistent copy of it.

Looking and copying never change it, and writers never wait for them. A file may come from anywhere: before a row of it
is read, it must have the tables and indices of a Toolyard and nothing else, so that nothing in it runs.
"""

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from toolyard.errors import StorageBusy, StorageIndexDamaged, StorageUnwritable
from toolyard.message import Message
from toolyard.storage.integrity import require_rebuildable, require_sound
from toolyard.storage.sqlite_error import to_storage_error
from toolyard.storage.sqlite_schema import require_schema

STATE: Final = "state.db"
SIDE_FILES: Final = (f"{STATE}-wal", f"{STATE}-shm")
_BUSY_S = 5.0
_COUNTS = """
SELECT kind, COUNT(*) FROM records WHERE typeof(kind) = 'text' AND length(kind) <= 100
GROUP BY kind ORDER BY kind LIMIT 100
"""


def measure_used_bytes(file: Path) -> int:
    """Return the size of the content in bytes; the file itself never shrinks."""
    if not file.exists():
        return 0
    with _open_for_reading(file) as db:
        numbers = [db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")]
    return int((numbers[0] - numbers[1]) * numbers[2])


def count_records(file: Path) -> dict[str, int]:
    """Count the records of each kind, and the events; nothing of a file that does not exist."""
    if not file.exists():
        return {}
    with _open_for_reading(file) as db:
        try:
            counts = dict(db.execute(_COUNTS).fetchall())
            (events,) = db.execute("SELECT COUNT(*) FROM events").fetchone()
        except sqlite3.OperationalError:
            return {}  # nothing was ever kept in it
    return {**counts, "event": events}


def check(file: Path, *, whole: bool = False) -> None:
    """Raise StorageError when the file is damaged or of a newer Toolyard; one that does not exist is whole.

    ``whole``: look at every index too. Writers do not wait for it.
    """
    if file.exists():
        with _open_for_reading(file) as db:
            _examine(db, file, whole=whole)


def copy(file: Path, to: Path) -> None:
    """Copy the file as of one moment, also while others write. Raises StorageError when the copy is damaged."""
    with _open_for_reading(file) as source, contextlib.closing(sqlite3.connect(to)) as target:
        source.backup(target)  # all at once: one view of the file, while writers go on in the log beside it
        target.execute("PRAGMA journal_mode = DELETE")  # one file, nothing beside it
        _examine(target, file)
    to.chmod(0o600)


def _examine(db: sqlite3.Connection, file: Path, *, whole: bool = False) -> None:
    try:
        require_schema(db, file)
    except StorageIndexDamaged as error:
        require_rebuildable(db, file, str(error))
        raise
    require_sound(db, file, whole=whole)


def be_careful(db: sqlite3.Connection) -> None:
    """Make a connection run nothing that is in its file, and notice damage in each page that it reads."""
    db.execute("PRAGMA trusted_schema = OFF")
    db.execute("PRAGMA cell_size_check = ON")


def fold_in(file: Path) -> None:
    """Take what stands beside the file into it, if the file can be read; StorageError while a process uses it."""
    try:
        with contextlib.closing(sqlite3.connect(file, timeout=0)) as db:
            db.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.Error as error:
        if "locked" in str(error):
            raise StorageBusy(
                Message(
                    "state.in_use",
                    "{file} is used by a running process: stop it first",
                    file=file,
                )
            ) from error


def clear_owners(file: Path) -> None:
    """Clear the owners of a restored state: nothing in it runs until a host settles it.

    Only for a file that was checked. Raises StorageError.
    """
    with _open_for_reading(file) as db, db:
        db.execute("UPDATE records SET owner = '', version = version + 1 WHERE owner <> ''")


@contextlib.contextmanager
def _open_for_reading(file: Path) -> Iterator[sqlite3.Connection]:
    try:
        writable = os.access(file, os.W_OK) and os.access(file.parent, os.W_OK)
        mode = "rw" if writable else "ro"  # only a writer can read what still stands in the log beside the file
        with contextlib.closing(sqlite3.connect(f"{_to_uri(file)}?mode={mode}", uri=True, timeout=_BUSY_S)) as db:
            be_careful(db)
            yield db
    except (sqlite3.DatabaseError, UnicodeError) as error:  # a message may quote what is in the file
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
            raise StorageUnwritable(
                Message("state.no_room_for_copy", "the disk is full: there is no room for a copy of {file}", file=file)
            ) from error
        raise to_storage_error(file, error) from error


def _to_uri(file: Path) -> str:
    return file.absolute().as_uri()
