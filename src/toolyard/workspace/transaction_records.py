"""The records of transactions: what to clear up, or to carry out, should this process die.

A record is a file that its process holds locked: who can take the lock knows that the process is no more. To make and
remove a file takes longer than to write in one, so a record that is done with is emptied and kept for the next
transaction, a few of them at most. One that held a promise is removed: the promise must not come back.
"""

import fcntl
import hashlib
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from toolyard.crashpoint import crashpoint
from toolyard.message import Message
from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure
from toolyard.workspace.home_folder import make_private_folder

_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_SPARE = 4  # empty records that are kept


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
                    "home.not_writable",
                    "Toolyard's home cannot be written: {folder}: {strerror}. Nothing was changed.",
                    folder=self.folder,
                    strerror=error.strerror,
                ),
                hint=Message("hint.make_writable", "Make it writable, or name another with --home."),
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
