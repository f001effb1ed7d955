"""Extract a zip or tar archive from an untrusted source (S-86).

The whole list is read and judged before a byte is written; one bad entry refuses the archive. Written are ordinary
files and folders only, with modes 0644 and 0755 (a ``config.env`` 0600), into a folder beside the target which gets
the target's name when it is complete: afterwards there is everything or nothing. Nothing is ever written over, an
archive inside is a file like any other, and what kind of archive it is tell its bytes, not its name.

Bounds: 5000 entries, 200 MiB unpacked, 200 times the size of the archive (small ones may unpack to 4 MiB in any case).
"""

import bz2
import gzip
import lzma
import os
import re
import shutil
import stat
import struct
import tarfile
import tempfile
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, cast

from toolyard.crashpoint import crashpoint
from toolyard.errors import ToolyardError
from toolyard.message import Message
from toolyard.protocol.manifests.safe_text import escape_unprintable

_CHUNK = 256 * 1024
_XZ_MEMORY = 128 * 2**20
_ENTRY_ROOM = 4096  # of an unpacked tar, for the headers and the padding of one entry
_LIST_ROOM = 1024  # of a zip's list, for one entry
_END = struct.Struct("<4s4H2LH")  # the last record of a zip
_MAX_COMMENT = 65535
_BROKEN = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, RuntimeError, ValueError)
_SECRET = "config.env"  # noqa: S105 the name of the file that has them
_ALWAYS = 4 * 2**20  # text with many blanks shrinks far: a little may unpack from anything
_MAX_PATH = 1024  # bytes
_MAX_NAME = 255
_MAX_DEPTH = 40
_DRIVE = re.compile(r"[A-Za-z]:")
_UTF8 = 0x800
_ENCRYPTED = 0x1
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveEntry:
    path: str  # as the archive has it; when judged: relative, with plain parts
    size: int = 0
    is_folder: bool = False
    executable: bool = False
    problem: str = ""  # why it is neither a file nor a folder that can be taken
    member: object = None  # how the archive's reader knows it

    @property
    def mode(self) -> int:
        if self.path.rsplit("/", 1)[-1] == _SECRET:
            return 0o600
        return 0o755 if self.executable else 0o644


@dataclass(frozen=True, slots=True)
class Caps:
    entries: int = 5000
    bytes: int = 200 * 2**20
    ratio: int = 200

    def max_unpacked(self, packed: int) -> int:
        """Return how many bytes an archive of this size may unpack to."""
        return max(_ALWAYS, packed * self.ratio)


def extract_archive(archive: Path, target: Path, caps: Caps = Caps()) -> None:  # noqa: B008 it is frozen
    """Unpack ``archive`` into the new folder ``target``. Raises ToolyardError, and then there is nothing."""
    draft = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with _open_archive(archive, caps) as (entries, content):
            planned = check_entries(entries, caps, os.path.getsize(archive))
            draft.mkdir(parents=True, mode=0o700)
            for entry in planned:
                if entry.is_folder:
                    (draft / entry.path).mkdir(parents=True, exist_ok=True)
                else:
                    with content(entry) as stream:
                        write_file(draft / entry.path, stream, entry)
        move_into_place(draft, target)
    except ArchiveError as refused:
        raise ToolyardError(Message("{archive} is refused: {refused}", archive=archive, refused=refused)) from refused
    except _BROKEN as error:
        raise ToolyardError(Message("{archive} is damaged: {error}", archive=archive, error=error)) from error
    except OSError as error:
        raise ToolyardError(
            Message("{archive} cannot be unpacked: {error}", archive=archive, error=error.strerror or error)
        ) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def write_file(place: Path, stream: IO[bytes], entry: ArchiveEntry) -> None:
    """Write a new file with exactly the bytes that the entry announced. Raises ArchiveError."""
    place.parent.mkdir(parents=True, exist_ok=True)
    fd = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        left = entry.size
        while chunk := stream.read(min(_CHUNK, left + 1)):
            left -= len(chunk)
            if left < 0:
                break
            file.write(chunk)
        if left:
            raise ArchiveError(Message("'{path}' has another size than the archive says", path=entry.path))
        os.fchmod(fd, entry.mode)


def move_into_place(draft: Path, target: Path) -> None:
    """Give a finished folder its name, unless something has that name already. Raises ArchiveError."""
    try:
        target.mkdir()
    except FileExistsError:
        raise ArchiveError(Message("there is already a '{name}' where it would go", name=target.name)) from None
    try:
        draft.chmod(0o755)
        crashpoint("plugin.before-unpacked")
        draft.rename(target)
    except BaseException:
        target.rmdir()
        raise


