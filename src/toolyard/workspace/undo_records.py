"""The records that undo needs, one file for each call, in a folder of the home.

Made to cost next to nothing: a step of a call is one write, without sync. So a power cut may take the last records, and
a record that cannot be written is only reported: the call itself did what it did. Bounded: ``MAX_BYTES`` for a call,
above which it cannot be undone, ``MAX_TOTAL`` and ``MAX_RECORDS`` for all of them, ``KEPT`` for each; the oldest go.
"""

import hashlib
import logging
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

from toolyard.crashpoint import crashpoint
from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure, Reason
from toolyard.workspace.changes import Change, decode, encode

KEPT = timedelta(days=30)
MAX_BYTES = 32 * 1024 * 1024
MAX_TOTAL = 512 * 1024 * 1024
MAX_RECORDS = 4096
PREFIX = "undo:"  # before the id of a call: the undoing of it
_LARGE = 1024 * 1024  # bytes of a record after which it is time to look at all of them
_TOO_LARGE = b"too large\n"
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_log = logging.getLogger(__name__)


class UndoRecords:
    def __init__(self, folder: Path, root: Path, now: Callable[[], datetime]) -> None:
        self._folder, self._root, self._now = folder, os.fsencode(root), now

    def add(self, call_id: str, changes: Sequence[Change]) -> None:
        """One more step of a call; the items of a batch are steps of one call."""
        file, step = self._file(call_id), encode(changes)
        try:
            fd = self._open(file)
            try:
                if os.fstat(fd).st_size + len(step) > MAX_BYTES:
                    os.ftruncate(fd, 0)
                    step = _TOO_LARGE
                crashpoint("undo.before-kept")
                _write(fd, step)
                crashpoint("undo.kept")
            finally:
                os.close(fd)
            if len(step) >= _LARGE or file.endswith("00"):  # which is one record of 256, whoever writes it
                self.sweep()
        except OSError as error:
            _log.warning("%s cannot be undone: its record was not written: %s: %s", call_id, file, error.strerror)
            with suppress(OSError):
                os.unlink(file)  # half of a call must not be undone

    def read(self, call_id: str) -> list[Change]:
        """What a call did, in order."""
        record = self._stored(call_id)
        if record is None and self._stored(reverse(call_id)) is not None:
            raise Failure(
                ErrorCode.CONFLICT,
                f"'{call_id}' was undone already.",
                hint=f"To take that back, undo '{PREFIX}{call_id}'.",
            )
        if record is None:
            raise Failure(
                ErrorCode.NOT_FOUND,
                f"There is nothing to undo for '{call_id}': it changed no file of this project.",
                hint=f"Changes can be undone for {KEPT.days} days, the last {MAX_RECORDS} of them.",
            )
        if record.startswith(_TOO_LARGE):
            raise Failure(
                Reason.TOO_LARGE,
                f"'{call_id}' cannot be undone: it took away more than {MAX_BYTES} bytes, which were not kept.",
                hint="Restore the files from a backup or from version control.",
            )
        try:
            return decode(record)
        except (ValueError, KeyError, TypeError) as error:
            raise Failure(
                ErrorCode.EXECUTION_ERROR,
                f"'{call_id}' cannot be undone: its record is damaged.",
                hint="Restore the files from a backup or from version control.",
            ) from error

    def replace(self, call_id: str, changes: Sequence[Change]) -> None:
        self.drop(call_id)
        self.add(call_id, changes)

    def drop(self, call_id: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self._file(call_id))

    def sweep(self) -> None:
        """Let go of the oldest. What cannot be removed is no reason not to keep the next."""
        with os.scandir(self._folder) as entries:
            found = [(entry.stat(follow_symlinks=False), entry.path) for entry in entries]
        found.sort(key=lambda item: item[0].st_mtime, reverse=True)
        oldest, total = (self._now() - KEPT).timestamp(), 0
        for number, (info, path) in enumerate(found):
            total += info.st_size
            if info.st_mtime < oldest or total > MAX_TOTAL or number >= MAX_RECORDS:
                with suppress(OSError):
                    os.unlink(path)

    def _file(self, call_id: str) -> str:
        """An id is whatever a caller chose: no part of it comes into the name of a file (S-17)."""
        call = call_id.partition("#")[0]
        name = hashlib.sha256(self._root + b"\0" + call.encode(errors="surrogatepass")).hexdigest()
        return f"{self._folder}/{name[:32]}"

    def _open(self, file: str) -> int:
        try:
            return os.open(file, _APPEND, 0o600)
        except FileNotFoundError:  # the first record
            self._folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._folder.mkdir(exist_ok=True, mode=0o700)
            return os.open(file, _APPEND, 0o600)

    def _stored(self, call_id: str) -> bytes | None:
        try:
            with open(self._file(call_id), "rb") as file:
                return file.read(2 * MAX_BYTES)
        except FileNotFoundError:
            return None


def reverse(call_id: str) -> str:
    """The id under which the undoing of a call can be undone itself; of an undoing, the call that it undid."""
    return call_id.removeprefix(PREFIX) if call_id.startswith(PREFIX) else PREFIX + call_id


def _write(fd: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]
