"""LS: the entries of a folder."""

import os
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from toolyard.message import Message, join_sentences
from toolyard.protocol.json import Json
from toolyard.protocol.result_limits import MAX_LINES
from toolyard.protocol.tool import Checkpoint, Result, ToolCall, ToolSpec
from toolyard.tools.counts import count_entries, count_left_out
from toolyard.tools.search_report import cut_to_page, split_path
from toolyard.tools.tool_words import load_text
from toolyard.tools.worker_thread import in_thread
from toolyard.workspace.home_folder import is_private
from toolyard.workspace.path_walk import to_text
from toolyard.workspace.search.ignore import IgnoreRules, read_rules, read_rules_above
from toolyard.workspace.workspace import Workspace

DEFAULT_LIMIT = 100
MAX_DEPTH = 20
MAX_SEEN = 200_000  # entries looked at in one call: beyond that the listing says so and stops
_CHECK_EVERY = 256

SPEC = ToolSpec(
    **load_text(__file__, default_limit=DEFAULT_LIMIT, max_limit=MAX_LINES, max_depth=MAX_DEPTH),
    parameters={
        "type": "object",
        "properties": {
            "path": {
                "type": "string",
                "minLength": 1,
                "default": ".",
                "description": "The folder, relative to the root.",
            },
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": MAX_LINES,
                "default": DEFAULT_LIMIT,
                "description": "How many entries to list.",
            },
            "offset": {
                "type": "integer",
                "minimum": 0,
                "default": 0,
                "description": "How many entries to leave out first.",
            },
            "include_hidden": {"type": "boolean", "default": False, "description": "List names that begin with a dot."},
            "include_ignored": {"type": "boolean", "default": False, "description": "List what .gitignore leaves out."},
            "ignore": {
                "type": "array",
                "items": {"type": "string"},
                "default": [],
                "description": "Patterns to leave out, as in .gitignore.",
            },
            "depth": {
                "type": "integer",
                "minimum": 1,
                "maximum": MAX_DEPTH,
                "default": 1,
                "description": "How many levels to look into.",
            },
        },
        "additionalProperties": False,
    },
    examples=({"path": ".", "depth": 2},),
    splits_batches=True,
)


class LS:
    spec = SPEC

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    async def run(self, call: ToolCall, checkpoint: Checkpoint) -> Result:
        return await in_thread(self._list, call.arguments, checkpoint)

    def _list(self, arguments: Mapping[str, Any], checkpoint: Checkpoint) -> Result:
        offset, limit = arguments["offset"], arguments["limit"]
        with self._workspace.open_folder(arguments["path"]) as folder:
            base = split_path(folder.path)
            scan = _FolderScan(arguments, checkpoint, IgnoreRules().with_lines(arguments["ignore"], len(base)))
            scan.scan_folder(folder.fd, base, read_rules_above(self._workspace, base), arguments["depth"])
            where = folder.path
        entries = sorted(scan.entries, key=lambda entry: (entry["type"] != "dir", entry["path"]))
        page = cut_to_page(entries[offset : offset + limit])
        more = offset + len(page) < len(entries)
        stats: dict[str, int | float | str] = {
            "total_entries": len(entries),
            "hidden": scan.hidden,
            "ignored": scan.ignored,
        }
        if scan.special:
            stats["skipped_special"] = scan.special
        if scan.unreadable:
            stats["skipped_unreadable"] = scan.unreadable
        return Result(
            data={"entries": list(page), "truncated": more or scan.stopped},
            text=_write_text(where, offset, len(page), len(entries), scan),
            partial=bool(scan.unreadable),
            stats=stats,
            context={"path_resolved": where, "truncation_skip": True},
        )


