"""Repairing a state file: a new one is built from its records and events, with every index made anew.

Nothing of the damaged file is lost: it stays in a folder of the home, and the new file takes its place by one rename,
after it was checked as a whole. A file whose records cannot be read is left as it is. Only the owner of a home may do
so, and nobody else may have the file open.
"""

import contextlib
import os
import shutil
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from toolyard.crashpoint import crashpoint
from toolyard.message import Message
from toolyard.protocol.search_words import list_words
from toolyard.storage.backup import report_full_disk, sync_to_disk
from toolyard.storage.damage import needs_backup
from toolyard.storage.sqlite_error import to_storage_error
from toolyard.storage.sqlite_schema import apply_migrations, find_format
from toolyard.storage.state_file import SIDE_FILES, check, fold_in

_DRAFT = ".state-repair.db"
_PAGE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Repaired:
    records: int
    events: int
    duplicates: int  # records that stood there twice: the newer one stays
    aside: Path  # the file as it was


def repair(file: Path, aside: Path) -> Repaired:
    """Rebuild the file; as it was, it is in the folder ``aside``. Raises StorageError, and then nothing changed."""
    draft = file.with_name(_DRAFT)
    try:
        fold_in(file)
        if any(file.with_name(name).exists() for name in SIDE_FILES):
            raise needs_backup(Message("state.cannot_open", "{file} cannot be opened", file=file), file)
        draft.unlink(missing_ok=True)
        with report_full_disk():
            records, events, duplicates = _rebuild(file, draft)
            check(draft, whole=True)
            sync_to_disk(draft)
            _put_in_place(file, draft, aside)
    except (sqlite3.Error, OSError, UnicodeError) as error:
        raise to_storage_error(file, error) from error
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
    return Repaired(records=records, events=events, duplicates=duplicates, aside=aside / file.name)


def _rebuild(file: Path, draft: Path) -> tuple[int, int, int]:
    """Copy records and events to a new file; how many, and how many records stood there twice."""
    with (
        contextlib.closing(sqlite3.connect(file, isolation_level=None)) as old,
        contextlib.closing(sqlite3.connect(draft, isolation_level=None)) as new,
    ):
        draft.chmod(0o600)
        old.execute("PRAGMA trusted_schema = OFF")
        old.execute("PRAGMA cell_size_check = ON")
        new.execute("BEGIN")
        apply_migrations(new, 0, find_format(old, file))
        copied = _copy(old, new, "records")
        events = _copy(old, new, "events")
        (records,) = new.execute("SELECT count(*) FROM records").fetchone()
        _index_words(new)
        _keep_last_number(old, new)
        new.execute("COMMIT")
    return records, events, copied - records


def _copy(old: sqlite3.Connection, new: sqlite3.Connection, table: str) -> int:
    """Copy the rows of a table in the order of their numbers, without any index; how many there were."""
    rows = old.execute(f"SELECT * FROM {table} NOT INDEXED")  # noqa: S608 one of two names
    marks = ",".join("?" * len(rows.description))
    copied = 0
    while page := rows.fetchmany(_PAGE):
        new.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", page)  # noqa: S608
        copied += len(page)
    return copied


def _index_words(db: sqlite3.Connection) -> None:
    rows = db.execute("SELECT number, text FROM records NOT INDEXED WHERE owner = ''")
    while page := rows.fetchmany(_PAGE):
        ready = [(number, said) for number, text in page if (said := " ".join(list_words(text)))]
        db.executemany("INSERT INTO words (rowid, said) VALUES (?, ?)", ready)


def _keep_last_number(old: sqlite3.Connection, new: sqlite3.Connection) -> None:
    """Let no later event have a number that one had before, though that one may be forgotten."""
    with contextlib.suppress(sqlite3.DatabaseError):  # else they go on after the last one that is kept
        (last,) = old.execute("SELECT max(seq) FROM sqlite_sequence WHERE name = 'events'").fetchone()
        (newest,) = new.execute("SELECT max(seq) FROM events").fetchone()
        if isinstance(last, int) and last > (newest or 0):
            new.execute("DELETE FROM sqlite_sequence WHERE name = 'events'")
            new.execute("INSERT INTO sqlite_sequence VALUES ('events', ?)", (last,))


def _put_in_place(file: Path, draft: Path, aside: Path) -> None:
    aside.mkdir(mode=0o700)
    try:
        os.link(file, aside / file.name)
    except OSError:  # a file system without links
        shutil.copy2(file, aside / file.name)
        sync_to_disk(aside / file.name)
    sync_to_disk(aside)
    crashpoint("repair.before-replace")
    draft.replace(file)
    sync_to_disk(file.parent)
