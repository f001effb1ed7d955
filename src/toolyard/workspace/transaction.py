"""Several files at once, or none; and no draft left behind by a crash.

Before anything is written a record in the home folder names the drafts. Then the drafts are written and synced. With
more than one file the record then becomes the promise: once it is on disk as ``commit``, the change will happen, if not
now then when the project is next opened. Then the drafts take their places and the record goes.

Recovery reads the records of processes that are no more. Drafts without a promise are removed. A promise is kept: each
file that still is as it was gets its new content; one that somebody changed in the meantime is left alone.
"""

import fcntl
import hashlib
import json
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
from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure
from toolyard.workspace.replace import Draft, already_exists, changed_meanwhile, holds, read_or_none, write_draft

_log = logging.getLogger(__name__)
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
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


class Transactions:
    """The records of one project, in a folder of their own."""

    def __init__(self, folder: Path, root: Path) -> None:
        self._folder = folder / hashlib.sha256(os.fsencode(root)).hexdigest()[:16]

    def commit(self, writes: Sequence[Write]) -> None:
        """Make all writes happen, or none; raises Failure or OSError when none did."""
        own = uuid4().hex
        drafts = [f".toolyard-{own}-{number}".encode() for number in range(len(writes))]
        with self._record(own, {"state": "prepare", "drafts": _places(writes, drafts)}) as record:
            waiting: list[Draft] = []
            try:
                for write, draft in zip(writes, drafts, strict=True):
                    waiting.append(_prepare(write, draft))
                if len(writes) == 1:
                    _put_in_place(writes[0], waiting[0], compare=True)
                    return
                for write in writes:
                    _require_unchanged(write)
                record.promise([_promise(w, d) for w, d in zip(writes, drafts, strict=True)])
                crashpoint("transaction.promised")
                _finish(writes, waiting, record)
            except BaseException:
                if not record.binding:  # else the next start does it
                    for left in waiting:
                        left.discard()
                raise

    def recover(self, open_folder: Callable[[str], int]) -> None:
        """Clear up after processes that died: ``open_folder`` opens a folder of the project by its real path.

        A record that cannot be followed is set aside and reported: it must not keep the project from being used.
        """
        if not self._folder.exists():
            return
        for file in sorted(self._folder.glob("*.json")):
            with _dead(file) as record:
                if record is None:
                    continue
                try:
                    _recover(record, open_folder)
                    crashpoint("transaction.recovered")
                    file.unlink(missing_ok=True)
                except (OSError, Failure, KeyError, TypeError, ValueError, AttributeError) as error:
                    _log.warning("an interrupted write could not be cleared up, see %s.bad: %s", file, error)
                    file.rename(f"{file}.bad")

    @contextmanager
    def _record(self, own: str, content: dict[str, Any]) -> "Iterator[_Record]":
        file, draft = f"{self._folder}/{own}.json", f"{self._folder}/{own}.new"
        try:
            fd = self._open_new(draft)
        except OSError as error:
            raise Failure(
                ErrorCode.EXECUTION_ERROR,
                f"Toolyard's home cannot be written: {self._folder}: {error.strerror}. Nothing was changed.",
                hint="Make it writable, or name another with --home.",
            ) from error
        record = _Record(fd)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)  # held while we live: who can take it knows that we do not
            os.write(fd, json.dumps(content).encode())
            crashpoint("transaction.before-record")
            os.rename(draft, file)
            crashpoint("transaction.recorded")
            try:
                yield record
            finally:
                if not record.binding:
                    with suppress(FileNotFoundError):
                        os.unlink(file)
        finally:
            os.close(fd)

    def _open_new(self, file: str) -> int:
        try:
            return os.open(file, _NEW, 0o600)
        except FileNotFoundError:  # the first record
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            return os.open(file, _NEW, 0o600)


