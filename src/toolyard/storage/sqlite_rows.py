"""Records and events as rows of the embedded store: how they are written, found and read back.

A large body is stored compressed: a written file stands in the record of its call twice or thrice, with what was there
before. The words of a record are indexed when it is at rest. While somebody owns it, it changes soon, and is one of
few: then they are looked for in its text. Everything here runs inside a transaction of whoever calls it.
"""

import sqlite3
import zlib
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from toolyard.errors import StorageError
from toolyard.message import Message
from toolyard.protocol.json import JsonObject, json_bytes, json_value
from toolyard.protocol.search_words import list_prefixes, list_words, matches_words
from toolyard.protocol.store import Query, Record, read_object, read_text
from toolyard.storage.damage import damaged_record

COLUMNS = "id, state, version, created, updated, caller, tool, key, code, owner, project, due, text, body"
COMPRESSED_FROM: Final = 4096  # bytes; below it, little is gained
MAX_BODY: Final = 2**28  # bytes; no record has so many, but a file may come from anywhere
_COMPRESSED = b"\x78"
_FAST = 1  # a third of the size at 100 MB/s; the slowest level takes five times as long for a quarter
_INSERT = """INSERT INTO records
    (kind, id, state, version, created, updated, caller, tool, key, code, owner, project, due, text, body)
    VALUES (?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_UPDATE = "UPDATE records SET state = ?, version = ?, updated = ?, code = ?, owner = ?, text = ?, body = ?"
_UPDATE_ALL = f"{_UPDATE}, created = ?, caller = ?, tool = ?, key = ?, project = ?, due = ?"
_SAYS = """number IN (SELECT rowid FROM words WHERE words MATCH ? UNION ALL
    SELECT number FROM records INDEXED BY records_by_owner WHERE kind = ? AND owner <> '' AND says(text, ?))"""


class Change(NamedTuple):
    """A record ready to be written: what cannot be written fails with whoever wants it, not in the writer."""

    record: Record
    body: bytes
    words: str  # the words it is to be found by in the index

    @classmethod
    def from_record(cls, record: Record) -> "Change":
        return cls(record, json_bytes(record.body), "" if record.owner else " ".join(list_words(record.text)))


def commit(db: sqlite3.Connection, changes: Sequence[Change], events: Sequence[tuple[str, float, bytes]]) -> bool:
    """Write them all; False, and nothing is written, when a record is no longer at its version."""
    stored = [_find_stored(db, change.record) for change in changes]
    if any((row[0] if row else 0) != change.record.version for change, row in zip(changes, stored, strict=True)):
        return False
    for change, row in zip(changes, stored, strict=True):
        if row is None:
            _insert(db, change)
        else:
            _replace(db, change, row)
    db.executemany("INSERT INTO events (type, at, data) VALUES (?, ?, ?)", events)
    return True


def _find_stored(db: sqlite3.Connection, record: Record) -> tuple[Any, ...] | None:
    """Return the version and number of a record as it is stored, and what else decides how it is replaced."""
    sql = "SELECT version, number, created, caller, tool, key, project, due FROM records WHERE kind = ? AND id = ?"
    row: tuple[Any, ...] | None = db.execute(sql, (record.kind, record.id)).fetchone()
    return row


def _insert(db: sqlite3.Connection, change: Change) -> None:
    it = change.record
    values = (it.kind, it.id, it.state, it.created, it.updated, it.caller, it.tool, it.key, it.code, it.owner)
    done = db.execute(_INSERT, (*values, it.project, it.due, it.text, compress_body(change.body)))
    if change.words:
        db.execute("INSERT INTO words (rowid, said) VALUES (?, ?)", (done.lastrowid, change.words))


def _replace(db: sqlite3.Connection, change: Change, stored: tuple[Any, ...]) -> None:
    """Replace a record. A named column is written to its indexes even if it stays as it was: few change."""
    it = change.record
    _, number, *before = stored
    after = [it.created, it.caller, it.tool, it.key, it.project, it.due]
    values = (it.state, it.version + 1, it.updated, it.code, it.owner, it.text, compress_body(change.body))
    if before == after:
        db.execute(f"{_UPDATE} WHERE number = ?", (*values, number))
    else:
        db.execute(f"{_UPDATE_ALL} WHERE number = ?", (*values, *after, number))
    _index_words(db, number, change.words)


def _index_words(db: sqlite3.Connection, number: int, words: str) -> None:
    stored = db.execute("SELECT said FROM words WHERE rowid = ?", (number,)).fetchone()
    if (stored[0] if stored else "") == words:
        return
    if stored:
        db.execute("DELETE FROM words WHERE rowid = ?", (number,))
    if words:
        db.execute("INSERT INTO words (rowid, said) VALUES (?, ?)", (number, words))


def remove(db: sqlite3.Connection, doomed: str, values: Sequence[Any]) -> int:
    """Remove the records whose numbers the query ``doomed`` gives; how many it were."""
    numbers = db.execute(doomed, values).fetchall()
    db.executemany("DELETE FROM words WHERE rowid = ?", numbers)
    db.executemany("DELETE FROM records WHERE number = ?", numbers)
    return len(numbers)


def build_condition(kind: str, query: Query) -> tuple[str, list[Any]]:
    """Build the SQL condition of a query; return it with its values."""
    conditions: list[str] = ["kind = ?"]
    values: list[Any] = [kind]
    exact = {"caller": query.caller, "tool": query.tool, "key": query.key, "owner": query.owner}
    bounds = {"due <=": query.due_until, "created >=": query.since, "created <": query.before}
    given: list[tuple[str, Any]] = [(f"{name} = ?", value) for name, value in exact.items() if value is not None]
    given += [(f"{name} ?", value) for name, value in bounds.items() if value is not None]
    if query.states:
        conditions.append(f"state IN ({','.join('?' * len(query.states))})")
        values += list(query.states)
    if query.codes:
        conditions.append(f"code <> '' AND code IN ({','.join('?' * len(query.codes))})")  # as its partial index has it
        values += list(query.codes)
    if query.project is not None:
        conditions.append("project IN (?, '')")
        values.append(query.project)
    conditions += [text for text, _ in given]
    values += [value for _, value in given]
    if prefixes := list_prefixes(query.text):
        conditions.append(_SAYS)
        values += [" ".join(f'"{word}"*' for word in prefixes), kind, " ".join(prefixes)]
    return " AND ".join(conditions), values


def add_search_function(db: sqlite3.Connection) -> None:
    """Add the SQL function that searches need to a connection."""
    db.create_function("says", 2, lambda text, prefixes: matches_words(text, prefixes.split()), deterministic=True)


def add_code_function(db: sqlite3.Connection) -> None:
    """Add the SQL function by which a migration reads the code of a call's error from its body."""
    db.create_function("find_code", 2, _find_code, deterministic=True)


