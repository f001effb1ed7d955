"""ListAllowedDirectories, ListDirectory, FileInfo and SearchFiles: what is there, and which names match a pattern.

A search opens each folder relative to the one above it and never through a link, so it never leaves the project. What
.gitignore leaves out is not searched unless ``includeIgnored`` asks for it; hidden names need ``includeHidden``, or a
part of the pattern that begins with a dot and matches them. Braces are text (S-18).
"""

import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from toolyard.message import Message, join_sentences
from toolyard.protocol.arguments import coerce_value
from toolyard.protocol.content import Text
from toolyard.protocol.envelope import ErrorCode, Extras, Failure
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.tool import Checkpoint, Result
from toolyard.tools.counts import count_items
from toolyard.tools.operations.command import Request, build_facts, file_type, format_time
from toolyard.workspace.home_folder import is_private
from toolyard.workspace.path_walk import to_text
from toolyard.workspace.search.file_glob import INCOMPLETE, can_match
from toolyard.workspace.search.ignore import IgnoreRules, read_rules, read_rules_above
from toolyard.workspace.search.wildcard import Segment, compile_path, compile_segment, matches_path
from toolyard.workspace.workspace import OpenHandle, Workspace

MAX_ITEMS = 1000
_CHECK_EVERY = 256


class Listing:
    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def list_allowed_directories(self, request: Request) -> Result:
        with self._workspace.open_folder(".") as root:
            items = list(_scan_items(root, request.checkpoint))
        shown = _sort_items(item for item in items if not item["isHidden"])[:MAX_ITEMS]
        inside: list[Json] = [{"name": item["name"], "type": item["type"]} for item in shown]
        text = Message(
            "The project is the only folder that may be used: {items} in it, and all below them. "
            "Paths are relative to it, or absolute inside it.",
            items=count_items(len(shown)),
        )
        return Result(
            data={"allowedRoots": {".": inside}},
            text=text,
            context={"path_resolved": "."},
            extras=Extras(parts=(Text(text), Text(json.dumps(inside, ensure_ascii=False, indent=2)))),
        )

    def list_directory(self, request: Request) -> Result:
        with self._workspace.open_folder(request["path"]) as folder:
            items = list(_scan_items(folder, request.checkpoint))
            where = folder.path
        visible = _sort_items(item for item in items if request["showHidden"] or not item["isHidden"])
        shown = visible[:MAX_ITEMS]
        hidden = len(items) - len(visible)
        text = join_sentences(
            Message("Directory listing of '{path}' ({items}).", path=where, items=count_items(len(shown))),
            Message("Truncated: {total} in all. LS lists the rest page by page.", total=len(visible))
            if len(shown) < len(visible)
            else "",
            Message("Not listed: {count} hidden (showHidden).", count=hidden) if hidden else "",
        )
        return Result(
            data={
                "path": where,
                "items": list(shown),
                "totalItems": len(visible),
                "truncated": len(shown) < len(visible),
            },
            text=text,
            stats={"total_items": len(visible), "hidden": len(items) - len(visible)},
            context={"path_resolved": where},
        )

    def file_info(self, request: Request) -> Result:
        with self._workspace.open_entry(request["path"], follow=False) as entry:
            is_link = stat.S_ISLNK(entry.stat.st_mode)
        with self._workspace.open_entry(request["path"], follow=True) as entry:
            info, path = entry.stat, entry.path
        about: JsonObject = {
            **build_facts(path, info),
            "directory": path.rpartition("/")[0] or ".",
            "extension": os.path.splitext(path)[1],
            "lastAccessed": format_time(info.st_atime),
            "created": format_time(getattr(info, "st_birthtime", None)),
            "permissions": info.st_mode,
            "mode": stat.filemode(info.st_mode),
            "isDirectory": stat.S_ISDIR(info.st_mode),
            "isFile": stat.S_ISREG(info.st_mode),
            "isSymbolicLink": is_link,
        }
        text = (
            Message(
                "Information about '{path}': {type}, last modified {time}.",
                path=path,
                type=about["type"],
                time=about["lastModified"],
            )
            if about["size"] is None
            else Message(
                "Information about '{path}': {type}, {size}, last modified {time}.",
                path=path,
                type=about["type"],
                size=about["sizeFormatted"],
                time=about["lastModified"],
            )
        )
        return Result(data={"info": about}, text=text, context={"path_resolved": path})


