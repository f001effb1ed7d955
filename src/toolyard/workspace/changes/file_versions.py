"""The versions of the files that a call wrote: their text before it and after it.

Taken from what undo keeps and from the files themselves, so only while a file is as the call left it, or as its undoing
did; of any other nothing is kept any more. At most ``MAX_FILES`` of a call, ``MAX_TEXT`` bytes of each text and
``MAX_ALL`` of all together; of the rest only the size is given. Read-only: nothing is locked or written.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from toolyard.protocol.envelope import ErrorCode, Failure
from toolyard.workspace.changes.undo_records import Change, UndoRecords, Written, checksum, reverse_id
from toolyard.workspace.document import MAX_BYTES
from toolyard.workspace.encoding import detect_encoding, looks_binary
from toolyard.workspace.workspace import Workspace

MAX_FILES = 50
MAX_TEXT = 512 * 1024
MAX_ALL = 4 * 1024 * 1024


class VersionState(StrEnum):
    TEXT = "text"
    NONE = "none"  # there was no file
    BINARY = "binary"
    TOO_LARGE = "too_large"
    GONE = "gone"  # the file has changed since: nobody has it any more


@dataclass(frozen=True, slots=True)
class FileVersion:
    state: VersionState
    bytes: int | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class FileVersions:
    path: str
    before: FileVersion
    after: FileVersion


_GONE = FileVersion(VersionState.GONE)
_Content: TypeAlias = bytes | FileVersion | None


class FileVersionsReader:
    def __init__(self, records: UndoRecords, workspace: Workspace, fallbacks: Sequence[str]) -> None:
        self._records, self._workspace, self._fallbacks = records, workspace, fallbacks

    def read(self, call_id: str) -> list[FileVersions]:
        """Read the files of a call, in the order of their first writes; none when nothing is kept of the call."""
        changes, undone = self._read_changes(call_id)
        left, versions = MAX_ALL, list[FileVersions]()
        for path, old, new in self._list_contents(changes):
            before, after = self._build_version(old, left), self._build_version(new, left)
            left -= sum(side.bytes or 0 for side in (before, after) if side.text is not None)
            versions.append(FileVersions(path, after, before) if undone else FileVersions(path, before, after))
        return versions

    def _read_changes(self, call_id: str) -> tuple[list[Change], bool]:
        """Read the changes of a call; or those of its undoing, and True."""
        try:
            return self._records.read(call_id), False
        except Failure as failure:
            if failure.code is not ErrorCode.CONFLICT:
                return [], False
        try:
            return self._records.read(reverse_id(call_id)), True
        except Failure:
            return [], False

    def _list_contents(self, changes: Sequence[Change]) -> Iterator[tuple[str, _Content, _Content]]:
        writes: dict[str, list[Written]] = {}
        for change in changes:
            if isinstance(change, Written):
                writes.setdefault(change.path, []).append(change)
        for path, steps in list(writes.items())[:MAX_FILES]:
            yield path, *self._read_both(path, steps)

    def _read_both(self, path: str, steps: Sequence[Written]) -> tuple[_Content, _Content]:
        try:
            with self._workspace.open_target(path) as target:
                if target.path != path:
                    return _GONE, _GONE
                new = old = target.read(MAX_BYTES)
        except Failure:
            return _GONE, _GONE
        for step in reversed(steps):
            if (None if old is None else checksum(old)) != step.after:
                return _GONE, _GONE
            old = step.restore_old(old)
        return old, new

    def _build_version(self, content: _Content, left: int) -> FileVersion:
        if isinstance(content, FileVersion):
            return content
        if content is None:
            return FileVersion(VersionState.NONE)
        if looks_binary(content):
            return FileVersion(VersionState.BINARY, len(content))
        if len(content) > min(MAX_TEXT, left):
            return FileVersion(VersionState.TOO_LARGE, len(content))
        encoding = detect_encoding(content, whole=True, fallbacks=self._fallbacks)
        return FileVersion(VersionState.TEXT, len(content), encoding.to_utf8(content[len(encoding.bom) :]).decode())
