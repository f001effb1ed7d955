"""The changes that a call made to files of the project, as values and as stored bytes.

A write keeps only the bytes that it took away: all others stand in the file that it left behind, whose hash is known. A
record is a line of JSON for each step of the call, followed by these bytes. What was cut off by a crash is no record.
"""

import hashlib
import json
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from toolyard.protocol.patch import count_common_end, count_common_start
from toolyard.workspace.file_draft import read_or_none

_MAX_HASHED = 32 * 1024 * 1024  # bytes of a file that is read to tell whether it is still the same


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
