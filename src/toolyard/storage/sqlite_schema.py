"""The tables of the embedded store, format by format, and the check that a file has exactly those.

To change the tables of a store, append a migration to its tuple: never change one that was released. The format of a
store is how many of them it has been through. Whoever opens a file, looks at it or takes it from a backup asks
``require_schema`` first, so that all of them name the same trouble in the same words.
"""

import contextlib
import functools
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from toolyard.errors import StorageError
from toolyard.message import Message
from toolyard.own_command import OwnCommand
from toolyard.storage.damage import needs_backup, needs_rebuild
from toolyard.storage.sqlite_rows import add_code_function


class Migration(NamedTuple):
    """A step from one format of a store to the next. The first makes the tables of format 1."""

    summary: str  # what is different afterwards
    sql: str  # statements, each ended by ";"; none when only the meaning of what is stored changes

    def statements(self) -> list[str]:
        return [statement for part in self.sql.split(";") if (statement := part.strip())]


MIGRATIONS: tuple[Migration, ...] = (
    Migration(
        "the tables of records and events",
        """
CREATE TABLE records (
    number INTEGER PRIMARY KEY,
    kind TEXT NOT NULL, id TEXT NOT NULL, state TEXT NOT NULL, version INTEGER NOT NULL,
    created REAL NOT NULL, updated REAL NOT NULL,
    caller TEXT NOT NULL, tool TEXT NOT NULL, key TEXT NOT NULL, owner TEXT NOT NULL, due REAL,
    text TEXT NOT NULL, body TEXT NOT NULL,
    UNIQUE (kind, id)
);
CREATE INDEX records_by_age ON records (kind, created, id);
CREATE INDEX records_by_state ON records (kind, state, created, id);
CREATE INDEX records_by_tool ON records (kind, tool, created, id);
CREATE INDEX records_by_caller ON records (kind, caller, created, id);
CREATE INDEX records_by_change ON records (kind, updated);
CREATE INDEX records_by_key ON records (kind, key, created) WHERE key <> '';
CREATE INDEX records_by_owner ON records (kind, owner, state) WHERE owner <> '';
CREATE INDEX records_by_due ON records (kind, due, id) WHERE due IS NOT NULL;
CREATE TABLE events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, type TEXT NOT NULL, at REAL NOT NULL, data TEXT NOT NULL
);
CREATE VIRTUAL TABLE words USING fts5 (said, tokenize = "unicode61 remove_diacritics 0");
""",
    ),
    Migration("large bodies of records may be compressed", ""),
    Migration("the secrets in records may be encrypted", ""),
    Migration("conversations may be pinned, and their text has records of its own", ""),
    Migration(
        "calls are found by the codes of their errors",
        """
ALTER TABLE records ADD COLUMN code TEXT NOT NULL DEFAULT '';
CREATE INDEX records_by_code ON records (kind, code, created, id) WHERE code <> '';
UPDATE records SET code = find_code(body, id) WHERE kind = 'call' AND state NOT IN ('running', 'success');
""",
    ),
    Migration(  # without an index: the command line alone asks for it, and the newest records come first
        "calls and tasks say which project they belong to",
        """
ALTER TABLE records ADD COLUMN project TEXT NOT NULL DEFAULT '';
UPDATE records SET project = substr(caller, 5) WHERE kind IN ('call', 'task') AND caller LIKE 'cli:/%';
""",
    ),
)
_TABLES = ("records", "events")
_MAX_NAME = 100
_STATISTICS = frozenset(  # an owner may have let SQLite make them
    {
        ("table", "sqlite_stat1", "sqlite_stat1", "CREATE TABLE sqlite_stat1(tbl,idx,stat)"),
        ("table", "sqlite_stat4", "sqlite_stat4", "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)"),
    }
)
Schema = frozenset[tuple[str, ...]]
"""The type, name, table and SQL of everything that a file declares."""


def latest_format() -> int:
    return len(MIGRATIONS)


def apply_migrations(db: sqlite3.Connection, from_format: int, to_format: int) -> None:
    """Bring the tables from one format to another, inside of the caller's transaction; 0: from an empty file."""
    add_code_function(db)
    for migration in MIGRATIONS[from_format:to_format]:
        for statement in migration.statements():
            db.execute(statement)
    db.execute(f"PRAGMA user_version = {to_format}")


def find_format(db: sqlite3.Connection, file: Path) -> int:
    """Return the format whose records and events a file has, whatever else is in it. Raises StorageError."""
    (version,) = db.execute("PRAGMA user_version").fetchone()
    tables = _tables_of(read_schema(db))
    known = [
        number for number in range(1, latest_format() + 1) if _tables_of(_schema_of(MIGRATIONS[:number])) == tables
    ]
    if not known:
        raise _foreign(file, Message("it has no records and events of a known format"))
    return int(version) if version in known else known[0]


def _tables_of(schema: Schema) -> Schema:
    return frozenset(one for one in schema if one[0] == "table" and one[1] in _TABLES)


def require_schema(db: sqlite3.Connection, file: Path) -> int:
    """Return the format of a file that has the tables and indexes of its format and nothing else; 0 when it is empty.

    Raises StorageIndexDamaged when all it lacks is indexes, and StorageError otherwise.
    """
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version > latest_format():
        raise StorageError(
            Message(
                "{file} was written by a newer Toolyard (format {version}, this one knows {latest_format}): use that "
                "version, or restore a backup with '{command}'",
                file=file,
                version=version,
                latest_format=latest_format(),
                command=OwnCommand(file.parent).format("restore BACKUP --force"),
            )
        )
    declared = read_schema(db) - _STATISTICS
    if version <= 0 and (declared or version < 0):
        raise _foreign(file, Message("it has tables, but its format number is {version}", version=version))
    _require_same(declared, _schema_of(MIGRATIONS[:version]), file)
    return int(version)


def read_schema(db: sqlite3.Connection) -> Schema:
    """Return everything that a file declares, as it was written, whatever the blanks in it."""
    declared = db.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE sql IS NOT NULL")
    return frozenset(
        (str(kind), str(name), str(table), " ".join(str(sql).split())) for kind, name, table, sql in declared
    )


def _require_same(declared: Schema, expected: Schema, file: Path) -> None:
    foreign, missing = sorted(declared - expected), sorted(expected - declared)
    missing_names = {name for _, name, _, _ in missing}
    if foreign:
        kind, name, *_ = foreign[0]
        what = f"{kind[:_MAX_NAME]} {name[:_MAX_NAME]!r}"
        raise _foreign(
            file,
            Message("its {what} is not as Toolyard makes it", what=what)
            if name in missing_names
            else Message("Toolyard has no {what}", what=what),
        )
    tables = [name for kind, name, *_ in missing if kind != "index"]
    if tables:
        raise _foreign(file, Message("its table {name!r} is missing", name=tables[0]))
    if missing:
        names = ", ".join(sorted(missing_names))
        raise needs_rebuild(Message("{file} is damaged (missing index: {names})", file=file, names=names), file)


def _foreign(file: Path, reason: str) -> StorageError:
    return needs_backup(Message("{file} is no state of Toolyard: {reason}", file=file, reason=reason), file)


@functools.cache
def _schema_of(migrations: Sequence[Migration]) -> Schema:
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        add_code_function(db)
        for migration in migrations:
            db.executescript(migration.sql)
        return read_schema(db)
