"""Changes that a person may let run unseen: of our own file tools, to the project's files, and all of it can be undone.

Judged before a call runs, by where its paths really lead: a link to a protected place is that place. It holds until the
call is over, also for a batch and for calls beside it, because nothing that runs unseen makes, moves or copies a link:
what is moved or deleted is a plain file. What stands in a plugin's folder is not let through either: it would run, and
some plugins run without anybody asking. Whatever is in doubt is not let through.
"""

import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from toolyard.protocol.apply_patch import parse
from toolyard.protocol.arguments import accept
from toolyard.protocol.call import split_batch
from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.tool import ToolSpec
from toolyard.workspace.protected import is_protected
from toolyard.workspace.undo_records import MAX_BYTES
from toolyard.workspace.workspace import Workspace

_TOOLS = frozenset({"Write", "Edit", "MultiEdit", "NotebookEdit", "ApplyPatch", "FileOperator"})
_WRITES = frozenset({
    "WriteFile", "WriteEscapedFile", "AppendFile", "EditFile", "ApplyDiff", "CopyFile", "CreateDirectory",
})  # fmt: skip
_TAKES = frozenset({"MoveFile", "RenameFile", "DeleteFile"})  # what stands at the path is gone from there
_ROOTS = frozenset({"plugin", "plugins"})  # of the project, where a plugin may come to stand
_PLACES: Final = ("path", "source", "destination")


class Unattended:
    def __init__(self, workspace: Workspace, built_in: Iterable[ToolSpec]) -> None:
        self._workspace = workspace
        self._specs = frozenset(spec for spec in built_in if spec.name in _TOOLS)

    def covers(self, spec: ToolSpec, arguments: Mapping[str, Json], plugins: Iterable[Path] = ()) -> bool:
        """Whether such a call is one of them; each item of a batch must be, or only look. ``plugins`` are folders."""
        if spec not in self._specs:  # the very one: another tool may have the same name elsewhere
            return False
        try:
            names = (*spec.parameter_names, *spec.synonyms)
            batch = split_batch(arguments, names) if spec.splits_batches else None
            items = [accept(spec, item) for item in batch or [dict(arguments)]]
            changing = [item for item in items if item.get("command") not in spec.reading_commands]
            guarded = tuple(plugins)
            replaced = sum(self._weighed(item, guarded) for item in changing)
        except Failure:
            return False
        return replaced <= MAX_BYTES // 2  # half: a batch may replace what it has just written

    def _weighed(self, wanted: JsonObject, guarded: tuple[Path, ...]) -> int:
        """The bytes that undoing a change has to bring back; raises Failure when it is none of ours."""
        command = wanted.get("command")
        if command is not None and command not in _WRITES | _TAKES:
            raise _unfit(str(command))
        weight = 0
        for path in _places(wanted):
            real, size = self._real(path)
            if is_protected({"path": real}) or self._is_of_plugin(real, guarded):
                raise _unfit(path)
            weight += 0 if command in _TAKES else size
        if command in _TAKES:
            self._require_plain(str(wanted.get("source") or wanted.get("path")))
        return weight

    def _is_of_plugin(self, real: str, guarded: tuple[Path, ...]) -> bool:
        place = self._workspace.root / real
        return real.partition("/")[0].casefold() in _ROOTS or any(place.is_relative_to(folder) for folder in guarded)

    def _real(self, path: str) -> tuple[str, int]:
        """Where a path leads, and how much stands there."""
        try:
            with self._workspace.file(path) as file:
                return file.path, file.stat.st_size
        except Failure as failure:
            if failure.code not in (ErrorCode.NOT_FOUND, ErrorCode.IS_DIRECTORY):
                raise
            is_folder = failure.code is ErrorCode.IS_DIRECTORY
        if is_folder:
            with self._workspace.folder(path) as folder:
                return folder.path, 0
        with self._workspace.target(path) as target:
            return target.path, 0

    def _require_plain(self, path: str) -> None:
        try:
            with self._workspace.entry(path, follow=False) as entry:
                if not stat.S_ISREG(entry.stat.st_mode):
                    raise _unfit(path)
        except Failure as failure:
            if failure.code is not ErrorCode.NOT_FOUND:  # an item before it may be about to make it
                raise


def _places(wanted: JsonObject) -> Iterator[str]:
    yield from (str(wanted[name]) for name in _PLACES if wanted.get(name) is not None)
    if patch := wanted.get("patch"):
        for change in parse(str(patch)):
            yield from (path for path in (change.path, change.new_path) if path)


def _unfit(what: str) -> Failure:
    return Failure(ErrorCode.ACCESS_DENIED, f"'{what}' is for a person to look at first.")