def _find_code(body: bytes | str, id_: str) -> str:
    try:
        content = json_value(expand_body(body, f"call {id_}"))
    except (StorageError, ValueError):
        return ""  # whoever reads the call is told
    error = read_object(content, "error")
    return read_text(content, "reason") or read_text(error, "code") if error else ""


def compress_body(body: bytes) -> bytes:
    """Return a body as it is stored. JSON never begins as a compressed one does."""
    return zlib.compress(body, _FAST) if len(body) >= COMPRESSED_FROM else body


def expand_body(stored: bytes | str, name: str) -> bytes | str:
    """Return the JSON of a stored body; ``name`` says whose it is. Raises StorageError when it is damaged."""
    if isinstance(stored, str) or not stored.startswith(_COMPRESSED):
        return stored
    expander = zlib.decompressobj()
    try:
        body = expander.decompress(stored, MAX_BODY)
    except zlib.error as error:
        raise damaged_record(Message("the record {name} is damaged ({error})", name=name, error=error)) from error
    if not expander.eof:
        raise damaged_record(Message("the record {name} is damaged (its end is missing)", name=name))
    return body


def record_from_row(kind: str, row: Sequence[Any]) -> Record:
    """Build a record from its ``COLUMNS``."""
    *fields, text, body = row
    id_, state, version, created, updated, caller, tool, key, code, owner, project, due = fields
    parsed: JsonObject = json_value(expand_body(body, f"{kind} {id_}"))
    return Record(
        kind=kind, id=id_, state=state, version=version, created=created, updated=updated, caller=caller, tool=tool,
        key=key, code=code, owner=owner, project=project, due=due, text=text, body=parsed,
    )  # fmt: skip
