"""The records that undo needs, in files of the home that are only appended to.

Made to cost next to nothing: a step of a call is one write, without sync, to a file that is there already (to make one
takes longer than all else). So a power cut may take the last records, and a record that cannot be written is only
reported: the call itself did what it did. An entry is a line with its mark, its call and its size, and then the step. A
file belongs to one process, so two never mix their entries; another may only turn the mark of one, which is a single
byte, to say that it counts no more. Bounded: ``MAX_BYTES`` for a call, above which it cannot be undone, ``MAX_TOTAL``
and ``MAX_FILES`` for all of them, ``RETENTION`` for each file, which holds those of one day; the oldest go.

The step of a call is a line of JSON with the changes that it made to files of the project, followed by the bytes they
took away. A write keeps only these: all others stand in the file that it left behind, whose hash is known. What was cut
off by a crash is no record.
"""

import hashlib
import json
import logging
import os
import re
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from uuid import uuid4

from toolyard.crashpoint import crashpoint
from toolyard.message import Message
from toolyard.protocol.edits.diff import count_common_end, count_common_start
from toolyard.protocol.envelope import ErrorCode, Failure, Reason
from toolyard.workspace.changes.file_draft import read_or_none
from toolyard.workspace.home_folder import make_private_folder

RETENTION = timedelta(days=30)
MAX_BYTES = 32 * 1024 * 1024
MAX_TOTAL = 512 * 1024 * 1024
MAX_FILES = 4096
PREFIX = "undo:"  # before the id of a call: the undoing of it
_ENTRIES = 64  # in a file
_LARGE = 1024 * 1024  # bytes after which a file is full; and of a step after which it is time to look at all of them
_TOO_LARGE = b"too large\n"
_COUNTS, _DROPPED = b"+", b"-"
_HEAD = re.compile(rb"([+-])([0-9a-f]{32}) ([0-9]{10})\n")
_HEAD_BYTES = 45
_BLOCK = 64 * 1024  # bytes read at once, which is most files
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_OLD = os.O_NOFOLLOW | os.O_CLOEXEC
_log = logging.getLogger(__name__)
_MAX_HASHED = 32 * 1024 * 1024  # bytes of a file that is read to tell whether it is still the same


class _Entry(NamedTuple):
    """A step of a call: the open file it is in, where, and how many bytes it has."""

    fd: int
    at: int
    size: int


@dataclass(frozen=True, slots=True)
class Written:
    """A file that got other bytes, came or went."""

    path: str  # here and below: the real path, relative to the root
    name: str  # as the system decodes it; its bytes may say more than the path's text
    after: str | None  # the hash of what was written; None: the file went
    head: int  # so many bytes stayed at the start,
    tail: int  # and so many at the end
    old: bytes | None  # what stood between them; None: there was no file
    mode: int | None  # of a file that went
    made: int  # so many folders were made on the way to it
    source: str | None = None  # the path of the file that it was before a move, and had its mode and all else from

    def restore_old(self, now: bytes | None) -> bytes | None:
        """Rebuild the old content from the current one."""
        if self.old is None:
            return None
        now = now or b""
        return now[: self.head] + self.old + now[len(now) - self.tail :]


@dataclass(frozen=True, slots=True)
class Moved:
    source: str
    path: str
    name: str  # at the source
    mark: str  # of what was moved, by ``compute_mark``
    made: int


@dataclass(frozen=True, slots=True)
class Deleted:
    path: str
    trash_id: str