def _scan_items(folder: OpenHandle, checkpoint: Checkpoint) -> Iterator[JsonObject]:
    base = "" if folder.path == "." else f"{folder.path}/"
    with os.scandir(folder.fd) as entries:
        for number, entry in enumerate(entries):
            if number % _CHECK_EVERY == 0:
                checkpoint()
            path = base + to_text(os.fsencode(entry.name))
            if IgnoreRules().is_left_out(tuple(path.split("/")), is_folder=True):
                continue  # our own stored outputs
            try:
                info = entry.stat(follow_symlinks=False)
            except OSError:
                continue  # gone since we saw its name
            yield {**build_facts(path, info), "permissions": info.st_mode, "isHidden": entry.name.startswith(".")}


def _sort_items(items: Iterator[JsonObject]) -> list[JsonObject]:
    return sorted(items, key=lambda item: (item["type"] != "directory", str(item["name"])))


MAX_RESULTS = 100
MAX_SEEN = 200_000
_MAX_DEPTH = 100  # each level keeps one folder open
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE_TYPES = ("all", "file", "directory")


class Searching:
    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def search_files(self, request: Request) -> Result:
        options = SearchOptions.parse(request.get("options"))
        pattern: str = request["pattern"]
        folded = options.fold_case(pattern)
        search = _Search(options, _compile_pattern(folded), _compile_dotted(folded), request.checkpoint)
        with self._workspace.open_folder(request["path"]) as folder:
            base = () if folder.path == "." else tuple(folder.path.split("/"))
            search.scan_folder(folder.fd, base, (), read_rules_above(self._workspace, base))
            where = folder.path
        results = sorted(search.results, key=lambda item: str(item["path"]))
        shown = results[:MAX_RESULTS]
        truncated = len(shown) < len(results) or search.stopped
        text = join_sentences(
            Message(
                "Search results for '{pattern}' in '{path}' ({count} of {total}).",
                pattern=pattern,
                path=where,
                count=len(shown),
                total=len(results),
            ),
            Message("Truncated: narrow the pattern or the folder.") if truncated else "",
            Message("Braces in a pattern are text: search once for each of their choices.")
            if not results and "{" in pattern
            else "",
            Message("Not searched: {count} hidden or ignored (includeHidden, includeIgnored).", count=search.left_out)
            if search.left_out
            else "",
            Message("Not readable: {count} of the folders.", count=search.unreadable) if search.unreadable else "",
        )
        return Result(
            data={
                "searchPath": where,
                "pattern": pattern,
                "results": list(shown),
                "totalResults": len(results),
                "truncated": truncated,
            },
            text=text,
            partial=bool(search.unreadable),
            stats={"total_results": len(results), "left_out": search.left_out},
            context={"path_resolved": where},
        )


@dataclass(frozen=True, slots=True)
class SearchOptions:
    case_sensitive: bool = False
    include_hidden: bool = False
    include_ignored: bool = False
    file_type: str = "all"

    @classmethod
    def parse(cls, value: Json) -> "SearchOptions":
        """Parse the options from an object, or from a text that holds one."""
        if value is None or value == "":
            return cls()
        given = coerce_value(value, {"type": "object"})
        if not isinstance(given, Mapping):
            raise _invalid_options(Message("must be a JSON object"))
        values: dict[str, bool | str] = {}
        for name, option_value in given.items():
            option = _OPTIONS.get(name.replace("_", "").lower())
            if option is None:
                raise _invalid_options(
                    Message(
                        "has no option '{name}': there are caseSensitive, includeHidden, includeIgnored, fileType",
                        name=name[:40],
                    )
                )
            values[option] = (
                _parse_file_type(option_value) if option == "file_type" else _parse_flag(name, option_value)
            )
        return cls(**values)  # type: ignore[arg-type]

    def fold_case(self, text: str) -> str:
        """Fold a text for comparison: lower case, unless case matters."""
        return text if self.case_sensitive else text.lower()


_OPTIONS = {
    "casesensitive": "case_sensitive",
    "includehidden": "include_hidden",
    "includeignored": "include_ignored",
    "filetype": "file_type",
}


