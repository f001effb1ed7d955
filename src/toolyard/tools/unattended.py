"""Changes that may run unattended: of our own file tools, to the project's files, all of which can be undone.

Judged before a call runs, by where its paths really lead: a link to a protected place is that place. It holds until the
call is over, also for a batch and for calls beside it: nothing that runs unattended makes, moves or copies a link, and
what is moved or deleted is a plain file. Whatever is in doubt is not let through.

What other programs run or obey by themselves is not let through either: nobody would have seen it when it runs. These
are plugins' folders, the programs of MCP servers, files that are executable or begin with ``#!``, or would, and the
kinds and names of ``obeyed_files``.

The size of a change is measured before it runs, so that undo has room for it. What a batch replaces, copies, moves or
deletes must exist now, and no item before may touch it: so its size is known. A call may need half of what undo keeps
of one call, and all records together half of what undo keeps at most: so no unattended change pushes out the record of
another, and there is room again when old records expire, after ``RETENTION`` at the latest. The home's disk must have
space for several such calls. The other halves are for calls that a person allowed meanwhile; unattended calls take
turns (``engine.unattended_queue``).
"""

import json
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

from toolyard.message import Message
from toolyard.protocol.apply_patch import parse_patch
from toolyard.protocol.arguments import accept_arguments
from toolyard.protocol.call import split_batch
from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.tool import ToolSpec
from toolyard.tools.obeyed_files import find_reason
from toolyard.workspace.protected_paths import names_protected_path
from toolyard.workspace.undo_records import MAX_BYTES, MAX_FILES, MAX_TOTAL, RETENTION
from toolyard.workspace.workspace import Workspace

_TOOLS = frozenset({"Write", "Edit", "MultiEdit", "NotebookEdit", "ApplyPatch", "FileOperator"})
_WRITES = frozenset({
    "WriteFile", "WriteEscapedFile", "AppendFile", "EditFile", "ApplyDiff", "CopyFile", "CreateDirectory",
})  # fmt: skip
_TAKES = frozenset({"MoveFile", "RenameFile", "DeleteFile"})  # what stands at the path is gone from there
_NEEDS: Final = {
    "EditFile": "path", "ApplyDiff": "path", "DeleteFile": "path",
    "CopyFile": "source", "MoveFile": "source", "RenameFile": "source",
}  # fmt: skip
_ROOTS = frozenset({"plugin", "plugins"})  # of the project, where a plugin may come to stand
_PLACES: Final = ("path", "source", "destination")
_EXECUTABLE = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH
_SHEBANG = "#!"
_STEP = 512  # bytes of a record, but for its paths
_NOTED = 12  # bytes of a record for one of a path, which is in it twice and escaped
_COPIES = 4  # of what is replaced: the record, the trash, the transaction, the file itself
_AT_ONCE = 8  # calls of a reply
_SPARE = 256 * 1024 * 1024  # for whatever else is written just then: an edit can make a file grow


class _Weight(NamedTuple):
    """The size of a change: the bytes to bring back or to write, and those that go to the trash."""

    replaced: int
    deleted: int


