"""The state file of a home, from outside: its integrity, its size, and a consistent copy of it.

Looking and copying never change it, and writers never wait for them. A file may come from anywhere: before a row of it
is read, it must have the tables and indices of a Toolyard and nothing else, so that nothing in it runs. Indexes repeat
what stands in the records, so they can be rebuilt when every record and event can be read; otherwise a backup is
needed. Which of the two it is, a trial tells: the same rebuild, into a temporary file. What SQLite says about damage
often names a page only, or nothing, so each index is then compared with the records.
"""

import contextlib
import os
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from toolyard.errors import StorageBusy, StorageIndexDamaged, StorageUnwritable
from toolyard.message import Message
from toolyard.protocol.search_words import list_words
from toolyard.storage.damage import needs_backup, needs_rebuild, to_storage_error
from toolyard.storage.sqlite_schema import apply_migrations, find_format, require_schema

STATE: Final = "state.db"
SIDE_FILES: Final = (f"{STATE}-wal", f"{STATE}-shm")
_BUSY_S = 5.0
_COUNTS = """
SELECT kind, COUNT(*) FROM records WHERE typeof(kind) = 'text' AND length(kind) <= 100
GROUP BY kind ORDER BY kind LIMIT 100
"""
USES: Final[Mapping[str, str]] = {
    "sqlite_autoindex_records_1": "records are found by their ids with it",
    "records_by_age": "lists are sorted with it",
    "records_by_state": "calls, tasks, schedules and approvals are found by their states with it",
    "records_by_tool": "records are found by their tools with it",
    "records_by_caller": "records are found by their callers with it",
    "records_by_change": "old records are found with it",
    "records_by_key": "retried calls and repeated requests are found with it",
    "records_by_code": "failed calls are found by the codes of their errors with it",
    "records_by_owner": "what a process left behind is found with it",
    "records_by_due": "schedules that are due are found with it",
    "words": "text is searched with it",
}
UNREADABLE: Final = (sqlite3.DatabaseError, UnicodeError)
_MOST = 100  # problems to ask for: more tell no more
_PAGE = 500
_INDEX = r"\bindex (\w+)"
_PAGE_NUMBER = r"(?i)\bpage (\d+)"
_SEARCH = r"FTS5 table (?:main\.)?words|vtable constructor failed: words"
_PARTIAL = {
    "records_by_key": "key <> ''",
    "records_by_code": "code <> ''",
    "records_by_owner": "owner <> ''",
    "records_by_due": "due IS NOT NULL",
}
_SEARCH_TABLES = ("words_data", "words_idx", "words_content", "words_docsize", "words_config")


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
            raise StorageBusy(Message("{file} is used by a running process: stop it first", file=file)) from error


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
                Message("the disk is full: there is no room for a copy of {file}", file=file)
            ) from error
        raise to_storage_error(file, error) from error


def _to_uri(file: Path) -> str:
    return file.absolute().as_uri()


def require_sound(db: sqlite3.Connection, file: Path, *, whole: bool = False) -> None:
    """Raise StorageIndexDamaged or StorageError when something in the file is damaged.

    ``whole`` also compares every index with its table, which takes about twice as long.
    """
    problems = _find_problems(db, whole=whole)
    if not problems:
        return
    first = " ".join(problems[0].split())
    require_rebuildable(db, file, first)
    parts = {*_find_names(problems), *_find_damaged(db, problems)}
    affected = "; ".join(f"{part}: {USES[part]}" for part in sorted(parts)) or Message("its records can be read")
    raise needs_rebuild(
        Message("{file} is damaged ({reason}; {affected})", file=file, reason=first, affected=affected), file
    )


def rebuild(old: sqlite3.Connection, new: sqlite3.Connection, file: Path) -> tuple[int, int, int]:
    """Copy records and events to an empty database, and make every index anew.

    Returns how many there are, and how many records stood there twice. Raises ``UNREADABLE`` for a record that cannot
    be read or is none.
    """
    new.execute("BEGIN")
    apply_migrations(new, 0, find_format(old, file))
    copied = _copy(old, new, "records")
    events = _copy(old, new, "events")
    (records,) = new.execute("SELECT count(*) FROM records").fetchone()
    _index_words(new)
    _keep_last_number(old, new)
    new.execute("COMMIT")
    return records, events, copied - records


def require_rebuildable(db: sqlite3.Connection, file: Path, reason: str) -> None:
    """Raise StorageError when a rebuild of the file would fail, and sqlite3.Error without the room to find out."""
    with contextlib.closing(sqlite3.connect("", isolation_level=None)) as trial:  # a file that nobody else sees
        try:
            db.execute("PRAGMA shrink_memory")  # integrity_check read its pages without the check of their cells
            rebuild(db, trial, file)
        except UNREADABLE as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
                raise
            damaged = Message("{file} is damaged ({reason})", file=file, reason=reason)
            raise needs_backup(damaged, file) from error


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


def _find_problems(db: sqlite3.Connection, *, whole: bool) -> list[str]:
    lines: list[str] = []
    try:
        for (text,) in db.execute(f"PRAGMA {'integrity' if whole else 'quick'}_check({_MOST})"):
            lines += [line for line in str(text).splitlines() if line != "ok" and not line.startswith("***")]
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_CORRUPT:
            raise
        lines.append(str(error))
    return lines


def _find_names(problems: Sequence[str]) -> Iterator[str]:
    for problem in problems:
        match = re.search(_INDEX, problem)
        name = match[1] if match else "words" if re.search(_SEARCH, problem) else ""
        if name in USES:
            yield name


def _find_damaged(db: sqlite3.Connection, problems: Sequence[str]) -> Iterator[str]:
    """Name the indexes that do not hold what the records hold; slow, for a file that is known to be damaged."""
    for name in USES:
        if name != "words" and _differs(db, name):
            yield name
    pages = {int(number) for problem in problems for number in re.findall(_PAGE_NUMBER, problem)}
    is_readable = all(_is_readable(db, f"SELECT * FROM {table}") for table in _SEARCH_TABLES)  # noqa: S608
    if not is_readable or _has_pages(db, _SEARCH_TABLES, pages):
        yield "words"


def _differs(db: sqlite3.Connection, index: str) -> bool:
    """Return whether an index holds other values than the table, whatever their order."""
    try:
        names = [name for _, _, name in db.execute(f"PRAGMA index_info({index})")]
        if not names:
            return False  # an older format has no such index
        columns, where = ", ".join([*names, "number"]), _PARTIAL.get(index, "1")
        sums = [
            sum(map(hash, db.execute(f"SELECT {columns} FROM records {how} WHERE {where}")))  # noqa: S608 names of ours
            for how in (f"INDEXED BY {index}", "NOT INDEXED")
        ]
    except (sqlite3.DatabaseError, UnicodeError):
        return True
    return sums[0] != sums[1]


def _has_pages(db: sqlite3.Connection, tables: Sequence[str], pages: set[int]) -> bool:
    """Return whether pages belong to one of some tables, if this SQLite can tell."""
    try:
        return any(page in pages for name, page in db.execute("SELECT name, pageno FROM dbstat") if name in tables)
    except sqlite3.DatabaseError:  # it has no such table, or the damage is in its way
        return False


def _is_readable(db: sqlite3.Connection, query: str) -> bool:
    try:
        rows = db.execute(query)
        while rows.fetchmany(_PAGE):
            pass
    except (sqlite3.DatabaseError, UnicodeError):
        return False
    return True
