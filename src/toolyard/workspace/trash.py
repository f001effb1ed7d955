"""What was deleted or overwritten, kept in the home folder for ``KEPT`` and given back on request.

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
from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure
from toolyard.protocol.tool import Checkpoint
from toolyard.workspace.arrange import Arranger, transfer
from toolyard.workspace.document import MAX_BYTES
from toolyard.workspace.home_folder import make_private_folder
from toolyard.workspace.locks import locked
from toolyard.workspace.protected import WriteAccess
from toolyard.workspace.replace import already_exists, read_or_none
from toolyard.workspace.transaction import Transactions, Write
from toolyard.workspace.tree import copy_tree, remove_tree
from toolyard.workspace.workspace import Workspace

KEPT = timedelta(days=30)
_ABOUT, _ITEM, _DRAFT = "about.json", b"item", b"draft"
_ID = re.compile(r"\d{8}T\d{6}-[0-9a-f]{16}")
_STAMP = "%Y%m%dT%H%M%S"
_DELETED, _VERSION = "deleted", "version"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Trashed:
    id: str
    path: str  # where it was


class Trash:
    def __init__(
        self, folder: Path, workspace: Workspace, transactions: Transactions, now: Callable[[], datetime]
    ) -> None:
        self._folder = folder / hashlib.sha256(os.fsencode(workspace.root)).hexdigest()[:16]
        self._workspace, self._transactions, self._now = workspace, transactions, now
        self._arranger = Arranger(workspace, transactions)

    def put(self, path: str, checkpoint: Checkpoint, *, access: WriteAccess = WriteAccess.USUAL) -> Trashed:
        """Take a file, a folder with all that is in it, or a link out of the project."""
        with self._workspace.entry(path, follow=False) as entry:
            self._arranger.require_movable(entry, path, access=access)
            with locked([entry.folder], checkpoint), self._place(_DELETED, entry.path, entry.name) as (own, place):
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
                return Trashed(own, entry.path)

    def keep(self, path: str, content: bytes) -> Trashed:
        """Keep what a file had in it before it is overwritten; ``path`` is its real path."""
        with self._place(_VERSION, path, b"") as (own, place):
            fd = os.open(_ITEM, _NEW, 0o600, dir_fd=place)
            with os.fdopen(fd, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(fd)
            return Trashed(own, path)

    def restore(self, own: str, checkpoint: Checkpoint) -> str:
        """Give something back to its place; returns its path."""
        kind, path, name = self._about(own)
        with self._workspace.target(path) as target, locked([target.folder], checkpoint), target.making():
            checkpoint()
            self._about(own)  # somebody else may have been given it meanwhile
            with self._opened(own) as place:
                if kind == _VERSION:
                    now, content = target.read(MAX_BYTES), read_or_none(place, _ITEM)
                    if now is not None:
                        self.keep(target.path, now)
                    self._transactions.commit([Write(*target.make(), target.path, now, content)])
                else:
                    if target.exists:
                        raise already_exists(target.path)
                    transfer(place, _ITEM, target.make()[0], name)
            shutil.rmtree(self._folder / own)
        return path

    def _about(self, own: str) -> tuple[str, str, bytes]:
        """What is kept under an id: its kind, its path, and its name, whose bytes may say more than the path's text."""
        place = self._folder / own
        if _ID.fullmatch(own) and os.path.lexists(place / os.fsdecode(_ITEM)):
            with suppress(FileNotFoundError):  # it is just going
                about = json.loads((place / _ABOUT).read_bytes())
                return str(about["kind"]), str(about["path"]), os.fsencode(about["name"])
        raise Failure(
            ErrorCode.NOT_FOUND,
            "There is nothing under this id in the trash.",
            hint=f"What is in the trash is kept {KEPT.days} days.",
        )

    @contextmanager
    def _place(self, kind: str, path: str, name: bytes) -> Iterator[tuple[str, int]]:
        """A new folder of the trash; gone again when nothing came into it."""
        now = self._now().astimezone(UTC)
        self._sweep(now)
        own = f"{now:{_STAMP}}-{token_hex(8)}"
        place = self._folder / own
        make_private_folder(place)
        try:
            about = {"kind": kind, "path": path, "name": os.fsdecode(name), "at": now.isoformat(timespec="seconds")}
            with open(os.open(place / _ABOUT, _NEW, 0o600), "wb") as file:
                file.write(json.dumps(about).encode())
                file.flush()
                os.fsync(file.fileno())
            with self._opened(own) as fd:
                yield own, fd
        finally:
            if not os.path.lexists(place / os.fsdecode(_ITEM)):
                shutil.rmtree(place, ignore_errors=True)

    @contextmanager
    def _opened(self, own: str) -> Iterator[int]:
        fd = os.open(self._folder / own, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield fd
        finally:
            os.close(fd)

    def _sweep(self, now: datetime) -> None:
        """Let go of what was kept long enough. What cannot be removed is no reason not to keep the next."""
        oldest = f"{now - KEPT:{_STAMP}}"
        if self._folder.is_dir():
            for name in os.listdir(self._folder):
                if _ID.fullmatch(name) and name < oldest:
                    shutil.rmtree(self._folder / name, ignore_errors=True)
