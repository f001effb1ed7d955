"""A backup: one compressed archive with the state, the settings and the plugins of a home, for its owner's eyes only.

It holds regular files with the names of ``NAMES``, and those below ``plugins/NAME/``; reading takes nothing else
either. Links, what other programs can make again (``LEFT_OUT``) and what a plugin keeps elsewhere are not in it. The
state in it is a copy as of one moment, taken while others may write.

Reading takes nothing on trust: a bit that was changed, a header that is damaged and an end that is missing are refused.
"""

import contextlib
import gzip
import os
import shutil
import stat
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Final, NoReturn, Self

from toolyard.crashpoint import crashpoint
from toolyard.errors import FULL, StorageError, StorageUnwritable, is_disk_refusal
from toolyard.message import Message
from toolyard.storage.secret_key import KEY_FILE
from toolyard.storage.state_file import STATE, copy
from toolyard.workspace.home_folder import make_private_folder, sync_to_disk

NAMES: Final = (
    *("config.toml", "host.env", "trust.json", "disabled.json", "mcp.json", "mcp-trust.json", "setup.json"),
    *("key", "keys.json", "publish-keys.json", STATE, KEY_FILE),
)
PLUGINS: Final = "plugins"
LEFT_OUT: Final = frozenset({".git", ".hg", ".svn", "node_modules", ".venv", "venv", "__pycache__"})
MAX_FILES: Final = 50_000
MAX_BYTES: Final = 16 * 2**30
_CHUNK = 2**20
_MAX_PATH = 1000
_MAX_HEADER = 8192  # of a name of _MAX_PATH characters, whatever they are


class _Member(tarfile.TarInfo):
    """A regular file or the header with its long name. Reading anything else could cost memory, disk or time."""

    @classmethod
    def fromtarfile(cls, archive: tarfile.TarFile) -> Self:
        try:
            return super().fromtarfile(archive)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]  # no stub has it
            raise
        except tarfile.HeaderError as error:  # which tarfile takes for the end, too
            raise tarfile.ReadError(Message("a header is damaged ({error})", error=error)) from error

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        """Check a header before anything that it announces is read; every version of tarfile comes by here."""
        is_header = self.type in (tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME)
        if not is_header and self.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
            raise tarfile.ReadError(Message("{name} is no regular file", name=repr(self.name[:100])))
        if self.size < 0 or (is_header and self.size > _MAX_HEADER):
            raise tarfile.ReadError(Message("a header has an impossible size"))
        member: tarfile.TarInfo = super()._proc_member(archive)  # type: ignore[misc]  # no stub has it
        return member

    def _sparse(self, *_: object) -> NoReturn:
        raise tarfile.ReadError(Message("it holds a file with holes"))

    _proc_gnusparse_00 = _proc_gnusparse_01 = _proc_gnusparse_10 = _sparse  # which read lists of any length


def list_contents(home: Path) -> list[str]:
    """Return the names of what a backup would hold of a home."""
    plugins = [PLUGINS] if next(_list_plugin_files(home), None) else []
    return [*(name for name in NAMES if (home / name).is_file()), *plugins]