@dataclass(frozen=True, slots=True)
class Restored:
    """Something came back from the trash."""

    path: str
    mark: str


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder that was made, with others on the way to it: ``made`` in all. 0: it went."""

    path: str
    made: int


Change: TypeAlias = Written | Moved | Deleted | Restored | Folder


class UndoRecords:
    def __init__(self, folder: Path, root: Path, now: Callable[[], datetime]) -> None:
        self._folder, self._root, self._now = folder, os.fsencode(root), now
        self._guard = threading.Lock()
        self._own, self._number, self._day = uuid4().hex, 0, now().date()  # of the file that is written
        self._room = self._bytes = 0  # that are left in it; that it has

    def add(self, call_id: str, changes: Sequence[Change]) -> None:
        """One more step of a call; the items of a batch are steps of one call."""
        call, step = self._hash_call(call_id), encode_changes(changes)
        if len(step) > MAX_BYTES:
            step = _TOO_LARGE
        with self._guard:
            try:
                self._append_entry(b"%b%b %010d\n%b" % (_COUNTS, call, len(step), step))
            except OSError as error:
                _log.warning("%s cannot be undone: its record was not written: %s", call_id, error.strerror)
                self._room = 0  # what was cut off stays the end of its file
                with suppress(OSError):
                    self.drop(call_id)  # half of a call must not be undone
        if len(step) >= _LARGE or call.endswith(b"00"):  # which is one record of 256, whoever writes it
            with suppress(OSError):
                self.remove_oldest()

    def read(self, call_id: str) -> list[Change]:
        """Read the changes of a call, in order."""
        record = self._read_steps(call_id)
        if record is None and self._read_steps(reverse_id(call_id)) is not None:
            raise Failure(
                ErrorCode.CONFLICT,
                Message("'{call_id}' was undone already.", call_id=call_id),
                hint=Message("To take that back, undo '{id}'.", id=f"{PREFIX}{call_id}"),
            )
        if record is None:
            raise Failure(
                ErrorCode.NOT_FOUND,
                Message(
                    "There is nothing to undo for '{call_id}': it changed no file of this project.", call_id=call_id
                ),
                hint=Message(
                    "Changes can be undone for {days} days, and the oldest sooner if there are very many.",
                    days=RETENTION.days,
                ),
            )
        if _TOO_LARGE in record or sum(map(len, record)) > MAX_BYTES:
            raise Failure(
                Reason.TOO_LARGE,
                Message(
                    "'{call_id}' cannot be undone: it took away more than {limit} bytes, which were not kept.",
                    call_id=call_id,
                    limit=MAX_BYTES,
                ),
                hint=Message("Restore the files from a backup or from version control."),
            )
        try:
            return decode_changes(b"".join(record))
        except (ValueError, KeyError, TypeError) as error:
            raise Failure(
                ErrorCode.EXECUTION_ERROR,
                Message("'{call_id}' cannot be undone: its record is damaged.", call_id=call_id),
                hint=Message("Restore the files from a backup or from version control."),
            ) from error

    def replace(self, call_id: str, changes: Sequence[Change]) -> None:
        self.drop(call_id)
        self.add(call_id, changes)

    def drop(self, call_id: str) -> None:
        for entry in self._find_entries(call_id, os.O_RDWR):
            os.pwrite(entry.fd, _DROPPED, entry.at)

    def remove_oldest(self) -> None:
        """Remove the oldest files. One that cannot be removed does not stop the others."""
        with os.scandir(self._folder) as entries:
            files = [(entry.stat(follow_symlinks=False), entry.path) for entry in entries]
        files.sort(key=lambda item: item[0].st_mtime, reverse=True)
        oldest, total = (self._now() - RETENTION).timestamp(), 0
        for number, (info, path) in enumerate(files):
            total += info.st_size
            if info.st_mtime < oldest or total > MAX_TOTAL or number >= MAX_FILES:
                with suppress(OSError):
                    os.unlink(path)

    def _hash_call(self, call_id: str) -> bytes:
        """An id is whatever a caller chose: no part of it comes into a file as it is (S-17)."""
        call = call_id.partition("#")[0]
        return hashlib.sha256(self._root + b"\0" + call.encode(errors="surrogatepass")).hexdigest()[:32].encode()

    def _append_entry(self, entry: bytes) -> None:
        today = self._now().date()
        if self._room == 0 or self._bytes >= _LARGE or today != self._day:
            self._number, self._day, self._room, self._bytes = self._number + 1, today, _ENTRIES, 0
        fd = self._open_file(f"{self._folder}/{self._own}-{self._number:08d}")
        try:
            crashpoint("undo.before-kept")
            _write_all(fd, entry)
            crashpoint("undo.kept")
        finally:
            os.close(fd)
        self._room, self._bytes = self._room - 1, self._bytes + len(entry)

    def _open_file(self, file: str) -> int:
        try:
            return os.open(file, _APPEND, 0o600)
        except FileNotFoundError:  # the first record
            make_private_folder(self._folder)
            return os.open(file, _APPEND, 0o600)

    def _read_steps(self, call_id: str) -> list[bytes] | None:
        """The steps of a call in order; the last one may be cut off."""
        steps = [
            os.pread(entry.fd, entry.size, entry.at + _HEAD_BYTES) for entry in self._find_entries(call_id, os.O_RDONLY)
        ]
        return steps or None

    def _find_entries(self, call_id: str, access: int) -> Iterator[_Entry]:
        """Yield the valid entries of a call, in order: one process wrote them, to one file after the other."""
        call = self._hash_call(call_id)
        try:
            names = sorted(os.listdir(self._folder))
        except (FileNotFoundError, NotADirectoryError):
            return
        for name in names:
            try:
                fd = os.open(f"{self._folder}/{name}", _OLD | access)
            except FileNotFoundError:  # swept meanwhile
                continue
            try:
                yield from (entry for mark, key, entry in _walk_entries(fd) if (mark, key) == (_COUNTS, call))
            finally:
                os.close(fd)


def _walk_entries(fd: int) -> Iterator[tuple[bytes, bytes, _Entry]]:
    """The entries of a file, up to the first that has no whole head."""
    at = start = 0
    block = b""
    while True:
        if at + _HEAD_BYTES > start + len(block):
            start, block = at, os.pread(fd, _BLOCK, at)
        head = _HEAD.match(block, at - start)
        if head is None:
            return
        mark, call, size = head.groups()
        yield mark, call, _Entry(fd, at, int(size))
        at += _HEAD_BYTES + int(size)


def reverse_id(call_id: str) -> str:
    """The id under which the undoing of a call can be undone itself; of an undoing, the call that it undid."""
    return call_id.removeprefix(PREFIX) if call_id.startswith(PREFIX) else PREFIX + call_id


def _write_all(fd: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]


_KINDS: dict[str, type[Change]] = {kind.__name__.lower(): kind for kind in (Written, Moved, Deleted, Restored, Folder)}


def build_written(
    path: str,
    name: str,
    old: bytes | None,
    new: bytes | None,
    after: str | None,
    mode: int | None,
    made: int,
    source: str | None = None,
) -> Written:
    """A write of ``new``, whose hash is ``after``, in the place of ``old``."""
    head = tail = 0
    if old is not None and new is not None:
        head = count_common_start(old, new)
        tail = count_common_end(old, new, head)
        old = old[head : len(old) - tail]
    return Written(path, name, after, head, tail, old, mode, made, source)


def encode_changes(changes: Sequence[Change]) -> bytes:
    """One step of a record."""
    fields = [{"kind": type(change).__name__.lower(), **_to_fields(change)} for change in changes]
    taken = [change.old for change in changes if isinstance(change, Written) and change.old]
    return b"".join([json.dumps(fields).encode(), b"\n", *taken])


def decode_changes(record: bytes) -> list[Change]:
    """All steps of a record, in order; raises ValueError when it is not whole."""
    changes: list[Change] = []
    at = 0
    while at < len(record):
        end = record.index(b"\n", at)
        fields, at = json.loads(record[at:end]), end + 1
        for field in fields:
            kind = _KINDS[field.pop("kind")]
            if kind is Written and field["old"] is not None:
                size = field["old"]
                field["old"] = record[at : at + size]
                at += size
            changes.append(kind(**field))
    if at > len(record):
        raise ValueError("the record is cut off")
    return changes


def checksum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def compute_mark(folder: int, name: bytes) -> str:
    """Compute a mark that shows whether an entry is unchanged: of a file's content, of a link's target.

    A folder is the same with whatever is in it: to move it back loses nothing. So is a very large file that nobody
    touched.
    """
    info = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if stat.S_ISLNK(info.st_mode):
        return f"link {os.fsdecode(os.readlink(name, dir_fd=folder))}"
    if stat.S_ISDIR(info.st_mode):
        return f"folder {info.st_ino}"
    if stat.S_ISREG(info.st_mode) and info.st_size <= _MAX_HASHED:
        return f"file {checksum(read_or_none(folder, name) or b'')}"
    return f"other {info.st_ino} {info.st_size} {info.st_mtime_ns}"


def _to_fields(change: Change) -> dict[str, Any]:
    fields = {name: getattr(change, name) for name in change.__slots__}
    if isinstance(change, Written) and change.old is not None:
        fields["old"] = len(change.old)
    return fields
