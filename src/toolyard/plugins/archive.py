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
import shutil
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from toolyard.crashpoint import crashpoint
from toolyard.errors import ToolyardError
from toolyard.message import Message
from toolyard.plugins.archive_entries import (
    ArchiveEntry,
    ArchiveError,
    Caps,
    check_entries,
    too_large_unpacked,
    too_many_entries,
)
from toolyard.plugins.archive_listing import list_tar, list_zip

_CHUNK = 256 * 1024
_XZ_MEMORY = 128 * 2**20
_ENTRY_ROOM = 4096  # of an unpacked tar, for the headers and the padding of one entry
_LIST_ROOM = 1024  # of a zip's list, for one entry
_END = struct.Struct("<4s4H2LH")  # the last record of a zip
_MAX_COMMENT = 65535
_BROKEN = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, RuntimeError, ValueError)
Opened = tuple[list[ArchiveEntry], Callable[[ArchiveEntry], IO[bytes]]]


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
        raise ToolyardError(
            Message("plugin.archive_refused", "{archive} is refused: {refused}", archive=archive, refused=refused)
        ) from refused
    except _BROKEN as error:
        raise ToolyardError(
            Message("plugin.archive_damaged", "{archive} is damaged: {error}", archive=archive, error=error)
        ) from error
    except OSError as error:
        raise ToolyardError(
            Message(
                "plugin.cannot_unpacked",
                "{archive} cannot be unpacked: {error}",
                archive=archive,
                error=error.strerror or error,
            )
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
            raise ArchiveError(
                Message("archive.size_differs", "'{path}' has another size than the archive says", path=entry.path)
            )
        os.fchmod(fd, entry.mode)


def move_into_place(draft: Path, target: Path) -> None:
    """Give a finished folder its name, unless something has that name already. Raises ArchiveError."""
    try:
        target.mkdir()
    except FileExistsError:
        raise ArchiveError(
            Message("archive.name_taken", "there is already a '{name}' where it would go", name=target.name)
        ) from None
    try:
        draft.chmod(0o755)
        crashpoint("plugin.before-unpacked")
        draft.rename(target)
    except BaseException:
        target.rmdir()
        raise


@contextmanager
def _open_archive(archive: Path, caps: Caps) -> Iterator[Opened]:
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
        raise ArchiveError(Message("archive.no_end", "its end is missing"))
    _, disk, first, here, entries, length, start, comment = _END.unpack_from(tail, at)
    if b"PK\x06\x07" in tail[max(0, at - 20) : at] or 0xFFFF in (here, entries) or 0xFFFFFFFF in (length, start):
        raise ArchiveError(Message("archive.zip64", "it is in the zip64 format: make it again as an ordinary zip"))
    if disk or first or here != entries or len(tail) - at - _END.size != comment:
        raise ArchiveError(Message("archive.contradictory_end", "its end contradicts itself"))
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
        raise ArchiveError(Message("archive.unknown_format", "it is no zip and no tar archive"))
    while chunk := stream.read(_CHUNK):
        yield chunk


def _decompress_xz(file: IO[bytes]) -> Iterator[bytes]:
    """Decompress xz. ``lzma.open`` would take as much memory as the archive asks for."""
    machine = lzma.LZMADecompressor(memlimit=_XZ_MEMORY)
    while not machine.eof:
        data = file.read(_CHUNK) if machine.needs_input else b""
        if machine.needs_input and not data:
            raise EOFError(Message("archive.ends_early", "it ends too early"))
        yield machine.decompress(data, _CHUNK)
