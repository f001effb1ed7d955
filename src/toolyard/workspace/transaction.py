"""Several files at once, or none; and no draft left behind by a crash.

Before anything is written a record in the home folder names the drafts. Then the drafts are written and synced. With
more than one file the record then becomes the promise: once it is on disk as ``commit``, the change will happen, if not
now then when the project is next opened. Then the drafts take their places and the record goes.

Recovery reads the records of processes that are no more. Drafts without a promise are removed. A promise is kept: each
file that still is as it was gets its new content; one that somebody changed in the meantime is left alone.
"""

import hashlib
import logging
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from toolyard.crashpoint import crashpoint
from toolyard.protocol.failure import Failure
from toolyard.workspace.file_draft import (
    FileDraft,
    already_exists_failure,
    changed_meanwhile_failure,
    has_content,
    read_or_none,
    write_draft,
)
from toolyard.workspace.transaction_records import (
    TransactionRecord,
    TransactionRecords,
    list_record_files,
    open_dead_record,
    records_folder,
)

_log = logging.getLogger(__name__)
_DRAFT = re.compile(r"\.toolyard-[0-9a-f]{32}-[0-9]+")


@dataclass(frozen=True, slots=True)
class Write:
    """``content`` for the file ``name`` in the open ``folder``; None removes it."""

    folder: int
    name: bytes
    path: str  # real path relative to the root
    expected: bytes | None  # what stands there now
    content: bytes | None
    mode: int | None = None  # of a new file; None: as the system makes them
    like: tuple[int, bytes] | None = None  # a folder and a file in it: what a new file has its mode and all else from


class Transactions:
    """The records of one project, in a folder of their own."""

    def __init__(self, folder: Path, root: Path) -> None:
        self._records = TransactionRecords(records_folder(folder, root))

    def close(self) -> None:
        """Leave nothing behind; a transaction that is still under way clears up after itself."""
        self._records.close()

    def commit(self, writes: Sequence[Write]) -> list[str | None]:
        """Make all writes happen, or none; raises Failure or OSError when none did.

        Returns the hash of each new content; None for a file that was removed.
        """
        own = uuid4().hex
        drafts = [f".toolyard-{own}-{number}".encode() for number in range(len(writes))]
        with self._records.open_record({"state": "prepare", "drafts": _list_drafts(writes, drafts)}) as record:
            waiting: list[FileDraft] = []
            try:
                for write, draft in zip(writes, drafts, strict=True):
                    waiting.append(_prepare(write, draft))
                if len(writes) == 1:
                    _put_in_place(writes[0], waiting[0], compare=True)
                    _discard_backup(writes[0], waiting[0])
                    return [waiting[0].hash]
                for write in writes:
                    _require_unchanged(write)
                record.promise([_build_promise(w, d) for w, d in zip(writes, drafts, strict=True)])
                crashpoint("transaction.promised")
                _put_all_in_place(writes, waiting, record)
                return [draft.hash for draft in waiting]
            except BaseException:
                if not record.is_binding:  # else the next start does it
                    for left in waiting:
                        left.discard()
                raise

    def recover(self, open_folder: Callable[[str], int]) -> None:
        """Clear up after processes that died: ``open_folder`` opens a folder of the project by its real path.

        A record that cannot be followed is set aside and reported: it must not keep the project from being used.
        """
        for file in list_record_files(self._records.folder):
            with open_dead_record(file) as record:
                if record is None:
                    continue
                try:
                    _recover(record, open_folder)
                    crashpoint("transaction.recovered")
                    file.unlink(missing_ok=True)
                except (OSError, Failure, KeyError, TypeError, ValueError, AttributeError) as error:
                    _log.warning("an interrupted write could not be cleared up, see %s.bad: %s", file, error)
                    file.rename(f"{file}.bad")


def _prepare(write: Write, draft: bytes) -> FileDraft:
    """Everything that can fail for want of rights or room fails here, before anything is promised."""
    if write.content is not None:
        place = write.folder, write.name, draft
        return write_draft(*place, write.content, write.expected, write.path, mode=write.mode, like=write.like)
    # A second name for the file that goes: it shows that the folder can be written, and brings the file back.
    os.link(write.name, draft, src_dir_fd=write.folder, dst_dir_fd=write.folder, follow_symlinks=False)
    return FileDraft(write.folder, write.name, draft, write.expected, write.path, None)


