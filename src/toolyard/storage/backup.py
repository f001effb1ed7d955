"""A backup: one compressed archive with the state and the settings of a home, for its owner's eyes only.

It holds regular files with the names of ``NAMES`` and nothing else; reading takes nothing else either. The state in it
is a copy as of one moment, taken while others may write. Restoring unpacks and checks everything beside the present
files first, puts these aside, and only then moves the new ones in: a crash leaves the old, or the old put aside.
"""

import contextlib
import os
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

from toolyard.crashpoint import crashpoint
from toolyard.errors import StorageError
from toolyard.storage.state_file import SIDE_FILES, STATE, check, copy, disown, fold_in

NAMES: Final = ("config.toml", "trust.json", "disabled.json", "key", "keys.json", STATE)
_CHUNK = 2**20


def present(home: Path) -> list[str]:
    """Which of the files that a backup holds a home has."""
    return [name for name in NAMES if (home / name).is_file()]


def back_up(home: Path, archive: Path) -> list[str]:
    """Write the archive; the names in it. Never replaces a file."""
    names = present(home)
    if not names:
        raise StorageError(f"{home} has nothing to back up yet")
    if archive.exists():
        raise StorageError(f"{archive} exists already: name another file")
    with _draft_folder(archive.parent) as draft:
        whole = draft / "archive"
        with (
            open(os.open(whole, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out,
            tarfile.open(fileobj=out, mode="w:gz") as tar,
        ):
            for name in names:
                if name == STATE:
                    copy(home / STATE, draft / STATE)
                source = draft / STATE if name == STATE else home / name
                with source.open("rb") as content:
                    _add(tar, name, content)
        _to_disk(whole)
        crashpoint("backup.before-rename")
        whole.rename(archive)
        _to_disk(archive.parent)
    return names


def restore(archive: Path, home: Path, aside: Path) -> list[str]:
    """Put a backup in place; the names in it. What was there before goes to the folder ``aside``."""
    with _draft_folder(home) as draft:
        names = _unpack(archive, draft)
        check(draft / STATE)
        if STATE in names:
            disown(draft / STATE)
        before = [name for name in (*NAMES, *SIDE_FILES) if (home / name).exists()]
        if before:
            fold_in(home / STATE)
            aside.mkdir(mode=0o700)
            for name in before:
                if (home / name).exists():
                    (home / name).rename(aside / name)
                    crashpoint("restore.put-aside")
        for name in names:
            _to_disk(draft / name)
            (draft / name).rename(home / name)
            crashpoint("restore.put-in-place")
        _to_disk(home)
    return names


def _add(tar: tarfile.TarFile, name: str, content: IO[bytes]) -> None:
    member = tarfile.TarInfo(name)
    facts = os.fstat(content.fileno())
    member.size, member.mtime, member.mode = facts.st_size, int(facts.st_mtime), 0o600
    tar.addfile(member, content)


def _unpack(archive: Path, to: Path) -> list[str]:
    """Copy the known files of an archive to a folder; anything else in it is refused before it is looked at."""
    found: list[str] = []
    try:
        with tarfile.open(archive, "r|gz") as tar:
            for member in tar:
                if member.name not in NAMES or not member.isreg() or member.name in found:
                    raise StorageError(f"{archive} is no backup of Toolyard: it holds '{member.name[:100]}'")
                content = tar.extractfile(member)
                if content is None:
                    raise StorageError(f"{archive} is no backup of Toolyard: '{member.name}' has no content")
                with open(os.open(to / member.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
                    shutil.copyfileobj(content, out, _CHUNK)
                found.append(member.name)
    except FileNotFoundError as error:
        raise StorageError(f"{archive} does not exist") from error
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        raise StorageError(f"{archive} cannot be read as a backup: {error}") from error
    if not found:
        raise StorageError(f"{archive} is no backup of Toolyard: it is empty")
    return found


@contextlib.contextmanager
def _draft_folder(where: Path) -> Iterator[Path]:
    try:
        draft = Path(tempfile.mkdtemp(prefix=".toolyard-", dir=where))
    except OSError as error:
        raise StorageError(f"{where} cannot be written: {error.strerror}") from error
    try:
        yield draft
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _to_disk(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
