"""The tables of the embedded store, and how they come into a file."""

import sqlite3

from toolyard.crashpoint import crashpoint

VERSION = 1

SCHEMA = """
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
"""


def migrate(db: sqlite3.Connection) -> None:
    """Bring a file to this version, unless another process was faster."""
    db.execute("BEGIN IMMEDIATE")
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version < VERSION:
        for statement in SCHEMA.split(";"):
            db.execute(statement)
        db.execute(f"PRAGMA user_version = {VERSION}")
        crashpoint("store.before-migrated")
    db.execute("COMMIT")
