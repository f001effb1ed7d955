"""Repairing a state file: a new one is built from its records and events, with every index made anew.

Nothing of the damaged file is lost: it stays in a folder of the home, and the new file takes its place by one rename,
after it was checked as a whole. A file whose records cannot be read is left as it is. Records whose secrets were
encrypted with a key that is gone are found here too, and given up. Only the owner of a home may do either, and nobody
else may have the file open.
"""

import contextlib
import os
import shutil
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from toolyard.crashpoint import crashpoint
from toolyard.message import Message
from toolyard.protocol.store import SECRET_MEMBERS, Record
from toolyard.storage.damage import needs_backup, to_storage_error
from toolyard.storage.secret_key import KEY_FILE, KeyFile, RecordCipher
from toolyard.storage.sqlite_rows import COLUMNS, record_from_row
from toolyard.storage.state_file import SIDE_FILES, UNREADABLE, be_careful, check, fold_in, rebuild
from toolyard.workspace.home_folder import sync_to_disk

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
            raise needs_backup(Message("{file} cannot be opened", file=file), file)
        draft.unlink(missing_ok=True)
        records, events, duplicates = _rebuild_file(file, draft)
        check(draft, whole=True)
        sync_to_disk(draft)
        _put_in_place(file, draft, aside)
    except UNREADABLE as error:
        reason = " ".join(str(error).split())
        problem = Message(
            "{file} cannot be rebuilt and is as it was: some of its records cannot be read ({reason})",
            file=file,
            reason=reason,
        )
        raise needs_backup(problem, file) from error
    except (sqlite3.Error, OSError) as error:
        raise to_storage_error(file, error) from error
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
    return Repaired(records=records, events=events, duplicates=duplicates, aside=aside / file.name)


def _rebuild_file(file: Path, draft: Path) -> tuple[int, int, int]:
    with (
        contextlib.closing(sqlite3.connect(file, isolation_level=None)) as old,
        contextlib.closing(sqlite3.connect(draft, isolation_level=None)) as new,
    ):
        draft.chmod(0o600)
        be_careful(old)
        return rebuild(old, new, file)


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
