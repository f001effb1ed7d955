"""The files of a plugin's folder for its review: what each is, whether it counts, and what has changed since.

Every file that the fingerprint covers is in the list, and the others of the plugin's own work up to ``MAX_LISTED``.
Only a file of the list can be read. Its text comes with the difference against the version that was reviewed, if that
was kept. Settings are left out: they hold secrets, and have a page of their own.
"""

import hashlib
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from toolyard.plugins.fingerprint import is_own_folder
from toolyard.plugins.plugin_files import BLOCK, CONFIG, MANIFEST
from toolyard.plugins.reviewed_files import MAX_FILE_BYTES, is_text
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.patch import build_patch

MAX_LISTED: Final = 500  # beside the files that count
_MAX_ENTRIES = 20_000
_SAMPLE = 8192
_LEFT_OUT = frozenset({CONFIG})


class FileKind(StrEnum):
    TEXT = "text"
    BINARY = "binary"
    LARGE = "large"  # a text beyond ``MAX_FILE_BYTES``
    LINK = "link"
    GONE = "gone"  # it was there when it was reviewed


class FileChange(StrEnum):
    NONE = "none"
    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedFile:
    path: str
    size: int
    kind: FileKind
    counts: bool  # the fingerprint covers it
    change: FileChange = FileChange.NONE

    def to_json(self) -> JsonObject:
        return {
            "path": self.path, "size": self.size, "kind": self.kind.value, "counts": self.counts,
            "change": self.change.value,
        }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class FileContent:
    """A file, its text, and the patch from the version that was reviewed to this one; None: there is none."""

    file: ListedFile
    digest: str
    text: str | None = None
    before: str | None = None

    def to_json(self) -> JsonObject:
        patch: Json = None
        if self.file.change is not FileChange.NONE and (self.before is not None or self.file.kind is FileKind.TEXT):
            is_known = self.before is not None or self.file.change is FileChange.ADDED
            patch = build_patch(self.before or "", self.text or "").to_json() if is_known else None
        return {**self.file.to_json(), "sha256": self.digest, "text": self.text, "structured_patch": patch}


def list_files(
    folder: Path, counted: Mapping[str, str], reviewed: Mapping[str, str] | None
) -> tuple[list[ListedFile], int]:
    """Return the files of a plugin, those that changed first, and how many more there are.

    ``counted`` are the files of its fingerprint with their digests, ``reviewed`` those of the permission, if any.
    """
    others, left_out = _find_others(folder, counted)
    counted = {path: digest for path, digest in counted.items() if path != MANIFEST or not (folder / BLOCK).exists()}
    files = [_describe(folder, path, counted, reviewed) for path in (*sorted(counted), *others)]
    files += [  # those that the fingerprint has no more
        ListedFile(path=path, size=0, kind=FileKind.GONE, counts=True, change=FileChange.REMOVED)
        for path in sorted({*(reviewed or ())} - {*counted})
    ]
    unique = {one.path: one for one in files}
    order = {MANIFEST: 0, BLOCK: 0}
    return sorted(
        unique.values(),
        key=lambda one: (one.change is FileChange.NONE, not one.counts, order.get(one.path, 1), one.path),
    ), left_out


def read_content(folder: Path, file: ListedFile, before: str | None) -> FileContent:
    """Return the content of a file that ``list_files`` has named."""
    if file.kind in (FileKind.GONE, FileKind.LINK):
        return FileContent(file=file, digest="", before=before)
    digest, content = hashlib.sha256(), b""
    with open(_open_inside(folder, file.path), "rb") as opened:
        while chunk := opened.read(2**20):
            digest.update(chunk)
            content = content if len(content) > MAX_FILE_BYTES else content + chunk
    text = content.decode(errors="replace") if file.kind is FileKind.TEXT and len(content) <= MAX_FILE_BYTES else None
    return FileContent(file=file, digest=digest.hexdigest(), text=text, before=before)


def _open_inside(folder: Path, path: str) -> int:
    """Open an ordinary file of the folder; a link that leads out of it is not followed."""
    full = os.path.realpath(folder / path)
    if not full.startswith(os.path.realpath(folder) + os.sep):
        raise PermissionError(f"{path} is outside of the folder")
    fd = os.open(full, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise PermissionError(f"{path} is no ordinary file")
    return fd


def _describe(folder: Path, path: str, counted: Mapping[str, str], reviewed: Mapping[str, str] | None) -> ListedFile:
    change = FileChange.NONE
    if reviewed is not None and path in counted and counted[path] != reviewed.get(path):
        change = FileChange.CHANGED if path in reviewed else FileChange.ADDED
    size, kind = _inspect(folder, path)
    return ListedFile(path=path, size=size, kind=kind, counts=path in counted, change=change)


def _inspect(folder: Path, path: str) -> tuple[int, FileKind]:
    try:
        if os.path.islink(folder / path):
            return 0, FileKind.LINK
        with open(_open_inside(folder, path), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            kind = FileKind.TEXT if is_text(file.read(_SAMPLE)) else FileKind.BINARY
    except OSError:
        return 0, FileKind.GONE
    return size, FileKind.LARGE if kind is FileKind.TEXT and size > MAX_FILE_BYTES else kind


def _find_others(folder: Path, counted: Mapping[str, str]) -> tuple[list[str], int]:
    """Return the other files of the plugin's own work, as many as are listed, and the number of the rest."""
    others: list[str] = []
    entries = 0
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if is_own_folder(name) and name != "__pycache__")
        for name in sorted(names):
            entries += 1
            path = os.path.relpath(os.path.join(place, name), folder)
            if path not in counted and path not in _LEFT_OUT:
                others.append(path)
        if entries > _MAX_ENTRIES:
            break
    return others[:MAX_LISTED], max(0, len(others) - MAX_LISTED)