class _FolderScan:
    """A scan of a folder: the entries found, and counts of those left out."""

    def __init__(self, arguments: Mapping[str, Any], checkpoint: Checkpoint, excluded: IgnoreRules) -> None:
        """``excluded``: by the patterns of the caller."""
        self.arguments, self.checkpoint, self.excluded = arguments, checkpoint, excluded
        self.entries: list[dict[str, Json]] = []
        self.seen = self.hidden = self.ignored = self.special = self.unreadable = 0
        self.stopped = False

    def scan_folder(self, fd: int, base: tuple[str, ...], rules: IgnoreRules, depth: int) -> None:
        rules = rules.with_lines(read_rules(fd), len(base))
        folders = []
        for entry in self._scan_entries(fd):
            path = (*base, os.fsencode(entry.name).decode(errors="surrogateescape"))
            kind = _entry_type(entry)
            is_folder = kind == "dir"
            if entry.name.startswith(".") and not self.arguments["include_hidden"]:
                self.hidden += 1
            elif self.excluded.is_ignored(path, is_folder=is_folder) or (
                not self.arguments["include_ignored"] and rules.is_left_out(path, is_folder=is_folder)
            ):
                self.ignored += 1
            elif kind is None:
                self.special += 1
            else:
                self.entries.append(
                    _describe_entry(entry, to_text("/".join(path).encode(errors="surrogateescape")), kind)
                )
                if is_folder and depth > 1:
                    folders.append((entry.name, path))
        for name, path in folders:
            self._enter_folder(fd, name, path, rules, depth - 1)

    def _scan_entries(self, fd: int) -> Iterator["os.DirEntry[str]"]:
        with os.scandir(fd) as entries:
            for entry in entries:
                if self.seen >= MAX_SEEN:
                    self.stopped = True
                    return
                if self.seen % _CHECK_EVERY == 0:
                    self.checkpoint()
                self.seen += 1
                yield entry

    def _enter_folder(self, fd: int, name: str, path: tuple[str, ...], rules: IgnoreRules, depth: int) -> None:
        try:
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
        except OSError:  # gone, changed or not ours to read since we saw it
            self.unreadable += 1
            return
        try:
            if is_private(inner):
                return
            self.scan_folder(inner, path, rules, depth)
        finally:
            os.close(inner)


def _entry_type(entry: "os.DirEntry[str]") -> str | None:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "dir"
    return "file" if entry.is_file(follow_symlinks=False) else None


def _describe_entry(entry: "os.DirEntry[str]", path: str, kind: str) -> dict[str, Json]:
    fields: dict[str, Json] = {"path": f"{path}/" if kind == "dir" else path, "type": kind}
    try:
        info = entry.stat(follow_symlinks=False)
    except OSError:
        return fields  # gone since we saw its name
    if stat.S_ISREG(info.st_mode):
        fields["size"] = info.st_size
    with suppress(ValueError, OverflowError, OSError):  # some file systems keep times that no calendar has
        fields["mtime"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(info.st_mtime))
    return fields


def _write_text(where: str, offset: int, shown: int, total: int, scan: _FolderScan) -> str:
    after = offset + shown
    if offset and not shown:
        listed = Message(
            "'{path}' has only {entries}: none from offset {offset} on. Use a smaller offset.",
            path=where,
            entries=count_entries(total),
            offset=offset,
        )
    elif after < total:
        listed = Message(
            "Listed {entries} in '{path}' (truncated: {first}-{last} of {total}). "
            "Use offset={last} for the next ones, or narrow the listing with path or ignore.",
            entries=count_entries(shown),
            path=where,
            first=offset + 1,
            last=after,
            total=total,
        )
    elif offset:
        listed = Message(
            "Listed {entries} in '{path}' ({first}-{last} of {total}).",
            entries=count_entries(shown),
            path=where,
            first=offset + 1,
            last=after,
            total=total,
        )
    else:
        listed = Message("Listed {entries} in '{path}'.", entries=count_entries(shown), path=where)
    return join_sentences(
        listed,
        _describe_left_out(scan),
        Message("Not readable: {count} of the folders. Check their permissions.", count=scan.unreadable)
        if scan.unreadable
        else "",
        Message("Stopped after looking at {most} entries: list a subfolder instead.", most=MAX_SEEN)
        if scan.stopped
        else "",
    )


def _describe_left_out(scan: _FolderScan) -> str:
    counts = count_left_out(scan.hidden, scan.ignored)
    if not counts:
        return ""
    kinds = [kind for kind, count in (("hidden", scan.hidden), ("ignored", scan.ignored)) if count]
    switches = ", ".join(f"include_{kind}" for kind in kinds if not scan.arguments[f"include_{kind}"])
    why = switches or Message("by your own patterns")
    return Message("Not listed: {counts} ({why}).", counts=counts, why=why)
