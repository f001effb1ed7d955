"""Records of a state file whose secrets were encrypted with a key that is gone: found, and given up.

Only the owner of a home may give them up, and nobody else may have the file open.
"""

import contextlib
import sqlite3
from pathlib import Path

from toolyard.protocol.secret_members import SECRET_MEMBERS
from toolyard.protocol.store import Record
from toolyard.storage.record_cipher import RecordCipher
from toolyard.storage.secret_key import KEY_FILE, KeyFile
from toolyard.storage.sqlite_error import to_storage_error
from toolyard.storage.sqlite_rows import COLUMNS, record_from_row
from toolyard.storage.state_file import check

_PAGE = 500


def find_lost_secrets(file: Path) -> list[Record]:
    """Return the records whose key is missing or another one. Raises StorageError when the file is damaged."""
    return [record for _, record in _find(file)]


def forget_lost_secrets(file: Path) -> int:
    """Delete those records; return how many there were."""
    lost = [(number,) for number, _ in _find(file)]
    if lost:
        try:
            with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as db:
                db.execute("BEGIN IMMEDIATE")
                db.executemany("DELETE FROM words WHERE rowid = ?", lost)
                db.executemany("DELETE FROM records WHERE number = ?", lost)
                db.execute("COMMIT")
        except sqlite3.Error as error:
            raise to_storage_error(file, error) from error
    return len(lost)


def _find(file: Path) -> list[tuple[int, Record]]:
    if not file.exists():
        return []
    check(file)
    cipher = RecordCipher(KeyFile(file.with_name(KEY_FILE)))
    sql = f"SELECT number, {COLUMNS} FROM records WHERE kind = ?"  # noqa: S608 no value is in it
    lost: list[tuple[int, Record]] = []
    try:
        with contextlib.closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as db:
            for kind in SECRET_MEMBERS:
                rows = db.execute(sql, (kind,))
                while page := rows.fetchmany(_PAGE):
                    records = ((number, record_from_row(kind, row)) for number, *row in page)
                    lost += [(number, record) for number, record in records if not cipher.can_read(record)]
    except sqlite3.Error as error:
        raise to_storage_error(file, error) from error
    return lost
