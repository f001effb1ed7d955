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
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from toolyard.protocol.failure import Failure
from toolyard.workspace.replace import Draft, already_exists, changed_meanwhile, read_or_none, write_draft


@dataclass(frozen=True, slots=True)
class Write:
    """``content`` for the file ``name`` in the open ``folder``; None removes it."""

    folder: int
    name: bytes
    path: str  # real path relative to the root
    expected: bytes | None  # what stands there now
    content: bytes | None


class Transactions:
    """The records of one project, in a folder of their own."""

    def __init__(self, folder: Path, root: Path) -> None:
        self._folder = folder / hashlib.sha256(os.fsencode(root)).hexdigest()[:16]

    def commit(self, writes: Sequence[Write]) -> None:
        """Make all writes happen, or none; raises Failure or OSError when none did."""
        own = uuid4().hex
        drafts = [f".toolyard-{own}-{number}".encode() for number in range(len(writes))]
        with self._record(own, {"state": "prepare", "drafts": _places(writes, drafts)}) as promise:
            waiting: list[Draft | None] = []
            try:
                for write, draft in zip(writes, drafts, strict=True):
                    waiting.append(_prepare(write, draft))
                if len(writes) > 1:
                    for write in writes:
                        _require_unchanged(write)
                    promise(
                        {"state": "commit", "writes": [_promise(w, d) for w, d in zip(writes, drafts, strict=True)]}
                    )
            except BaseException:
                _discard(waiting)
                raise
            _finish(writes, waiting, all_promised=len(writes) > 1)

    def recover(self, open_folder: Callable[[str], int]) -> None:
        """Clear up after processes that died: ``open_folder`` opens a folder of the project by its real path."""
        if not self._folder.exists():
            return
        for file in sorted(self._folder.glob("*.json")):
            with _dead(file) as record:
                if record is not None:
                    _recover(record, open_folder)
                    file.unlink(missing_ok=True)

    @contextmanager
    def _record(self, own: str, content: dict[str, Any]) -> Iterator[Callable[[dict[str, Any]], None]]:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = self._folder / f"{own}.json"
        fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)  # held while we live: who can take it knows that we do not
            os.write(fd, json.dumps(content).encode())

            promised = False

            def promise(content: dict[str, Any]) -> None:
                nonlocal promised
                line = b"\n" + json.dumps(content).encode() + b"\n"  # a line without its end is no promise
                os.pwrite(fd, line, os.fstat(fd).st_size)
                os.fsync(fd)
                promised = True

            try:
                yield promise
            except BaseException:
                if not promised:
                    file.unlink(missing_ok=True)
                raise
            file.unlink(missing_ok=True)
        finally:
            os.close(fd)


def _prepare(write: Write, draft: bytes) -> Draft | None:
    if write.content is None:
        return None
    return write_draft(write.folder, write.name, draft, write.content, write.expected, write.path)


def _require_unchanged(write: Write) -> None:
    now = read_or_none(write.folder, write.name)
    if now != write.expected:
        raise already_exists(write.path) if write.expected is None else changed_meanwhile(write.path)


def _discard(waiting: Sequence[Draft | None]) -> None:
    for draft in waiting:
        if draft is not None:
            draft.discard()


def _finish(writes: Sequence[Write], waiting: Sequence[Draft | None], *, all_promised: bool) -> None:
    """Put everything in place. A promise that cannot be kept now is kept at the next recovery."""
    for write, draft in zip(writes, waiting, strict=True):
        if draft is None:
            if not all_promised:
                _require_unchanged(write)
            os.unlink(write.name, dir_fd=write.folder)
            os.fsync(write.folder)
            continue
        try:
            draft.put_in_place(compare=not all_promised)
        except BaseException:
            if not all_promised:
                draft.discard()
            raise


def _places(writes: Sequence[Write], drafts: Sequence[bytes]) -> list[list[str]]:
    return [[_folder_of(write.path), draft.decode()] for write, draft in zip(writes, drafts, strict=True)]


def _promise(write: Write, draft: bytes) -> dict[str, Any]:
    return {
        "folder": _folder_of(write.path),
        "name": os.fsdecode(write.name),
        "draft": draft.decode() if write.content is not None else None,
        "old": None if write.expected is None else hashlib.sha256(write.expected).hexdigest(),
    }


def _folder_of(path: str) -> str:
    return path.rpartition("/")[0] or "."


@contextmanager
def _dead(file: Path) -> Iterator[dict[str, Any] | None]:
    """The record of a process that is no more; None when it lives, or when the record says nothing."""
    fd = os.open(file, os.O_RDWR | os.O_CLOEXEC)
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
                with suppress(FileNotFoundError):
                    os.unlink(draft, dir_fd=folder)
    for promise in record.get("writes", []):
        with _opened(promise["folder"], open_folder) as folder:
            if folder is not None:
                _keep(promise, folder)


def _keep(promise: dict[str, Any], folder: int) -> None:
    name, draft = os.fsencode(promise["name"]), promise["draft"]
    now = read_or_none(folder, name)
    unchanged = (None if now is None else hashlib.sha256(now).hexdigest()) == promise["old"]
    if draft is None:
        if unchanged and now is not None:
            os.unlink(name, dir_fd=folder)
    elif unchanged:
        with suppress(FileNotFoundError):  # then it took its place before the crash
            os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
    else:
        with suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=folder)
    os.fsync(folder)


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