class Unattended:
    def __init__(
        self, workspace: Workspace, built_in: Iterable[ToolSpec], home: Path, now: Callable[[], datetime]
    ) -> None:
        self._workspace, self._home, self._now = workspace, home, now
        self._specs = frozenset(spec for spec in built_in if spec.name in _TOOLS)

    def covers(self, spec: ToolSpec, arguments: Mapping[str, Json], guarded: Iterable[Path] = ()) -> bool:
        """Return whether a call may run unattended; each item of a batch must qualify, or only read.

        ``guarded``: the real paths of plugins' folders, and of whatever else runs without anybody asking.
        """
        if spec not in self._specs:  # the very one: another tool may have the same name elsewhere
            return False
        try:
            names = (*spec.parameter_names, *spec.synonyms)
            batch = split_batch(arguments, names) if spec.splits_batches else None
            items = [accept_arguments(spec, item) for item in batch or [dict(arguments)]]
            changing = [item for item in items if item.get("command") not in spec.reading_commands]
            places, touched = tuple(guarded), set[str]()
            weights = [self._weigh(item, places, touched) for item in changing]
            return self._has_room(sum(one.replaced for one in weights), sum(one.deleted for one in weights))
        except (Failure, OSError):
            return False

    def _weigh(self, arguments: JsonObject, guarded: tuple[Path, ...], touched: set[str]) -> _Weight:
        """Raises Failure when it is none of ours. ``touched`` by items before; what this one touches is added."""
        command = str(arguments.get("command") or "")
        if command and command not in _WRITES | _TAKES:
            raise _refusal(command)
        if _writes_script(arguments):
            raise _refusal(_SHEBANG)
        real = {path: self._resolve(path) for path in _list_paths(arguments)}
        needed = arguments.get(_NEEDS.get(command, ""))
        if needed is not None:
            self._require_known(str(needed), touched, plain=command in _TAKES)
        for place in (*(where for where, _ in real.values()), *_list_destinations(arguments, real)):
            if names_protected_path({"path": place}) or find_reason(place) or self._is_guarded(place, guarded):
                raise _refusal(place)
        touched |= {where for path, (where, _) in real.items() if command != "CopyFile" or path != needed}
        size = sum(size for _, size in real.values())
        noted = _STEP + sum(_NOTED * len(where.encode(errors="surrogatepass")) for where, _ in real.values())
        noted += len(json.dumps(arguments))
        return _Weight(noted, size) if command == "DeleteFile" else _Weight(noted + size, 0)

    def _has_room(self, replaced: int, deleted: int) -> bool:
        if replaced > MAX_BYTES // 2:
            return False
        held = self._list_record_sizes()
        if sum(held) + replaced > MAX_TOTAL // 2 or len(held) >= MAX_FILES // 2:
            return False
        disk = next(place for place in (self._home, *self._home.parents) if place.exists())  # the home comes later
        return _AT_ONCE * (_COPIES * replaced + deleted) + _SPARE <= shutil.disk_usage(disk).free

    def _list_record_sizes(self) -> list[int]:
        """The sizes of the files of records that undo holds and will not let go of for their age."""
        folder, oldest = self._home / "undo", (self._now() - RETENTION).timestamp()
        if not folder.exists():
            return []
        with os.scandir(folder) as entries:
            infos = [entry.stat(follow_symlinks=False) for entry in entries]
        return [info.st_size for info in infos if info.st_mtime >= oldest]

    def _is_guarded(self, real: str, guarded: tuple[Path, ...]) -> bool:
        place = self._workspace.root / real
        return real.partition("/")[0].casefold() in _ROOTS or any(place.is_relative_to(folder) for folder in guarded)

    def _resolve(self, path: str) -> tuple[str, int]:
        """Resolve a path; return the real path and the file's size. Raises Failure for an executable file."""
        try:
            with self._workspace.open_file(path) as file:
                if file.stat.st_mode & _EXECUTABLE or os.pread(file.fd, len(_SHEBANG), 0) == _SHEBANG.encode():
                    raise _refusal(path)
                return file.path, file.stat.st_size
        except Failure as failure:
            if failure.code not in (ErrorCode.NOT_FOUND, ErrorCode.IS_DIRECTORY):
                raise
            is_folder = failure.code is ErrorCode.IS_DIRECTORY
        if is_folder:
            with self._workspace.open_folder(path) as folder:
                return folder.path, 0
        with self._workspace.open_target(path) as target:
            return target.path, 0

    def _require_known(self, path: str, touched: set[str], *, plain: bool) -> None:
        """A file that stands there now: what an item before makes or changes is not known yet."""
        with self._workspace.open_file(path) as file, self._workspace.open_entry(path, follow=not plain) as entry:
            if file.path in touched or not stat.S_ISREG(entry.stat.st_mode):
                raise _refusal(path)


def _writes_script(arguments: JsonObject) -> bool:
    """Return whether any text of a call begins like a program, whatever the name of its file is."""
    return any(text.startswith(_SHEBANG) or f"\n+{_SHEBANG}" in text for text in _list_texts(arguments))


def _list_texts(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _list_texts(inner)


def _list_paths(arguments: JsonObject) -> Iterator[str]:
    yield from (str(arguments[name]) for name in _PLACES if arguments.get(name) is not None)
    if patch := arguments.get("patch"):
        for change in parse_patch(str(patch)):
            yield from (path for path in (change.path, change.new_path) if path)


def _list_destinations(arguments: JsonObject, real: Mapping[str, tuple[str, int]]) -> Iterator[str]:
    """List the paths it would get if the destination is a folder, or is one by then."""
    source, destination = arguments.get("source"), arguments.get("destination")
    if source is not None and destination is not None:
        yield f"{real[str(destination)][0]}/{real[str(source)][0].rpartition('/')[2]}".removeprefix("./")


def _refusal(what: str) -> Failure:
    return Failure(
        ErrorCode.ACCESS_DENIED,
        Message("file.person_look_first", "'{what}' is for a person to look at first.", what=what),
    )