@contextmanager
def _open_archive(archive: Path, caps: Caps) -> Iterator["ArchiveListing"]:
    """Yield the entries of an archive, and a function that opens one of them."""
    with archive.open("rb") as file:
        head = file.read(512)
        file.seek(0)
        if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
            _check_zip_end(file, caps)
            with zipfile.ZipFile(file) as zipped:
                yield list_zip(zipped)
        else:
            with tempfile.TemporaryFile() as plain:
                _decompress_tar(file, head, cast("IO[bytes]", plain), caps)
                plain.seek(0)
                yield list_tar(cast("IO[bytes]", plain), caps)


def _check_zip_end(file: IO[bytes], caps: Caps) -> None:
    """Check the length of the directory before it is read into memory; zip64 archives are over the limits anyway."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _END.size - _MAX_COMMENT))
    tail = file.read()
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) - at < _END.size:
        raise ArchiveError(Message("its end is missing"))
    _, disk, first, here, entries, length, start, comment = _END.unpack_from(tail, at)
    if b"PK\x06\x07" in tail[max(0, at - 20) : at] or 0xFFFF in (here, entries) or 0xFFFFFFFF in (length, start):
        raise ArchiveError(Message("it is in the zip64 format: make it again as an ordinary zip"))
    if disk or first or here != entries or len(tail) - at - _END.size != comment:
        raise ArchiveError(Message("its end contradicts itself"))
    if entries > caps.entries or length > caps.entries * _LIST_ROOM:
        raise too_many_entries(caps)
    file.seek(0)


def _decompress_tar(file: IO[bytes], head: bytes, plain: IO[bytes], caps: Caps) -> None:
    """Write the decompressed tar to ``plain``, as far as the limits go."""
    size = os.fstat(file.fileno()).st_size
    most = min(caps.bytes, caps.max_unpacked(size)) + caps.entries * _ENTRY_ROOM
    for chunk in _decompressed_chunks(file, head):
        if plain.tell() + len(chunk) > most:
            raise too_large_unpacked(most)
        plain.write(chunk)


def _decompressed_chunks(file: IO[bytes], head: bytes) -> Iterator[bytes]:
    if head.startswith(b"\xfd7zXZ\0"):
        yield from _decompress_xz(file)
        return
    stream: IO[bytes]
    if head.startswith(b"\x1f\x8b"):
        stream = cast("IO[bytes]", gzip.GzipFile(fileobj=file))
    elif head.startswith(b"BZh"):
        stream = cast("IO[bytes]", bz2.BZ2File(file))
    elif head[257:262] == b"ustar" or (len(head) == 512 and not head.strip(b"\0")):
        stream = file
    else:
        raise ArchiveError(Message("it is no zip and no tar archive"))
    while chunk := stream.read(_CHUNK):
        yield chunk


def _decompress_xz(file: IO[bytes]) -> Iterator[bytes]:
    """Decompress xz. ``lzma.open`` would take as much memory as the archive asks for."""
    machine = lzma.LZMADecompressor(memlimit=_XZ_MEMORY)
    while not machine.eof:
        data = file.read(_CHUNK) if machine.needs_input else b""
        if machine.needs_input and not data:
            raise EOFError(Message("it ends too early"))
        yield machine.decompress(data, _CHUNK)


class ArchiveError(Exception):
    """Raised when an archive is refused, with the reason."""


def check_entries(entries: Iterable[ArchiveEntry], caps: Caps, packed: int) -> list[ArchiveEntry]:
    """Return the entries with normalized paths, folders before their content. Raises ArchiveError."""
    checked: list[ArchiveEntry] = []
    claims: dict[str, tuple[str, bool]] = {}
    total = 0
    for number, entry in enumerate(entries, 1):
        if number > caps.entries:
            raise too_many_entries(caps)
        if entry.problem:
            raise _refuse(entry.path, Message("is {problem}", problem=entry.problem))
        path = normalize_path(entry.path)
        if "__pycache__" in path.split("/"):
            raise _refuse(path, Message("is compiled Python, which nobody can review; pack it without"))
        if entry.size < 0 or (entry.is_folder and entry.size):
            raise _refuse(path, Message("has an impossible size"))
        total += entry.size
        if total > caps.bytes:
            raise too_large_unpacked(caps.bytes)
        if path:
            _check_collision(claims, path, is_folder=entry.is_folder)
            checked.append(replace(entry, path=path))
        elif not entry.is_folder:
            raise ArchiveError(Message("a file in it has no name"))
    if total > caps.max_unpacked(packed):
        raise ArchiveError(Message("it unpacks to more than {ratio} times its size", ratio=caps.ratio))
    if not checked:
        raise ArchiveError(Message("it is empty"))
    return checked


def normalize_path(name: str) -> str:
    """Return ``./a//b/`` as ``a/b``, empty for the top. Raises ArchiveError when it leaves the folder or is hidden."""
    _check_characters(name)
    if name.startswith("/") or _DRIVE.match(name):
        raise _refuse(name, Message("is an absolute path"))
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise _refuse(name, Message("leads out of the folder"))
    path = "/".join(parts)
    if len(parts) > _MAX_DEPTH or len(path.encode()) > _MAX_PATH or any(len(p.encode()) > _MAX_NAME for p in parts):
        raise _refuse(f"{name[:80]}...", Message("is too long or too deep"))
    return path