@dataclass(slots=True)
class _Search:
    """A search under way: its results, and counts of what was left out."""

    options: SearchOptions
    segments: tuple[Segment, ...]
    dotted: tuple["re.Pattern[str]", ...]  # hidden names that the pattern itself asks for
    checkpoint: Checkpoint
    results: list[JsonObject] = field(default_factory=list)
    seen: int = 0
    left_out: int = 0
    unreadable: int = 0
    stopped: bool = False

    def scan_folder(self, fd: int, base: tuple[str, ...], below: tuple[str, ...], rules: IgnoreRules) -> None:
        """``base`` is the folder's way from the root, ``below`` the end of it that the pattern sees."""
        rules = rules.with_lines(read_rules(fd), len(base))
        with os.scandir(fd) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
        for entry in entries:
            self.seen += 1
            if self.seen % _CHECK_EVERY == 0:
                self.checkpoint()
            if self.seen > MAX_SEEN:
                self.stopped = True
                return
            name = os.fsencode(entry.name).decode(errors="surrogateescape")
            path, tail = (*base, name), (*below, name)
            is_folder = entry.is_dir(follow_symlinks=False)
            if self._is_left_out(path, rules, is_folder=is_folder):
                self.left_out += 1
                continue
            if self._matches(tail):
                self._add_entry(entry, path, tail)
            if is_folder:
                self._enter_folder(fd, entry.name, path, tail, rules)

    def _is_left_out(self, path: tuple[str, ...], rules: IgnoreRules, *, is_folder: bool) -> bool:
        hidden = path[-1].startswith(".") and not self.options.include_hidden
        if hidden and not any(dotted.fullmatch(self.options.fold_case(path[-1])) for dotted in self.dotted):
            return True
        return (rules if not self.options.include_ignored else IgnoreRules()).is_left_out(path, is_folder=is_folder)

    def _matches(self, tail: tuple[str, ...]) -> bool:
        return matches_path(self.segments, tuple(map(self.options.fold_case, tail)))

    def _add_entry(self, entry: "os.DirEntry[str]", path: tuple[str, ...], tail: tuple[str, ...]) -> None:
        try:
            info = entry.stat(follow_symlinks=False)
        except OSError:
            return  # gone since we saw its name
        if self.options.file_type not in ("all", file_type(info.st_mode)):
            return
        about = build_facts(_path_text(path), info)
        self.results.append({**about, "directory": _path_text(path[:-1]) or ".", "relativePath": _path_text(tail)})

    def _enter_folder(
        self, fd: int, name: str, path: tuple[str, ...], tail: tuple[str, ...], rules: IgnoreRules
    ) -> None:
        try:
            inner = os.open(name, _FOLDER, dir_fd=fd)
        except OSError:  # gone, changed or not ours to read since we saw it
            self.unreadable += 1
            return
        try:
            if is_private(inner):
                return
            if len(tail) < _MAX_DEPTH and not self.stopped:
                self.scan_folder(inner, path, tail, rules)
            else:
                self.stopped = True
        finally:
            os.close(inner)


def _compile_pattern(pattern: str) -> tuple[Segment, ...]:
    if pattern.startswith(("/", "\\")) or ".." in pattern.replace("\\", "/").split("/"):
        raise Failure(
            ErrorCode.INVALID_PARAM,
            Message("'pattern' must not be absolute or contain '..': a search stays below its folder."),
            hint=Message("Say where to search with searchPath."),
        )
    compiled = compile_path(f"**/{pattern}")
    if not can_match(compiled):
        raise Failure(
            ErrorCode.INVALID_PARAM,
            Message("'pattern' {incomplete}.", incomplete=INCOMPLETE),
            hint=Message("Write [[] for the bracket itself."),
        )
    return compiled


def _compile_dotted(pattern: str) -> tuple["re.Pattern[str]", ...]:
    return tuple(compile_segment(part) for part in pattern.split("/") if part.startswith("."))


def _parse_file_type(value: Json) -> str:
    if value not in _FILE_TYPES:
        raise _invalid_options(
            Message(
                "has the fileType {value}: use one of {names}",
                value=json.dumps(value)[:40],
                names=", ".join(_FILE_TYPES),
            )
        )
    return str(value)


def _parse_flag(name: str, value: Json) -> bool:
    flag = coerce_value(value, {"type": "boolean"})
    if not isinstance(flag, bool):
        raise _invalid_options(
            Message("has {name} = {value}: use true or false", name=name, value=json.dumps(value)[:40])
        )
    return flag


def _invalid_options(why: str) -> Failure:
    return Failure(
        ErrorCode.INVALID_PARAM,
        Message("'options' {why}.", why=why),
        hint=Message('Use options such as {{"caseSensitive": true, "fileType": "file"}}.'),
    )


def _path_text(path: tuple[str, ...]) -> str:
    return to_text("/".join(path).encode(errors="surrogateescape"))
