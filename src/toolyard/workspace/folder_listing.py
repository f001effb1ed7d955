"""The entries of a folder, for a person who chooses a path: names and types, and nothing that is read from the files.

Folders come first, and names that begin with a dot come after the others.
"""

import os
import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final, Literal, TypeAlias

from toolyard.protocol.envelope import ErrorCode, Failure
from toolyard.protocol.json import JsonObject
from toolyard.workspace.path_walk import to_text
from toolyard.workspace.workspace import Workspace

MAX_ENTRIES: Final = 2000  # that a person scrolls through; beyond that the listing says so
_MAX_SEEN: Final = 20_000

EntryType: TypeAlias = Literal["folder", "file", "link"]


@dataclass(frozen=True, slots=True)
class FolderEntry:
    name: str
    path: str  # relative to the root
    type: EntryType

    def to_json(self) -> JsonObject:
        return {"name": self.name, "path": self.path, "type": self.type}


@dataclass(frozen=True, slots=True)
class FolderListing:
    path: str  # relative to the root, which is "."
    entries: tuple[FolderEntry, ...]
    truncated: bool

    def to_json(self) -> JsonObject:
        return {
            "path": self.path,
            "entries": [entry.to_json() for entry in self.entries],
            "truncated": self.truncated,
        }


def list_nearest_folder(workspace: Workspace, path: str) -> FolderListing:
    """List a folder, or the nearest one above a path that is none. Raises Failure for paths outside. Blocks."""
    while True:
        try:
            return list_folder(workspace, path)
        except Failure as failure:
            above = posixpath.dirname(path.rstrip("/"))
            if failure.code not in (ErrorCode.NOT_FOUND, ErrorCode.INVALID_PARAM) or above == path:
                raise
            path = above or "."


def list_folder(workspace: Workspace, path: str) -> FolderListing:
    """List a folder inside the root. Raises Failure. Blocks."""
    with workspace.open_folder(path) as folder, os.scandir(folder.fd) as scanned:
        entries = list(_describe_entries(islice(scanned, _MAX_SEEN), folder.path))
    entries.sort(key=lambda entry: (entry.type != "folder", entry.name.startswith("."), entry.name.casefold()))
    return FolderListing(folder.path, tuple(entries[:MAX_ENTRIES]), len(entries) > MAX_ENTRIES)


def _describe_entries(scanned: "Iterator[os.DirEntry[str]]", folder: str) -> Iterator[FolderEntry]:
    for entry in scanned:
        kind = _entry_type(entry)
        if kind is not None:
            name = to_text(os.fsencode(entry.name))
            yield FolderEntry(name, name if folder == "." else f"{folder}/{name}", kind)


def _entry_type(entry: "os.DirEntry[str]") -> EntryType | None:
    """Return the type of an entry; None for devices, pipes and sockets, which no tool reads."""
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    return "file" if entry.is_file(follow_symlinks=False) else None
