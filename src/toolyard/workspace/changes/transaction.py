"""Several files at once, or none; and no draft left behind by a crash.

Before anything is written a record in the home folder names the drafts. Then the drafts are written and synced. With
more than one file the record then becomes the promise: once it is on disk as ``commit``, the change will happen, if not
now then when the project is next opened. Then the drafts take their places and the record goes.

Recovery reads the records of processes that are no more. Drafts without a promise are removed. A promise is kept: each
file that still is as it was gets its new content; one that somebody changed in the meantime is left alone.

A record is a file that its process holds locked: who can take the lock knows that the process is no more. To make and
remove a file takes longer than to write in one, so a record that is done with is emptied and kept for the next
transaction, a few of them at most. One that held a promise is removed: the promise must not come back.
"""

import fcntl
import hashlib
import json
import logging
import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from toolyard.crashpoint import crashpoint
from toolyard.message import Message
from toolyard.protocol.envelope import ErrorCode, Failure
from toolyard.workspace.changes.file_draft import (
    FileDraft,
    already_exists_failure,
    changed_meanwhile_failure,
    has_content,
    read_or_none,
    write_draft,
)
from toolyard.workspace.home_folder import make_private_folder

_log = logging.getLogger(__name__)
_DRAFT = re.compile(r"\.toolyard-[0-9a-f]{32}-[0-9]+")
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_SPARE = 4  # empty records that are kept


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


class TransactionRecord:
    """The open record of a transaction, or an empty one that waits for the next.

    ``is_binding`` holds from the promise until the promise is kept or withdrawn.
    """

    def __init__(self, file: str, fd: int) -> None:
        self._file, self._fd = file, fd
        self._promised = self.is_binding = False

    def prepare(self, content: dict[str, Any]) -> None:
        crashpoint("transaction.before-record")
        os.pwrite(self._fd, json.dumps(content).encode(), 0)
        crashpoint("transaction.recorded")

    def promise(self, writes: list[dict[str, Any]]) -> None:
        self._promised = True
        line = b"\n" + json.dumps({"state": "commit", "writes": writes}).encode() + b"\n"
        os.pwrite(self._fd, line, os.fstat(self._fd).st_size)  # a line without its end is no promise
        os.fsync(self._fd)
        self.is_binding = True

    def end_promise(self) -> None:
        """End the promise: it was kept, or everything was restored."""
        self.is_binding = False

    def is_on_disk(self) -> bool:
        """Return whether the file has not been removed."""
        return os.fstat(self._fd).st_nlink > 0

    def try_to_clear(self) -> bool:
        """Empty it for the next transaction; False when it had better go."""
        if self._promised:
            return False
        try:
            os.ftruncate(self._fd, 0)
        except OSError:
            return False
        return True

    def remove(self) -> None:
        try:
            with suppress(FileNotFoundError):
                os.unlink(self._file)
        finally:
            self.close()

    def close(self) -> None:
        os.close(self._fd)


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


def records_folder(folder: Path, root: Path) -> Path:
    """Return the folder below ``folder`` for the records of the project at ``root``."""
    return folder / hashlib.sha256(os.fsencode(root)).hexdigest()[:16]


def list_record_files(folder: Path) -> list[Path]:
    """List the records of any process."""
    return sorted(folder.glob("*.json")) if folder.exists() else []


class TransactionRecords:
    """The transaction records of one project, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._guard = threading.Lock()
        self._spare: list[TransactionRecord] = []
        self._closed = False

    def close(self) -> None:
        """Remove the empty records; one that is in use is removed after it."""
        with self._guard:
            self._closed = True
            while self._spare:
                self._spare.pop().remove()

    @contextmanager
    def open_record(self, content: dict[str, Any]) -> "Iterator[TransactionRecord]":
        """A record that says ``content`` while the transaction is under way."""
        record = self._take_empty()
        try:
            record.prepare(content)
            yield record
        finally:
            self._return_record(record)

    def _take_empty(self) -> "TransactionRecord":
        with self._guard:
            while self._spare:
                spare = self._spare.pop()
                if spare.is_on_disk():
                    return spare
                spare.close()
        try:
            return self._create_record()
        except OSError as error:
            raise Failure(
                ErrorCode.EXECUTION_ERROR,
                Message(
                    "Toolyard's home cannot be written: {folder}: {strerror}. Nothing was changed.",
                    folder=self.folder,
                    strerror=error.strerror,
                ),
                hint=Message("Make it writable, or name another with --home."),
            ) from error

    def _create_record(self) -> "TransactionRecord":
        """A record gets its name once it is locked: nobody finds one that looks as if its process were dead."""
        own = f"{self.folder}/{uuid4().hex}"
        file, draft = f"{own}.json", f"{own}.new"
        fd = self._open_new(draft)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)  # held while we live: who can take it knows that we do not
            os.rename(draft, file)
        except BaseException:
            os.close(fd)
            raise
        return TransactionRecord(file, fd)

    def _return_record(self, record: "TransactionRecord") -> None:
        if record.is_binding:
            record.close()  # the next start keeps the promise
            return
        with self._guard:
            if not self._closed and len(self._spare) < _SPARE and record.try_to_clear():
                self._spare.append(record)
            else:
                record.remove()

    def _open_new(self, file: str) -> int:
        try:
            return os.open(file, _NEW, 0o600)
        except FileNotFoundError:  # the first record
            make_private_folder(self.folder)
            return os.open(file, _NEW, 0o600)


@contextmanager
def open_dead_record(file: Path) -> Iterator[dict[str, Any] | None]:
    """The record of a process that is no more; None when it lives, or has just finished."""
    try:
        fd = os.open(file, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        yield None
        return
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
            return
        if not os.fstat(fd).st_nlink:  # it was removed before the lock was free: what it says is done, or withdrawn
            yield None
            return
        lines = os.pread(fd, os.fstat(fd).st_size, 0).split(b"\n")
        yield _parse_line(lines[1]) if len(lines) > 2 else _parse_line(lines[0])
    finally:
        os.close(fd)


def _parse_line(line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError:
        return {}  # cut off at once: nothing was written yet
    return record if isinstance(record, dict) else {}
