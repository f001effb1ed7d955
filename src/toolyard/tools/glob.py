"""Glob: the files whose paths match a pattern.

The walk is our own and not ripgrep's: it opens each folder relative to the one above it, enters only folders in which
something can match, has the ignore rules of LS, and takes no longer.
"""

import os
from collections.abc import Mapping
from typing import Any

from toolyard.message import Message, join_sentences
from toolyard.protocol.envelope import Failure
from toolyard.protocol.json import JsonObject
from toolyard.protocol.result_limits import MAX_LINES
from toolyard.protocol.tool import Checkpoint, Result, ToolCall, ToolSpec
from toolyard.tools.counts import count_files
from toolyard.tools.search_report import (
    TIME_CAP_S,
    build_failed_items,
    build_skip_stats,
    cut_to_page,
    describe_left_out,
    list_unreadable,
    path_text,
    split_path,
    timeout_failure,
)
from toolyard.tools.tool_words import load_text
from toolyard.tools.worker_thread import in_thread
from toolyard.workspace.search.file_glob import MAX_GROUPS, FileGlob, confine_pattern
from toolyard.workspace.search.file_walk import FileWalk, FolderMatches, TimeLimit, TimeLimitReached
from toolyard.workspace.search.ignore import read_rules_above
from toolyard.workspace.workspace import OpenHandle, Workspace

DEFAULT_LIMIT = 100

SPEC = ToolSpec(
    **load_text(__file__, default_limit=DEFAULT_LIMIT, max_limit=MAX_LINES, max_groups=MAX_GROUPS),
    parameters={
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "minLength": 1, "description": "The files to find, such as **/*.py."},
            "path": {
                "type": "string",
                "minLength": 1,
                "default": ".",
                "description": "The folder to look in, relative to the root.",
            },
            "sort": {
                "type": "string",
                "enum": ["path", "modified"],
                "default": "path",
                "description": "The order: by path, or the last changed first.",
            },
            "offset": {
                "type": "integer",
                "minimum": 0,
                "default": 0,
                "description": "How many paths to leave out first.",
            },
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": MAX_LINES,
                "default": DEFAULT_LIMIT,
                "description": "How many paths to return.",
            },
            "include_hidden": {
                "type": "boolean",
                "default": False,
                "description": "Also find names that begin with a dot, without one in the pattern.",
            },
            "include_ignored": {
                "type": "boolean",
                "default": False,
                "description": "Also find what .gitignore leaves out.",
            },
        },
        "required": ["pattern"],
        "additionalProperties": False,
    },
    examples=({"pattern": "**/*.md", "sort": "modified"},),
    splits_batches=True,
)


class Glob:
    spec = SPEC

    def __init__(self, workspace: Workspace, *, time_cap_s: float = TIME_CAP_S) -> None:
        self._workspace, self._time_cap_s = workspace, time_cap_s

    async def run(self, call: ToolCall, checkpoint: Checkpoint) -> Result:
        return await in_thread(self._glob, call.arguments, checkpoint)

    def _glob(self, arguments: Mapping[str, Any], checkpoint: Checkpoint) -> Result:
        with (
            self._workspace.open_folder(arguments["path"]) as folder,
            TimeLimit(self._time_cap_s, checkpoint) as time_limit,
        ):
            walk = self._walk(arguments, folder, time_limit)
            found = _FoundFiles(self._workspace, "" if folder.path == "." else f"{folder.path}/")
            try:
                for part in walk:
                    found.add(part)
            except TimeLimitReached:
                if not found.paths:
                    raise timeout_failure(SPEC.name, self._time_cap_s) from None
                walk.skipped.stopped = True
            return _build_result(arguments, folder.path, walk, found)

    def _walk(self, arguments: Mapping[str, Any], folder: OpenHandle, time_limit: TimeLimit) -> FileWalk:
        path = split_path(folder.path)
        pattern = confine_pattern(
            arguments["pattern"],
            "pattern",
            root=str(self._workspace.root),
            path=path,
            has=lambda name: os.access(name, os.F_OK, dir_fd=folder.fd, follow_symlinks=False),
        )
        return FileWalk(
            folder.fd,
            path,
            FileGlob.parse(pattern, "pattern", hidden=arguments["include_hidden"]),
            rules=None if arguments["include_ignored"] else read_rules_above(self._workspace, path),
            hidden=arguments["include_hidden"],
            times=arguments["sort"] == "modified",
            pause=time_limit.check,
        )


