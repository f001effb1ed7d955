"""The lists of zip and tar archives as entries; nothing is unpacked here."""

import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from typing import IO, cast

from toolyard.plugins.archive_entries import Caps, Entry, Refused

_UTF8 = 0x800
_ENCRYPTED = 0x1
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
Listed = tuple[list[Entry], Callable[[Entry], IO[bytes]]]


def zip_entries(archive: zipfile.ZipFile) -> Listed:
    def content(entry: Entry) -> IO[bytes]:
        return archive.open(cast("zipfile.ZipInfo", entry.member))

    return [_from_zip(info) for info in archive.infolist()], content


def tar_entries(file: IO[bytes], caps: Caps) -> Listed:
    try:
        archive = tarfile.open(fileobj=file, mode="r:", encoding="utf-8", errors="surrogateescape")  # noqa: SIM115
        entries = [_from_tar(info) for info in _members(archive, caps)]
    except (tarfile.TarError, OverflowError) as error:
        raise Refused(f"its list cannot be read ({error})") from error

    def content(entry: Entry) -> IO[bytes]:
        stream = archive.extractfile(cast("tarfile.TarInfo", entry.member))
        if stream is None:
            raise Refused(f"'{entry.path}' has no content")
        return stream

    return entries, content


def _members(archive: tarfile.TarFile, caps: Caps) -> Iterator[tarfile.TarInfo]:
    """One more than may be, at most: a list that leads back into itself has no end."""
    for _ in range(caps.entries + 1):
        info = archive.next()
        if info is None:
            return
        yield info


def _from_zip(info: zipfile.ZipInfo) -> Entry:
    mode = info.external_attr >> 16
    kind = stat.S_IFMT(mode)
    name = _zip_name(info)
    is_folder = name.endswith("/")
    oddity = ""
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        oddity = "a link, a device or another thing that is no file"
    elif kind and (kind == stat.S_IFDIR) != is_folder:
        oddity = "both a file and a folder"
    elif info.flag_bits & _ENCRYPTED:
        oddity = "encrypted"
    elif info.compress_type not in _METHODS:
        oddity = "packed in an unusual way: make the archive again with an ordinary program"
    return Entry(
        path=name,
        size=info.file_size,
        is_folder=is_folder,
        executable=bool(mode & 0o111),
        oddity=oddity,
        member=info,
    )


def _zip_name(info: zipfile.ZipInfo) -> str:
    """As the archive has it, also what stands behind a NUL. A name must be UTF-8, also one that is not marked so."""
    name = info.orig_filename
    if info.flag_bits & _UTF8 or name.isascii():
        return name
    return name.encode("cp437", "replace").decode("utf-8", "surrogateescape")


def _from_tar(info: tarfile.TarInfo) -> Entry:
    plain = info.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and not info.issparse()
    return Entry(
        path=info.name,
        size=info.size,
        is_folder=info.isdir(),
        executable=bool(info.mode & 0o111),
        oddity="" if plain or info.isdir() else _oddity(info),
        member=info,
    )


def _oddity(info: tarfile.TarInfo) -> str:
    if info.issym() or info.islnk():
        return "a link"
    if info.issparse():
        return "a file with holes"
    return "a device or another thing that is no file"