def too_many_entries(caps: Caps) -> ArchiveError:
    return ArchiveError(Message("it has more than {entries} entries", entries=caps.entries))


def too_large_unpacked(most: int) -> ArchiveError:
    """Return the error for an archive that unpacks to more than ``most`` bytes."""
    return ArchiveError(Message("it unpacks to more than {mib} MiB", mib=most >> 20))


def _refuse(path: str, why: Message) -> ArchiveError:
    return ArchiveError(Message("'{path}' {why}", path=escape_unprintable(path), why=why))


def _check_characters(name: str) -> None:
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ArchiveError(Message("the name '{name}' is not UTF-8", name=escape_unprintable(name))) from None
    if "\\" in name:
        raise _refuse(name, Message("has a backslash"))
    if any(unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp") for char in name):
        raise _refuse(name, Message("has hidden characters"))


def _check_collision(claims: dict[str, tuple[str, bool]], path: str, *, is_folder: bool) -> None:
    """Refuse a path that occurs twice, also when only its case differs, and a file where a folder is needed."""
    parts = path.split("/")
    for end in range(1, len(parts) + 1):
        part = "/".join(parts[:end])
        wants_folder = is_folder or end < len(parts)
        key = unicodedata.normalize("NFKC", part).casefold()
        other, was_folder = claims.get(key, (part, True))
        if other != part or (key in claims and not (was_folder and wants_folder)):
            raise _refuse(path, Message("collides with '{other}'", other=escape_unprintable(other)))
        claims[key] = (part, wants_folder)


ArchiveListing = tuple[list[ArchiveEntry], Callable[[ArchiveEntry], IO[bytes]]]


def list_zip(archive: zipfile.ZipFile) -> ArchiveListing:
    def content(entry: ArchiveEntry) -> IO[bytes]:
        return archive.open(cast("zipfile.ZipInfo", entry.member))

    return [_entry_from_zip(info) for info in archive.infolist()], content


def list_tar(file: IO[bytes], caps: Caps) -> ArchiveListing:
    try:
        archive = tarfile.open(fileobj=file, mode="r:", encoding="utf-8", errors="surrogateescape")  # noqa: SIM115
        entries = [_entry_from_tar(info) for info in _iter_members(archive, caps)]
    except (tarfile.TarError, OverflowError) as error:
        raise ArchiveError(Message("its list cannot be read ({error})", error=error)) from error

    def content(entry: ArchiveEntry) -> IO[bytes]:
        stream = archive.extractfile(cast("tarfile.TarInfo", entry.member))
        if stream is None:
            raise ArchiveError(Message("'{path}' has no content", path=entry.path))
        return stream

    return entries, content


def _iter_members(archive: tarfile.TarFile, caps: Caps) -> Iterator[tarfile.TarInfo]:
    """Yield at most one member more than allowed: a damaged archive can refer back to itself without end."""
    for _ in range(caps.entries + 1):
        info = archive.next()
        if info is None:
            return
        yield info


def _entry_from_zip(info: zipfile.ZipInfo) -> ArchiveEntry:
    mode = info.external_attr >> 16
    kind = stat.S_IFMT(mode)
    name = _decode_zip_name(info)
    is_folder = name.endswith("/")
    oddity: str = ""
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        oddity = Message("a link, a device or another thing that is no file")
    elif kind and (kind == stat.S_IFDIR) != is_folder:
        oddity = Message("both a file and a folder")
    elif info.flag_bits & _ENCRYPTED:
        oddity = Message("encrypted")
    elif info.compress_type not in _METHODS:
        oddity = Message("packed in an unusual way: make the archive again with an ordinary program")
    return ArchiveEntry(
        path=name,
        size=info.file_size,
        is_folder=is_folder,
        executable=bool(mode & 0o111),
        problem=oddity,
        member=info,
    )


def _decode_zip_name(info: zipfile.ZipInfo) -> str:
    """Return the stored name, including what follows a NUL. It must be UTF-8, even when it is not flagged so."""
    name = info.orig_filename
    if info.flag_bits & _UTF8 or name.isascii():
        return name
    return name.encode("cp437", "replace").decode("utf-8", "surrogateescape")


def _entry_from_tar(info: tarfile.TarInfo) -> ArchiveEntry:
    plain = info.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and not info.issparse()
    return ArchiveEntry(
        path=info.name,
        size=info.size,
        is_folder=info.isdir(),
        executable=bool(info.mode & 0o111),
        problem="" if plain or info.isdir() else _tar_problem(info),
        member=info,
    )


def _tar_problem(info: tarfile.TarInfo) -> str:
    if info.issym() or info.islnk():
        return Message("a link")
    if info.issparse():
        return Message("a file with holes")
    return Message("a device or another thing that is no file")
