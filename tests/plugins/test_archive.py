"""Hostile archives are refused whole and leave nothing behind; honest ones come out as they are."""

import bz2
import gzip
import io
import lzma
import os
import stat
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from toolyard.errors import ToolyardError
from toolyard.plugins.package.archive import Caps, extract_archive

pytestmark = pytest.mark.requirement("s:S-86")

GOOD = {"Plug/plugin-manifest.json": b"{}", "Plug/main.py": b"print()\n", "Plug/说明.md": "你好".encode()}
Change = Callable[[zipfile.ZipInfo], None]


def make_zip(*entries: tuple[str, bytes], change: Change = lambda info: None) -> bytes:
    """A zip; ``change`` has a last look at the last entry."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, (name, content) in enumerate(entries, 1):
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (stat.S_IFDIR | 0o755 if name.endswith("/") else stat.S_IFREG | 0o644) << 16
            if number == len(entries):
                change(info)
            archive.writestr(info, content)
    return file.getvalue()


def make_tar(*members: tarfile.TarInfo | tuple[str, bytes], form: int = tarfile.PAX_FORMAT) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=form) as archive:
        for member in members:
            info, content = (
                (member, b"") if isinstance(member, tarfile.TarInfo) else (tarfile.TarInfo(member[0]), member[1])
            )
            info.size = len(content) or info.size
            archive.addfile(info, io.BytesIO(content) if content else None)
    return file.getvalue()


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def attributes(mode: int) -> Change:
    def change(info: zipfile.ZipInfo) -> None:
        info.external_attr = mode << 16

    return change


def replace_name(archive: bytes, old: bytes, new: bytes) -> bytes:
    """Other bytes in place of a name, which no writer would write."""
    assert len(old) == len(new)
    assert old in archive
    return archive.replace(old, new)


def patch_zip_list(archive: bytes, offset: int, value: bytes) -> bytes:
    """Change one field of the first entry of a zip's list."""
    at = archive.index(b"PK\x01\x02") + offset
    return archive[:at] + value + archive[at + len(value) :]


def patch_zip_end(archive: bytes, offset: int, value: bytes) -> bytes:
    at = archive.rindex(b"PK\x05\x06") + offset
    return archive[:at] + value + archive[at + len(value) :]


def patch_tar_header(archive: bytes, offset: int, value: bytes) -> bytes:
    """The first header of a tar, changed, with the right sum."""
    head = bytearray(archive[:512])
    head[offset : offset + len(value)] = value
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    return bytes(head) + archive[512:]


def deep_links() -> bytes:
    """The shape of CVE-2025-4517: a path longer than can be resolved, made of links, and a file through it."""
    folder, members, place = "d" * 247, [], ""
    for letter in "abcdefghijklmnop":
        members.append(special(f"{place}{folder}", tarfile.DIRTYPE))
        members.append(special(f"{place}{letter}", tarfile.SYMTYPE, folder))
        place += f"{letter}/"
    members.append(special(f"{place}{'l' * 254}", tarfile.SYMTYPE, "../" * 16))
    members.append(special("escape", tarfile.SYMTYPE, f"{place}{'l' * 254}/../../etc"))
    return make_tar(*members, ("escape/passwd", b"root"))


def sparse() -> bytes:
    """Eight gigabytes of nothing in a kilobyte."""
    head = patch_tar_header(make_tar(("hole", b"1"), form=tarfile.GNU_FORMAT), 156, b"S")
    head = patch_tar_header(head, 386, b"%011o\0%011o\0" % (0, 1))
    return patch_tar_header(head, 483, b"%011o\0" % (2**33 - 1))


ZEROS = bytes(30 * 2**20)

