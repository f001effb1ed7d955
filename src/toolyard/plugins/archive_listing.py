"""The entries of zip and tar archives; nothing is unpacked here."""

import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from typing import IO, cast

from toolyard.message import Message
from toolyard.plugins.archive_entries import ArchiveEntry, ArchiveError, Caps

_UTF8 = 0x800
_ENCRYPTED = 0x1
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
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
        raise ArchiveError(
            Message("archive.unreadable_list", "its list cannot be read ({error})", error=error)
        ) from error

    def content(entry: ArchiveEntry) -> IO[bytes]:
        stream = archive.extractfile(cast("tarfile.TarInfo", entry.member))
        if stream is None:
            raise ArchiveError(Message("archive.no_content", "'{path}' has no content", path=entry.path))
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
        oddity = Message("archive.no_file", "a link, a device or another thing that is no file")
    elif kind and (kind == stat.S_IFDIR) != is_folder:
        oddity = Message("archive.file_and_folder", "both a file and a folder")
    elif info.flag_bits & _ENCRYPTED:
        oddity = Message("archive.encrypted", "encrypted")
    elif info.compress_type not in _METHODS:
        oddity = Message(
            "archive.unusual_packing", "packed in an unusual way: make the archive again with an ordinary program"
        )
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
        return Message("archive.link", "a link")
    if info.issparse():
        return Message("archive.sparse", "a file with holes")
    return Message("archive.device", "a device or another thing that is no file")
