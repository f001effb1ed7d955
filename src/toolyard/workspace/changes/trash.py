"""The trash: what was deleted or overwritten, kept in the home folder for ``RETENTION``, restored on request.

A thing is put there with one rename; from another file system it is copied, synced and only then removed: at every
moment it is in the project, in the trash, or in both. What it was is written down before. Giving back never replaces a
file unless that is what is asked for, an old version in the place of a new one, and then the new one is kept in turn.
"""

import errno
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from secrets import token_hex

from toolyard.crashpoint import crashpoint
from toolyard.message import Message
from toolyard.protocol.envelope import ErrorCode, Failure
from toolyard.protocol.tool import Checkpoint
from toolyard.workspace.changes.arranger import Arranger, copy_tree, remove_tree, transfer_entry
from toolyard.workspace.changes.file_draft import already_exists_failure, read_or_none
from toolyard.workspace.changes.locks import lock_folders
from toolyard.workspace.changes.protected_paths import WriteAccess
from toolyard.workspace.changes.transaction import Transactions, Write
from toolyard.workspace.document import MAX_BYTES
from toolyard.workspace.home_folder import make_private_folder
from toolyard.workspace.workspace import Workspace

RETENTION = timedelta(days=30)
_ABOUT, _ITEM, _DRAFT = "about.json", b"item", b"draft"
_ID = re.compile(r"\d{8}T\d{6}-[0-9a-f]{16}")
_STAMP = "%Y%m%dT%H%M%S"
_DELETED, _VERSION = "deleted", "version"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class TrashEntry:
    id: str
    path: str  # where it was


class Trash:
    def __init__(
        self, folder: Path, workspace: Workspace, transactions: Transactions, now: Callable[[], datetime]
    ) -> None:
        self._folder = folder / hashlib.sha256(os.fsencode(workspace.root)).hexdigest()[:16]
        self._workspace, self._transactions, self._now = workspace, transactions, now
        self._arranger = Arranger(workspace, transactions)

    def move_to_trash(
        self, path: str, checkpoint: Checkpoint, *, access: WriteAccess = WriteAccess.USUAL
    ) -> TrashEntry:
        """Take a file, a folder with all that is in it, or a link out of the project."""
        with self._workspace.open_entry(path, follow=False) as entry:
            self._arranger.require_movable(entry, path, access=access)
            with (
                lock_folders([entry.folder], checkpoint),
                self._make_place(_DELETED, entry.path, entry.name) as (own, place),
            ):
                checkpoint()
                try:
                    crashpoint("trash.before-rename")
                    os.rename(entry.name, _ITEM, src_dir_fd=entry.folder, dst_dir_fd=place)
                except OSError as error:
                    if error.errno != errno.EXDEV:
                        raise
                    copy_tree(entry.folder, entry.name, place, _DRAFT)
                    os.rename(_DRAFT, _ITEM, src_dir_fd=place, dst_dir_fd=place)
                    remove_tree(entry.folder, entry.name)
                crashpoint("trash.moved")
                os.fsync(place)
                os.fsync(entry.folder)
                return TrashEntry(own, entry.path)

    def keep_version(self, path: str, content: bytes) -> TrashEntry:
        """Keep what a file had in it before it is overwritten; ``path`` is its real path."""
        with self._make_place(_VERSION, path, b"") as (own, place):
            fd = os.open(_ITEM, _NEW, 0o600, dir_fd=place)
            with os.fdopen(fd, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(fd)
            return TrashEntry(own, path)

    def restore(self, own: str, checkpoint: Checkpoint) -> str:
        """Give something back to its place; returns its path."""
        kind, path, name = self._read_entry(own)
        with (
            self._workspace.open_target(path) as target,
            lock_folders([target.folder], checkpoint),
            target.removing_on_failure(),
        ):
            checkpoint()
            self._read_entry(own)  # somebody else may have been given it meanwhile
            with self._open_place(own) as place:
                if kind == _VERSION:
                    now, content = target.read(MAX_BYTES), read_or_none(place, _ITEM)
                    if now is not None:
                        self.keep_version(target.path, now)
                    self._transactions.commit([Write(*target.make_folders(), target.path, now, content)])
                else:
                    if target.exists:
                        raise already_exists_failure(target.path)
                    transfer_entry(place, _ITEM, target.make_folders()[0], name)
            shutil.rmtree(self._folder / own)
        return path

    def _read_entry(self, own: str) -> tuple[str, str, bytes]:
        """Read an entry: its kind, its path, and its name, whose bytes may say more than the path's text."""
        place = self._folder / own
        if _ID.fullmatch(own) and os.path.lexists(place / os.fsdecode(_ITEM)):
            with suppress(FileNotFoundError):  # it is just going
                about = json.loads((place / _ABOUT).read_bytes())
                return str(about["kind"]), str(about["path"]), os.fsencode(about["name"])
        raise Failure(
            ErrorCode.NOT_FOUND,
            Message("There is nothing under this id in the trash."),
            hint=Message("What is in the trash is kept {days} days.", days=RETENTION.days),
        )

    @contextmanager
    def _make_place(self, kind: str, path: str, name: bytes) -> Iterator[tuple[str, int]]:
        """A new folder of the trash; gone again when nothing came into it."""
        now = self._now().astimezone(UTC)
        self._remove_expired(now)
        own = f"{now:{_STAMP}}-{token_hex(8)}"
        place = self._folder / own
        make_private_folder(place)
        try:
            about = {"kind": kind, "path": path, "name": os.fsdecode(name), "at": now.isoformat(timespec="seconds")}
            with open(os.open(place / _ABOUT, _NEW, 0o600), "wb") as file:
                file.write(json.dumps(about).encode())
                file.flush()
                os.fsync(file.fileno())
            with self._open_place(own) as fd:
                yield own, fd
        finally:
            if not os.path.lexists(place / os.fsdecode(_ITEM)):
                shutil.rmtree(place, ignore_errors=True)

    @contextmanager
    def _open_place(self, own: str) -> Iterator[int]:
        fd = os.open(self._folder / own, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield fd
        finally:
            os.close(fd)

    def _remove_expired(self, now: datetime) -> None:
        """Remove expired entries. One that cannot be removed does not stop the others."""
        oldest = f"{now - RETENTION:{_STAMP}}"
        if self._folder.is_dir():
            for name in os.listdir(self._folder):
                if _ID.fullmatch(name) and name < oldest:
                    shutil.rmtree(self._folder / name, ignore_errors=True)