def back_up(home: Path, archive: Path) -> list[str]:
    """Write the archive; what is in it. Never replaces a file."""
    names = list_contents(home)
    if not names:
        raise StorageError(Message("{home} has nothing to back up yet", home=home))
    if archive.exists():
        raise StorageError(Message("{archive} exists already: name another file", archive=archive))
    with draft_folder(archive.parent) as draft, _report_refusal(archive):
        whole = draft / "archive"
        with (
            open(os.open(whole, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out,
            tarfile.open(fileobj=out, mode="w:gz") as tar,
        ):
            for name in NAMES:
                if name in names and name == STATE:
                    copy(home / STATE, draft / STATE)
                if name in names or name == KEY_FILE:  # the key may be made just before the state is copied
                    _add_file(tar, name, draft / STATE if name == STATE else home / name)
            for path in _list_plugin_files(home):
                _add_file(tar, path, home / path)
        sync_to_disk(whole)
        crashpoint("backup.before-rename")
        whole.rename(archive)
        sync_to_disk(archive.parent)
    return names


def unpack(archive: Path, to: Path) -> list[str]:
    """Copy an archive to a folder; what is in it. Anything else in it is refused before it is looked at."""
    names: dict[str, None] = {}
    files = size = 0
    try:
        with (
            report_full_disk(),
            gzip.open(archive, "rb") as whole,
            tarfile.open(fileobj=whole, mode="r|", tarinfo=_Member) as tar,
        ):
            for member in tar:
                files, size = files + 1, size + member.size
                if files > MAX_FILES or size > MAX_BYTES:
                    raise StorageError(
                        Message(
                            "{archive} holds more than {max_files} files or {value} GiB",
                            archive=archive,
                            max_files=MAX_FILES,
                            value=MAX_BYTES >> 30,
                        )
                    )
                name = _find_part(member)
                if not name or (name in names and name != PLUGINS):
                    raise StorageError(
                        Message(
                            "{archive} is no backup of Toolyard: it holds {name!r}",
                            archive=archive,
                            name=member.name[:100],
                        )
                    )
                _unpack_one(tar, member, to)
                names[name] = None
            rest = tar.fileobj.read(_CHUNK)  # to the very end, where the checksum is
            if len(rest) == _CHUNK or any(rest):
                raise StorageError(
                    Message("{archive} is no backup of Toolyard: it goes on after its end", archive=archive)
                )
    except FileNotFoundError as error:
        raise StorageError(Message("{archive} does not exist", archive=archive)) from error
    except (tarfile.TarError, EOFError, zlib.error, OSError, ValueError, RecursionError) as error:
        raise StorageError(
            Message("{archive} cannot be read as a backup: {error}", archive=archive, error=error)
        ) from error
    if not names:
        raise StorageError(Message("{archive} is no backup of Toolyard: it is empty", archive=archive))
    return list(names)


@contextlib.contextmanager
def report_full_disk() -> Iterator[None]:
    """Raise StorageUnwritable instead of an OSError of a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise StorageUnwritable(
            Message("the disk is full: there is no room for what is in the backup; free some space and try again")
        ) from error


@contextlib.contextmanager
def _report_refusal(archive: Path) -> Iterator[None]:
    """Raise StorageUnwritable instead of an OSError of a disk on which there is no room for an archive."""
    try:
        yield
    except OSError as error:
        if not is_disk_refusal(error):
            raise
        raise StorageUnwritable.from_os_error(archive, error) from error


@contextlib.contextmanager
def draft_folder(where: Path) -> Iterator[Path]:
    try:
        draft = Path(tempfile.mkdtemp(prefix=".toolyard-", dir=where))
    except OSError as error:
        raise StorageUnwritable.from_os_error(where / "x", error) from error
    try:
        yield draft
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _list_plugin_files(home: Path) -> Iterator[str]:
    """Return every regular file of the installed plugins by its path in the home; no link is followed."""
    for place, folders, names in os.walk(home / PLUGINS):
        top = Path(place) == home / PLUGINS
        folders[:] = sorted(one for one in folders if one not in LEFT_OUT and not (top and one.startswith(".")))
        for name in () if top else sorted(names):
            path = Path(place, name)
            if stat.S_ISREG(path.lstat().st_mode):
                yield path.relative_to(home).as_posix()


def _add_file(tar: tarfile.TarFile, name: str, source: Path) -> None:
    member = tarfile.TarInfo(name)
    try:  # an owner may keep the settings elsewhere and link to them; in a plugin a link leads anywhere
        fd = os.open(source, os.O_RDONLY | os.O_CLOEXEC | (os.O_NOFOLLOW if "/" in name else 0))
    except FileNotFoundError:
        return  # it has just gone
    with os.fdopen(fd, "rb") as content:
        facts = os.fstat(content.fileno())
        member.size, member.mtime = facts.st_size, int(facts.st_mtime)
        member.mode = 0o700 if facts.st_mode & 0o100 else 0o600
        tar.addfile(member, content)


def _find_part(member: tarfile.TarInfo) -> str:
    """Return the part of a home that a member belongs to; empty when it does not belong in a backup."""
    if not member.isreg() or member.issparse() or member.size < 0:  # a long header may say so too
        return ""
    parts = member.name.split("/")
    if len(parts) == 1:
        return member.name if member.name in NAMES else ""
    sound = all(part not in ("", ".", "..") and "\0" not in part and "\\" not in part for part in parts)
    inside = len(parts) >= 3 and parts[0] == PLUGINS and not parts[1].startswith(".")
    return PLUGINS if sound and inside and len(member.name) <= _MAX_PATH else ""


def _unpack_one(tar: tarfile.TarFile, member: tarfile.TarInfo, to: Path) -> None:
    content: IO[bytes] | None = tar.extractfile(member)
    if content is None:
        raise StorageError(Message("{name!r} of the backup has no content", name=member.name[:100]))
    place = to / PurePosixPath(member.name)
    make_private_folder(place.parent)
    mode = 0o700 if member.name.startswith(f"{PLUGINS}/") and member.mode & 0o100 else 0o600
    with open(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as out:
        shutil.copyfileobj(content, out, _CHUNK)
        out.flush()
        os.fsync(out.fileno())