HOSTILE = {
    "compiled Python": (make_zip(*GOOD.items(), ("Plug/lib/__pycache__/a.cpython-311.pyc", b"x")), "nobody can review"),
    "zip: parent": (make_zip(("../x", b"1")), "leads out of the folder"),
    "zip: parent in the middle": (make_zip(("a/../../x", b"1")), "leads out"),
    "zip: absolute": (make_zip(("/etc/x", b"1")), "an absolute path"),
    "zip: drive": (make_zip(("C:/x", b"1")), "an absolute path"),
    "zip: backslash": (make_zip(("a\\..\\..\\x", b"1")), "has a backslash"),
    "zip: link": (make_zip(("ok", b"1"), ("link", b"/etc/passwd"), change=attributes(stat.S_IFLNK | 0o777)), "a link"),
    "zip: device": (make_zip(("dev", b""), change=attributes(stat.S_IFCHR | 0o666)), "a link, a device"),
    "zip: pipe": (make_zip(("pipe", b""), change=attributes(stat.S_IFIFO | 0o666)), "a link, a device"),
    "zip: a folder that is a file": (make_zip(("a", b"1"), change=attributes(stat.S_IFDIR | 0o755)), "both a file and"),
    "zip: names that differ in case": (make_zip(("a/Main.py", b"1"), ("A/main.py", b"2")), "collides with"),
    "zip: names of two forms of one letter": (make_zip(("é", b"1"), ("e\u0301", b"2")), "collides with"),
    "zip: one name twice": (replace_name(make_zip(("aa", b"1"), ("ab", b"2")), b"ab", b"aa"), "collides with"),
    "zip: a file that is a folder too": (make_zip(("a", b"1"), ("a/b", b"2")), "collides with"),
    "zip: a name that is no UTF-8": (replace_name(make_zip(("name", b"1")), b"name", b"n\xb0\xa1e"), "is not UTF-8"),
    "zip: NUL in a name": (replace_name(make_zip(("good.txt?.py", b"1")), b"?", b"\0"), "hidden characters"),
    "zip: a name with a leading NUL": (replace_name(make_zip(("name", b"1")), b"name", b"\0ame"), "hidden characters"),
    "zip: hidden characters": (make_zip(("a\u202egnp.exe", b"1")), "\\u202egnp.exe' has hidden characters"),
    "zip: a path too long": (make_zip(("a/" * 600 + "x", b"1")), "too long or too deep"),
    "zip: a bomb": (make_zip(("zeros", ZEROS)), "more than 200 times its size"),
    "zip: too large": (patch_zip_list(make_zip(("big", b"1")), 24, struct.pack("<L", 0x7FFFFFFF)), "more than 200 MiB"),
    "zip: a size that is a lie": (patch_zip_list(make_zip(("lie", b"1" * 90)), 24, struct.pack("<L", 9)), "is damaged"),
    "zip: zip64 in the end": (patch_zip_end(make_zip(("a", b"1")), 16, b"\xff" * 4), "zip64"),
    "zip: more files than it says": (patch_zip_end(make_zip(("a", b"1")), 8, b"\2\0\1\0"), "contradicts itself"),
    "zip: encrypted": (patch_zip_list(make_zip(("a", b"1")), 8, b"\1\0"), "encrypted"),
    "zip: an unusual method": (patch_zip_list(make_zip(("a", b"1")), 10, b"\x0e\0"), "packed in an unusual way"),
    "zip: broken bytes": (b"PK\x03\x04" + bytes(900), "its end is missing"),
    "zip: cut off": (make_zip(("a", os.urandom(500)))[:300], "its end is missing"),
    "zip: empty": (make_zip(), "it is empty"),
    "tar: parent": (make_tar(("../x", b"1")), "leads out of the folder"),
    "tar: absolute": (make_tar(("/tmp/x", b"1")), "an absolute path"),
    "tar: link": (make_tar(special("link", tarfile.SYMTYPE, "/etc/passwd")), "'link' is a link"),
    "tar: link, then through it": (make_tar(special("a", tarfile.SYMTYPE, ".."), ("a/x", b"1")), "'a' is a link"),
    "tar: hard link": (make_tar(special("hard", tarfile.LNKTYPE, "/etc/passwd")), "'hard' is a link"),
    "tar: device": (make_tar(special("dev", tarfile.BLKTYPE)), "a device"),
    "tar: pipe": (make_tar(special("pipe", tarfile.FIFOTYPE)), "a device or another thing"),
    "tar: links too long to resolve (CVE-2025-4517)": (deep_links(), "is a link"),
    "tar: holes": (sparse(), "a file with holes"),
    "tar: a name that is no UTF-8": (patch_tar_header(make_tar(("abc", b"1")), 0, b"\xff\xfe\xfd"), "is not UTF-8"),
    "tar: a negative size (CVE-2025-8194)": (
        patch_tar_header(make_tar(("abc", b"1" * 600)), 124, b"\xff" * 8 + b"\xff\xff\xfa\x00"), "",
    ),
    "tar: cut off": (make_tar(("a", os.urandom(3000)))[:1500], ""),
    "tar: packed zeros": (gzip.compress(make_tar(("zeros", ZEROS))), "unpacks to more than"),
    "tar: packed, cut off": (gzip.compress(make_tar(("a", os.urandom(3000))))[:1000], "is damaged"),
    "tar: xz, cut off": (lzma.compress(make_tar(("a", os.urandom(3000))))[:1000], "is damaged"),
    "no archive": (b"#!/bin/sh\n" * 90, "no zip and no tar"),
    "nothing": (b"", "no zip and no tar"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_archive_is_refused_and_leaves_nothing(name: str, tmp_path: Path) -> None:
    content, reason = HOSTILE[name]
    (tmp_path / "archive").write_bytes(content)
    (tmp_path / "plugins").mkdir()
    with pytest.raises(ToolyardError) as caught:
        extract_archive(tmp_path / "archive", tmp_path / "plugins/target")
    assert reason in str(caught.value)
    assert list((tmp_path / "plugins").iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["archive", "plugins"]


@pytest.mark.parametrize(
    "pack", [bytes, gzip.compress, bz2.compress, lzma.compress], ids=["tar", "tar.gz", "tar.bz2", "tar.xz"]
)
def test_an_honest_tar_comes_out_as_it_is(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(pack(make_tar(*GOOD.items())))
    extract_archive(tmp_path / "a", tmp_path / "out")
    assert _files(tmp_path / "out") == GOOD


def test_an_honest_zip_comes_out_as_it_is_with_an_archive_inside_left_alone(tmp_path: Path) -> None:
    inner = make_zip(("../x", b"1"))
    (tmp_path / "a").write_bytes(make_zip(("./Plug//data/", b""), *GOOD.items(), ("Plug/inner.zip", inner)))
    extract_archive(tmp_path / "a", tmp_path / "out")
    assert _files(tmp_path / "out") == {**GOOD, "Plug/inner.zip": inner}
    assert (tmp_path / "out/Plug/data").is_dir()


def test_files_get_plain_modes_and_settings_are_kept_to_their_owner(tmp_path: Path) -> None:
    members = []
    for name, mode in (("run", 0o6777), ("data", 0o666), ("config.env", 0o644)):
        info = tarfile.TarInfo(name)
        info.mode, info.uid = mode, 0
        members.append(info)
    (tmp_path / "a").write_bytes(make_tar(*members))
    extract_archive(tmp_path / "a", tmp_path / "out")
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "out").iterdir()}
    assert modes == {"run": 0o755, "data": 0o644, "config.env": 0o600}


def test_nothing_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(make_zip(("x", b"new")))
    (tmp_path / "out").mkdir()
    (tmp_path / "out/x").write_bytes(b"old")
    with pytest.raises(ToolyardError, match="there is already a 'out'"):
        extract_archive(tmp_path / "a", tmp_path / "out")
    assert _files(tmp_path / "out") == {"x": b"old"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "out"]


@pytest.mark.parametrize("pack", [make_zip, make_tar])
def test_an_archive_with_more_entries_than_may_be_is_refused_by_its_list(
    pack: Callable[..., bytes], tmp_path: Path
) -> None:
    (tmp_path / "a").write_bytes(pack(*((f"f{number}", b"1") for number in range(12))))
    extract_archive(tmp_path / "a", tmp_path / "out", Caps(entries=12))
    with pytest.raises(ToolyardError, match="more than 11 entries"):
        extract_archive(tmp_path / "a", tmp_path / "other", Caps(entries=11))
    assert not (tmp_path / "other").exists()


def test_a_million_entries_are_refused_before_their_list_is_read(tmp_path: Path) -> None:
    small = make_zip(("f", b"1"))
    at, end = small.index(b"PK\x01\x02"), small.rindex(b"PK\x05\x06")
    listed = small[at:end] * 1_000_000
    tail = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 4000, 4000, len(listed), at, 0)
    (tmp_path / "a").write_bytes(small[:at] + listed + tail)
    with pytest.raises(ToolyardError, match="more than 5000 entries"):
        extract_archive(tmp_path / "a", tmp_path / "out")


def _files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