class _Record:
    """The open record of a transaction. It is ``binding`` from the promise until the promise is kept or withdrawn."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.binding = False

    def promise(self, writes: list[dict[str, Any]]) -> None:
        line = b"\n" + json.dumps({"state": "commit", "writes": writes}).encode() + b"\n"
        os.pwrite(self._fd, line, os.fstat(self._fd).st_size)  # a line without its end is no promise
        os.fsync(self._fd)
        self.binding = True

    def over(self) -> None:
        """The promise is kept, or everything is as it was."""
        self.binding = False


def _prepare(write: Write, draft: bytes) -> Draft:
    """Everything that can fail for want of rights or room fails here, before anything is promised."""
    if write.content is not None:
        return write_draft(write.folder, write.name, draft, write.content, write.expected, write.path, mode=write.mode)
    # A second name for the file that goes: it shows that the folder can be written, and brings the file back.
    os.link(write.name, draft, src_dir_fd=write.folder, dst_dir_fd=write.folder, follow_symlinks=False)
    return Draft(write.folder, write.name, draft, write.expected, write.path)


def _require_unchanged(write: Write) -> None:
    if not holds(write.folder, write.name, write.expected):
        raise already_exists(write.path) if write.expected is None else changed_meanwhile(write.path)


def _put_in_place(write: Write, draft: Draft, *, compare: bool) -> None:
    if write.content is not None:
        draft.put_in_place(compare=compare)
        return
    if compare:
        _require_unchanged(write)
    os.unlink(write.name, dir_fd=write.folder)
    draft.discard()
    os.fsync(write.folder)


def _finish(writes: Sequence[Write], waiting: Sequence[Draft], record: _Record) -> None:
    """Put everything in place; what is done is undone again when something stands in the way."""
    begun: list[Write] = []
    try:
        for write, draft in zip(writes, waiting, strict=True):
            begun.append(write)
            _put_in_place(write, draft, compare=False)
        crashpoint("transaction.finished")
    except BaseException:
        for write in reversed(begun):
            if holds(write.folder, write.name, write.content):  # the last one may not have come so far
                _undo(write)
        record.over()
        raise
    record.over()


def _undo(write: Write) -> None:
    if write.expected is None:
        os.unlink(write.name, dir_fd=write.folder)
        return
    draft = f".toolyard-{uuid4().hex}-0".encode()
    now = None if write.content is None else write.content
    write_draft(write.folder, write.name, draft, write.expected, now, write.path).put_in_place(compare=False)


def _places(writes: Sequence[Write], drafts: Sequence[bytes]) -> list[list[str]]:
    return [[_folder_of(write.path), draft.decode()] for write, draft in zip(writes, drafts, strict=True)]


def _promise(write: Write, draft: bytes) -> dict[str, Any]:
    return {
        "folder": _folder_of(write.path),
        "name": os.fsdecode(write.name),
        "draft": draft.decode(),
        "removes": write.content is None,
        "old": None if write.expected is None else hashlib.sha256(write.expected).hexdigest(),
    }


def _folder_of(path: str) -> str:
    return path.rpartition("/")[0] or "."


@contextmanager
def _dead(file: Path) -> Iterator[dict[str, Any] | None]:
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
        lines = os.pread(fd, os.fstat(fd).st_size, 0).split(b"\n")
        yield _parsed(lines[1]) if len(lines) > 2 else _parsed(lines[0])
    finally:
        os.close(fd)


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError:
        return {}  # cut off before it said anything: nothing was written yet
    return record if isinstance(record, dict) else {}


def _recover(record: dict[str, Any], open_folder: Callable[[str], int]) -> None:
    for place, draft in record.get("drafts", []):
        with _opened(place, open_folder) as folder:
            if folder is not None:
                _remove(_own(draft), folder)
    for promise in record.get("writes", []):
        with _opened(promise["folder"], open_folder) as folder:
            if folder is not None:
                _keep(promise, folder)


def _keep(promise: dict[str, Any], folder: int) -> None:
    name, draft = os.fsencode(_plain(promise["name"])), _own(promise["draft"])
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


def _own(draft: str) -> str:
    """A draft's name: a record is only a file, and must not lead anywhere else."""
    if not _DRAFT.fullmatch(draft):
        raise ValueError(f"'{draft}' is no draft of ours")
    return draft


def _plain(name: str) -> str:
    if "/" in name or name in ("", ".", ".."):
        raise ValueError(f"'{name}' is no name of a file")
    return name


@contextmanager
def _opened(place: str, open_folder: Callable[[str], int]) -> Iterator[int | None]:
    try:
        folder = open_folder(place)
    except (OSError, Failure):
        yield None  # the folder is gone, and the drafts with it
        return
    try:
        yield folder
    finally:
        os.close(folder)