def _require_unchanged(write: Write) -> None:
    if not has_content(write.folder, write.name, write.expected):
        raise already_exists_failure(write.path) if write.expected is None else changed_meanwhile_failure(write.path)


def _put_in_place(write: Write, draft: FileDraft, *, compare: bool) -> None:
    if write.content is not None:
        draft.put_in_place(compare=compare)
        return
    if compare:
        _require_unchanged(write)
    os.unlink(write.name, dir_fd=write.folder)
    os.fsync(write.folder)


def _discard_backup(write: Write, draft: FileDraft) -> None:
    """Give up what would have brought a removed file back; all is done, so this must not fail any more."""
    if write.content is None:
        with suppress(OSError):
            draft.discard()
            os.fsync(write.folder)


def _put_all_in_place(writes: Sequence[Write], waiting: Sequence[FileDraft], record: TransactionRecord) -> None:
    """Put everything in place; what is done is undone again when something stands in the way."""
    begun: list[tuple[Write, FileDraft]] = []
    try:
        for write, draft in zip(writes, waiting, strict=True):
            begun.append((write, draft))
            _put_in_place(write, draft, compare=False)
        crashpoint("transaction.finished")
    except BaseException:
        for write, draft in reversed(begun):
            if has_content(write.folder, write.name, write.content):  # the last one may not have come so far
                _undo_write(write, draft)
        record.end_promise()
        raise
    for write, draft in begun:
        _discard_backup(write, draft)
    record.end_promise()


def _undo_write(write: Write, draft: FileDraft) -> None:
    if write.expected is None:
        os.unlink(write.name, dir_fd=write.folder)
        return
    if write.content is None:
        os.link(draft.draft, write.name, src_dir_fd=write.folder, dst_dir_fd=write.folder, follow_symlinks=False)
        return
    new = f".toolyard-{uuid4().hex}-0".encode()
    write_draft(write.folder, write.name, new, write.expected, write.content, write.path).put_in_place(compare=False)


def _list_drafts(writes: Sequence[Write], drafts: Sequence[bytes]) -> list[list[str]]:
    return [[_parent_path(write.path), draft.decode()] for write, draft in zip(writes, drafts, strict=True)]


def _build_promise(write: Write, draft: bytes) -> dict[str, Any]:
    return {
        "folder": _parent_path(write.path),
        "name": os.fsdecode(write.name),
        "draft": draft.decode(),
        "removes": write.content is None,
        "old": None if write.expected is None else hashlib.sha256(write.expected).hexdigest(),
    }


def _parent_path(path: str) -> str:
    return path.rpartition("/")[0] or "."


def _recover(record: dict[str, Any], open_folder: Callable[[str], int]) -> None:
    for place, draft in record.get("drafts", []):
        with _open_place(place, open_folder) as folder:
            if folder is not None:
                _remove(_require_draft_name(draft), folder)
    for promise in record.get("writes", []):
        with _open_place(promise["folder"], open_folder) as folder:
            if folder is not None:
                _fulfil_promise(promise, folder)


def _fulfil_promise(promise: dict[str, Any], folder: int) -> None:
    name, draft = os.fsencode(_require_file_name(promise["name"])), _require_draft_name(promise["draft"])
    now = read_or_none(folder, name)
    unchanged = (None if now is None else hashlib.sha256(now).hexdigest()) == promise["old"]
    if unchanged and promise["removes"]:
        _remove(promise["name"], folder)
    elif unchanged:
        with suppress(FileNotFoundError):  # then it took its place before the crash
            os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
    _remove(draft, folder)
    os.fsync(folder)


def _remove(name: str, folder: int) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)


def _require_draft_name(draft: str) -> str:
    """A draft's name: a record is only a file, and must not lead anywhere else."""
    if not _DRAFT.fullmatch(draft):
        raise ValueError(f"'{draft}' is no draft of ours")
    return draft


def _require_file_name(name: str) -> str:
    if "/" in name or name in ("", ".", ".."):
        raise ValueError(f"'{name}' is no name of a file")
    return name


@contextmanager
def _open_place(place: str, open_folder: Callable[[str], int]) -> Iterator[int | None]:
    try:
        folder = open_folder(place)
    except (OSError, Failure):
        yield None  # the folder is gone, and the drafts with it
        return
    try:
        yield folder
    finally:
        os.close(folder)
