"""Changes that may run unattended: of our own file tools, to the project's files, all of which can be undone.

Judged before a call runs, by where its paths really lead: a link to a protected place is that place. It holds until the
call is over, also for a batch and for calls beside it: nothing that runs unattended makes, moves or copies a link, and
what is moved or deleted is a plain file. Whatever is in doubt is not let through.

What other programs run or obey by themselves is not let through either: nobody would have seen it when it runs. These
are plugins' folders, the programs of MCP servers, files that are executable or begin with ``#!``, or would, and files
told by their kind, which are those of any project: hidden files, which are settings of shells, editors and tools;
start-up files; code that configures, builds or starts; definitions of builds, tasks and infrastructure; programs. A
kind is told by how such files are named, so that a tool that nobody here has heard of is covered too.
``obeyed_files.toml`` has the names that no kind tells from an ordinary file, each with its reason.

The size of a change is measured before it runs, so that undo has room for it. What a batch replaces, copies, moves or
deletes must exist now, and no item before may touch it: so its size is known. A call may need half of what undo keeps
of one call, and all records together half of what undo keeps at most: so no unattended change pushes out the record of
another, and there is room again when old records expire, after ``RETENTION`` at the latest. The home's disk must have
space for several such calls. The other halves are for calls that a person allowed meanwhile; unattended calls take
turns (``yard.calls``).
"""

import json
import os
import re
import shutil
import stat
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Final, NamedTuple

from toolyard.message import Message
from toolyard.protocol.arguments import accept_arguments
from toolyard.protocol.envelope import ErrorCode, Failure
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.patching.patch_plan import parse_patch
from toolyard.protocol.tool import ToolSpec, split_batch
from toolyard.workspace.changes.protected_paths import names_protected_path
from toolyard.workspace.changes.undo_records import MAX_BYTES, MAX_FILES, MAX_TOTAL, RETENTION
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
_MAX_STEPS = 4096  # whose answers are kept
_CODE = r"\.(?:[cm]?[jt]s|py|pyw|rb|php|pl|pm|lua|tcl|groovy|kts?|scala|exs?|jl|r|rs|go|hs|el|vim|clj|cljs|edn|sc)"
_DATA = r"\.(?:json[5c]?|ya?ml|toml|ini|cfg|conf|xml|properties)"
_PROGRAM = (
    "sh|bash|zsh|fish|ksh|csh|command|exe|com|bat|cmd|ps[dm]?1|vbs|wsf|hta|reg|scpt|applescript|jar|war|class|wasm|node|"
    "pyd|whl|egg|phar|gem|deb|rpm|apk|msi|dmg|pkg|appimage|dll|so|dylib"
)
_INFRASTRUCTURE = "tf|tofu|tfvars|hcl|bicep|nomad|pp|sls|jsonnet|libsonnet|rego|dhall|cue"
_BUILDS = "build|builder|config|configure|conf|deploy|install|make|release|settings|setup|tasks?"
_STARTS = "asgi|autoload|autorun|autostart|boot|bootstrap|entrypoint|manage|preload|startup|wsgi"
_OPERATES = (
    "ansible|chart|ci|cd|cloudformation|compose|deploy|deployment|docker|helm|helmfile|ingress|inventory|k8s|kubernetes|"
    "kustomization|kustomize|pipelines?|playbook|pulumi|serverless|stack|swarm|terraform|values|workflows?"
)
# Folders whose code frameworks, or the commands of a person, run.
_LOADED: Final = frozenset(
    {"addons", "bin", "conf", "config", "cron", "dags", "initializers", "migrations", "playbooks", "script", "scripts"}
)
# Hidden files that only list names, or that only stand there.
_PLAIN_HIDDEN = re.compile(r"\.(?:[a-z-]*ignore|(?:git)?keep|mailmap|nojekyll)")


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
    return Failure(ErrorCode.ACCESS_DENIED, Message("'{what}' is for a person to look at first.", what=what))


def _has_word(words: str) -> str:
    """Return the expression of a name with one of these words in it, before its extension."""
    return rf"(?:.*[._-])?(?:{words})(?:[._-].*)?"


_KINDS: Final = {
    rf"(?!(?:src|arc)(?:\.|$))[a-z0-9_+-]+rc(?:{_DATA}|{_CODE})?": "programs read such a file when they start",
    r"init\.(?:el|lua|vim)|.*\.(?:el|vim)": "editors run such a file when they start",
    _has_word(_BUILDS) + _CODE: "build tools, linters and frameworks run code of such a name",
    _has_word(_STARTS) + _CODE: "frameworks start with code of such a name",
    r"[a-z_-]{2,}file": "build and task tools run such a file",
    rf"(?!profile)[a-z_-]{{2,}}file(?:{_CODE}|\.(?:ya?ml|toml|lock))": "build and task tools run such a file",
    rf".*\.(?:{_INFRASTRUCTURE})|.*\.tf\.json": "infrastructure is changed by it",
    _has_word(_OPERATES) + r"\.ya?ml": "infrastructure and pipelines are run by it",
    rf".*\.(?:{_PROGRAM})|.*\.so\..*": "it is a program",
}


class ObeyedFile(NamedTuple):
    """A row of the table."""

    pattern: str
    reason: str


def find_reason(path: str) -> str | None:
    """Return the reason why other programs run or obey a path, relative to the project's root; None: they do not."""
    *folders, last = path.casefold().split("/")
    reasons = map(_find_row, (*folders, f"{last}$"))
    return next((reason for reason in reasons if reason), None) or _find_kind(tuple(folders), last)


@lru_cache(_MAX_STEPS)
def _find_kind(folders: tuple[str, ...], name: str) -> str | None:
    hidden = [step for step in (*folders, name) if step.startswith(".") and step.strip(".")]
    if hidden and not (hidden == [name] and _PLAIN_HIDDEN.fullmatch(name)):
        return "hidden files are settings of shells, editors and tools, which run what they name"
    if any(folder.endswith(".d") for folder in folders):
        return "what stands in such a folder is loaded as a whole"
    if not _LOADED.isdisjoint(folders) and re.fullmatch(rf"[^.]+|.*{_CODE}", name):
        return "frameworks and commands run the code in such a folder"
    return next((reason for kind, reason in _KINDS.items() if re.fullmatch(kind, name, re.DOTALL)), None)


@cache
def load_table() -> tuple[ObeyedFile, ...]:
    text = files(__package__).joinpath("obeyed_files.toml").read_text(encoding="utf-8")
    return tuple(ObeyedFile(*row) for rows in tomllib.loads(text).values() for row in rows.items())


@lru_cache(_MAX_STEPS)
def _find_row(step: str) -> str | None:
    match = _expression().fullmatch(step)
    return load_table()[match.lastindex - 1].reason if match and match.lastindex else None


@cache
def _expression() -> re.Pattern[str]:
    """One group for each row; what is matched ends with ``$`` when it is the last step of a path."""
    return re.compile("|".join(f"({_translate(row.pattern)})" for row in load_table()), re.DOTALL)


def _translate(pattern: str) -> str:
    name = ".*".join(re.escape(part) for part in pattern.removesuffix("$").split("*"))
    return name + (r"\$" if pattern.endswith("$") else r"\$?")