class _FoundFiles:
    """The files found, each with its time when that is wanted, else with 0."""

    def __init__(self, workspace: Workspace, base: str) -> None:
        self._workspace, self.base = workspace, base
        self.paths: list[str] = []
        self.times: list[int] = []
        self.links = 0  # that lead to no file inside the project

    def add(self, part: FolderMatches) -> None:
        place = self.base + part.below
        self.paths += [place + name for name in part.files]
        self.times += part.times
        for name in part.links:
            try:
                with self._workspace.open_file(path_text(place + name)) as file:
                    self.times.append(file.stat.st_mtime_ns)
                    self.paths.append(place + name)
            except Failure:
                self.links += 1

    def sort_paths(self, sort: str) -> list[str]:
        if sort == "path":
            return sorted(self.paths)
        return [path for _, path in sorted(zip((-time for time in self.times), self.paths, strict=True))]


def _build_result(arguments: Mapping[str, Any], where: str, walk: FileWalk, found: _FoundFiles) -> Result:
    offset, total = arguments["offset"], len(found.paths)
    page = cut_to_page(
        [path_text(path) for path in found.sort_paths(arguments["sort"])[offset : offset + arguments["limit"]]]
    )
    faults = list_unreadable(walk.skipped, found.base)
    data: JsonObject = {"paths": list(page), "truncated": offset + len(page) < total or walk.skipped.stopped}
    if faults:
        data["failed_items"] = build_failed_items(faults)
    text = join_sentences(
        _write_text(arguments, where, len(page), total), *describe_left_out(walk.skipped, arguments, faults)
    )
    return Result(
        data=data,
        text=text,
        stats={"total_matches": total, **build_skip_stats(walk.skipped, links=found.links, faults=len(faults))},
        context={"path_resolved": where, "truncation_skip": True},
    )


def _write_text(arguments: Mapping[str, Any], where: str, count: int, total: int) -> str:
    pattern, offset = arguments["pattern"], arguments["offset"]
    after = offset + count
    if not total:
        none = Message("No file in '{path}' matches '{pattern}'.", path=where, pattern=pattern)
        slash = Message("It ends in a slash, and only files are found: add **.")
        return join_sentences(none, slash if pattern.endswith("/") else "")
    if not count:
        return Message(
            "Only {files} in '{path}' match '{pattern}': none from offset {offset} on. Use a smaller offset.",
            files=count_files(total),
            path=where,
            pattern=pattern,
            offset=offset,
        )
    if after < total:
        return Message(
            "Found {files} in '{path}' that match '{pattern}' (truncated: {first}-{last} of {total}). "
            "Use offset={last} for the next ones, or narrow the pattern.",
            files=count_files(total),
            path=where,
            pattern=pattern,
            first=offset + 1,
            last=after,
            total=total,
        )
    if total == 1:
        return Message("Found 1 file in '{path}' that matches '{pattern}'.", path=where, pattern=pattern)
    if offset:
        return Message(
            "Found {files} in '{path}' that match '{pattern}' ({first}-{last} of {total}).",
            files=count_files(total),
            path=where,
            pattern=pattern,
            first=offset + 1,
            last=after,
            total=total,
        )
    return Message(
        "Found {files} in '{path}' that match '{pattern}'.", files=count_files(total), path=where, pattern=pattern
    )
