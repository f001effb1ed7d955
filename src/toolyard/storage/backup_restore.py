"""Restoring a backup: it is checked, then waits in the home, then replaces what is there.

``prepare`` unpacks and checks everything in a folder of its own. ``schedule_restore`` lets it wait, by one rename, for
the next start of a server, which calls ``apply_scheduled`` before anything of the home is read. That puts what is there
aside and moves what waits in, one rename after the other, and every step can be seen from what is left: a crash in
between is finished by the next start, and nothing that was there is lost. ``restore`` does all of it at once.

A backup without plugins leaves those of the home alone.
"""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Final

from toolyard.crashpoint import crashpoint
from toolyard.errors import StorageError, StorageUnwritable
from toolyard.message import Message, replace_in_message
from toolyard.storage.backup_archive import NAMES, PLUGINS, report_full_disk, unpack
from toolyard.storage.damage import without_remedy
from toolyard.storage.state_file import SIDE_FILES, STATE, check, clear_owners, count_records, fold_in
from toolyard.workspace.home_folder import sync_to_disk

WAITING: Final = ".restore"
_DRAFT = ".restoring-"
_PLAN = "plan.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupContents:
    """The contents of a backup."""

    names: Sequence[str]
    plugins: Sequence[str] = ()
    counts: Mapping[str, int] = field(default_factory=dict)  # records by kind, and events
    size: int = 0  # of its files
    digest: str = ""  # of the archive
    aside: str = ""  # where to put what is there; empty until that has begun


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedRestore:
    folder: Path
    contents: BackupContents

    def discard(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def make_draft_folder(home: Path) -> Path:
    """Make a new folder in the home, which the next start removes if nobody else does. Raises StorageUnwritable."""
    try:
        return Path(tempfile.mkdtemp(prefix=_DRAFT, dir=home))
    except OSError as error:
        raise StorageUnwritable.from_os_error(home / WAITING, error) from error


def prepare(archive: Path, home: Path) -> PreparedRestore:
    """Unpack a backup beside the home's own files, and check all of it. Raises StorageError.

    StorageUnwritable: it may be sound, but there is no room for it.
    """
    folder = make_draft_folder(home)
    try:
        with report_full_disk():
            names = unpack(archive, folder)
            if STATE in names:
                _take_state(folder / STATE, archive)
            contents = _read_contents(archive, folder, names)
            _write(folder, contents)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return PreparedRestore(folder=folder, contents=contents)


def schedule_restore(prepared: PreparedRestore, home: Path) -> None:
    """Schedule a prepared restore for the next start, in place of one that is scheduled already."""
    cancel_scheduled(home)
    crashpoint("restore.before-wait")
    prepared.folder.rename(home / WAITING)
    sync_to_disk(home)


def find_scheduled(home: Path) -> BackupContents | None:
    """Return the contents of the backup that the next start restores; None when none is scheduled."""
    return _read(home / WAITING) if (home / WAITING).is_dir() else None


def cancel_scheduled(home: Path) -> None:
    """Cancel a scheduled restore. Raises StorageError when it has begun."""
    contents = find_scheduled(home)
    if contents is None:
        return
    if contents.aside:
        raise StorageError(Message("a restore was cut off half-way: start the server, which finishes it"))
    _remove(home)


def apply_scheduled(home: Path, aside: Path) -> BackupContents | None:
    """Put what waits in place, and what is there into the folder ``aside``. Raises StorageError.

    None: nothing waits. Only the owner of a home may do so.
    """
    for left in home.glob(f"{_DRAFT}*"):  # of a process that was killed
        shutil.rmtree(left, ignore_errors=True)
    contents = find_scheduled(home)
    if contents is None:
        return None
    if not contents.aside:
        if (home / STATE).exists():
            fold_in(home / STATE)
        contents = replace(contents, aside=str(aside))
        _write(home / WAITING, contents)
    _put_aside(home, contents)
    for name in contents.names:
        if (home / WAITING / name).exists():
            (home / WAITING / name).rename(home / name)
            crashpoint("restore.put-in-place")
    sync_to_disk(home)
    _remove(home)
    return contents


def restore(archive: Path, home: Path, aside: Path) -> Sequence[str]:
    """Put a backup in place now; what is in it. One that was cut off before is finished first. Raises StorageError."""
    before = find_scheduled(home)
    if before and before.aside:
        apply_scheduled(home, aside)
    prepared = prepare(archive, home)
    try:
        schedule_restore(prepared, home)
    except BaseException:
        prepared.discard()
        raise
    apply_scheduled(home, aside)
    return prepared.contents.names


def _take_state(file: Path, archive: Path) -> None:
    try:
        check(file)
        clear_owners(file)
    except StorageUnwritable:
        raise
    except StorageError as error:  # the file is gone when this is read
        place = Message("{file} in {archive}", file=STATE, archive=archive)
        raise StorageError(replace_in_message(without_remedy(error), str(file), place)) from error


def _read_contents(archive: Path, folder: Path, names: Sequence[str]) -> BackupContents:
    with archive.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    plugins = sorted(_to_readable(one.name) for one in (folder / PLUGINS).iterdir()) if PLUGINS in names else []
    size = sum(file.lstat().st_size for file in folder.rglob("*") if file.is_file())
    return BackupContents(
        names=names, plugins=plugins, counts=count_records(folder / STATE), size=size, digest=f"sha256:{digest}"
    )


def _to_readable(name: str) -> str:
    """Return a file name as text; it may have bytes that are none."""
    return os.fsencode(name).decode("utf-8", "replace")


def _put_aside(home: Path, contents: BackupContents) -> None:
    """Put everything aside that the backup replaces, except what was moved in already."""
    aside = Path(contents.aside)
    moved = {name for name in contents.names if not (home / WAITING / name).exists()}
    moved |= set(SIDE_FILES) if STATE in moved else set()
    plugins = [PLUGINS] if PLUGINS in contents.names else []
    for name in (*SIDE_FILES, *NAMES, *plugins):
        if name not in moved and os.path.lexists(home / name):
            aside.mkdir(mode=0o700, exist_ok=True)
            (home / name).rename(_find_free_path(aside, name))
            crashpoint("restore.put-aside")
    if aside.exists():
        sync_to_disk(aside)
    sync_to_disk(home)


def _find_free_path(folder: Path, name: str) -> Path:
    """Return a free path: what was put aside before is not overwritten."""
    tries = (folder / name, *(folder / f"{name}.{number}" for number in range(1, 1000)))
    return next(place for place in tries if not os.path.lexists(place))


def _remove(home: Path) -> None:
    gone = home / f"{_DRAFT}{os.getpid()}-done"
    shutil.rmtree(gone, ignore_errors=True)
    crashpoint("restore.before-removal")
    (home / WAITING).rename(gone)
    shutil.rmtree(gone, ignore_errors=True)


def _read(place: Path) -> BackupContents:
    try:
        found = BackupContents(**json.loads((place / _PLAN).read_text("utf-8")))
        if set(found.names) <= {*NAMES, PLUGINS}:
            return found
    except (OSError, ValueError, TypeError) as error:
        raise StorageError(
            Message(
                "{place} cannot be read ({error}): remove it, and restore the backup again", place=place, error=error
            )
        ) from error
    raise StorageError(Message("{place} holds what belongs in no backup: remove it", place=place))


def _write(place: Path, contents: BackupContents) -> None:
    new = place / f".{_PLAN}"
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        json.dump(asdict(contents), file)
        file.flush()
        os.fsync(file.fileno())
    new.replace(place / _PLAN)
    sync_to_disk(place)
