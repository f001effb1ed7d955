"""Grep: the lines of the project's files that match a pattern.

A walk of our own chooses the files, ripgrep looks into them, and where there is no ripgrep a Python program does.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from toolyard.message import Message
from toolyard.protocol.envelope import ErrorCode, Failure, Reason
from toolyard.protocol.json import Json
from toolyard.protocol.result_limits import MAX_BYTES, MAX_LINE_CHARS, MAX_LINES
from toolyard.protocol.tool import Checkpoint, Result, ToolCall, ToolSpec
from toolyard.tools.grep_result import FinishedSearch, StopReason, build_result
from toolyard.tools.search_report import TIME_CAP_S, split_path
from toolyard.tools.tool_words import load_text
from toolyard.tools.worker_thread import in_thread
from toolyard.workspace.encoding import BINARY_PROBE, looks_binary
from toolyard.workspace.search.file_glob import FileGlob, confine_pattern
from toolyard.workspace.search.file_walk import FileWalk, FolderMatches, TimeLimit, TimeLimitReached
from toolyard.workspace.search.ignore import read_rules_above
from toolyard.workspace.search.match_collector import MatchCollector, TooManyMatches
from toolyard.workspace.search.ripgrep import Engine, PythonEngine, Query, Ripgrep, build_batches, find_ripgrep
from toolyard.workspace.search.search_run import EngineNotStarted, PatternRefused, SearchRun
from toolyard.workspace.workspace import OpenHandle, Workspace

DEFAULT_LIMIT = 100
MAX_CONTEXT = 100
MAX_PATTERN = 10_000  # characters
_MOST_ROWS = MAX_BYTES // 50  # no match takes less of an answer


def _boolean_parameter(what: str, *, default: bool = False) -> Json:
    return {"type": "boolean", "default": default, "description": what}


def _line_count_parameter(what: str) -> Json:
    return {"type": "integer", "minimum": 0, "maximum": MAX_CONTEXT, "default": 0, "description": what}


SPEC = ToolSpec(
    **load_text(
        __file__,
        default_limit=DEFAULT_LIMIT,
        max_limit=MAX_LINES,
        max_line_chars=MAX_LINE_CHARS,
        seconds=int(TIME_CAP_S),
    ),
    parameters={
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "minLength": 1, "description": "A regular expression, as ripgrep has them."},
            "path": {
                "type": "string",
                "minLength": 1,
                "default": ".",
                "description": "The file or folder to search, relative to the root.",
            },
            "glob": {
                "type": "string",
                "minLength": 1,
                "description": "Search only files that match this, such as *.py; the patterns are those of Glob.",
            },
            "case_sensitive": _boolean_parameter("Whether capital and small letters differ.", default=True),
            "literal": _boolean_parameter("Take the pattern as plain text."),
            "multiline": _boolean_parameter("Let the pattern match over several lines; . then also matches a newline."),
            "before": _line_count_parameter("How many lines to show before each match."),
            "after": _line_count_parameter("How many lines to show after each match."),
            "output": {
                "type": "string",
                "enum": ["content", "files", "count"],
                "default": "content",
                "description": "The matching lines, only their files, or the number of them in each file.",
            },
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": MAX_LINES,
                "default": DEFAULT_LIMIT,
                "description": "How many matches, files or counts to return.",
            },
            "include_hidden": _boolean_parameter("Also search names that begin with a dot."),
            "include_ignored": _boolean_parameter("Also search what .gitignore leaves out."),
        },
        "required": ["pattern"],
        "additionalProperties": False,
    },
    examples=({"pattern": "TODO|FIXME", "after": 2},),
    splits_batches=True,
)


class Grep:
    spec = SPEC

    def __init__(
        self,
        workspace: Workspace,
        *,
        fallback_encodings: Sequence[str],
        find_ripgrep: Callable[[], str | None] = find_ripgrep,
        time_cap_s: float = TIME_CAP_S,
    ) -> None:
        self._workspace, self._fallbacks = workspace, fallback_encodings
        self._find_ripgrep, self._time_cap_s = find_ripgrep, time_cap_s

    async def run(self, call: ToolCall, checkpoint: Checkpoint) -> Result:
        return await in_thread(self._grep, call.arguments, checkpoint)

    def _grep(self, arguments: Mapping[str, Any], checkpoint: Checkpoint) -> Result:
        query = _build_query(arguments)
        program = self._find_ripgrep()
        engine: Engine = Ripgrep(program) if program else PythonEngine()
        with ExitStack() as stack:
            single, folder = self._open(stack, arguments["path"])
            time_limit = stack.enter_context(TimeLimit(self._time_cap_s, checkpoint))
            message = ""
            while True:
                try:
                    search = self._search(arguments, query, engine, time_limit, single, folder)
                    return build_result(arguments, search, self._workspace, self._fallbacks)
                except PatternRefused as refused:
                    message = message or refused.message
                    if query.pcre2 or isinstance(engine, PythonEngine) or not message.startswith("regex parse error"):
                        raise _invalid_pattern(message) from None
                    query = replace(query, pcre2=True)  # which knows more than the linear engine
                except EngineNotStarted as error:
                    if isinstance(engine, PythonEngine):
                        raise Failure(
                            Reason.START_FAILED, Message("No search could be started: {error}.", error=error)
                        ) from error
                    engine = PythonEngine()

    def _open(self, stack: ExitStack, path: str) -> tuple[OpenHandle | None, OpenHandle]:
        """The file that ``path`` names, or None, and the folder that it names, or the root."""
        try:
            file = stack.enter_context(self._workspace.open_file(path))
        except Failure as failure:
            if failure.code is not ErrorCode.IS_DIRECTORY:
                raise
            return None, stack.enter_context(self._workspace.open_folder(path))
        if looks_binary(os.pread(file.fd, BINARY_PROBE, 0)):
            raise Failure(
                ErrorCode.BINARY_FILE,
                Message("'{path}' is a binary file and not searched.", path=file.path),
                hint=Message("Search text files."),
            )
        return file, stack.enter_context(self._workspace.open_folder("."))

    def _search(
        self,
        arguments: Mapping[str, Any],
        query: Query,
        engine: Engine,
        time_limit: TimeLimit,
        single: OpenHandle | None,
        folder: OpenHandle,
    ) -> FinishedSearch:
        rows = min(arguments["limit"], _MOST_ROWS) if arguments["output"] == "content" else 1
        limit = rows if arguments["output"] == "content" else arguments["limit"]
        collector = MatchCollector(limit=limit, per_file=rows, multiline=query.multiline, after=query.after)
        searching = SearchRun(engine, query, folder.fd, time_limit.check, collector)
        search = FinishedSearch(
            collector, searching.progress, single, folder, fallback=isinstance(engine, PythonEngine)
        )
        try:
            if single is not None:
                searching.search_file(single.fd)
            else:
                self._search_folder(arguments, searching, engine, time_limit, search)
        except TimeLimitReached:
            search.stop_reason = StopReason.TIME
            collector.end_early()
        except TooManyMatches:
            search.stop_reason = StopReason.COUNT
            collector.end_early()
        search.seconds = time_limit.seconds
        return search

    def _search_folder(
        self,
        arguments: Mapping[str, Any],
        searching: SearchRun,
        engine: Engine,
        time_limit: TimeLimit,
        search: FinishedSearch,
    ) -> None:
        folder, hidden = search.folder, arguments["include_hidden"]
        path = split_path(folder.path)
        walk = FileWalk(
            folder.fd,
            path,
            self._parse_glob(arguments.get("glob"), path, folder, hidden=hidden),
            rules=None if arguments["include_ignored"] else read_rules_above(self._workspace, path),
            hidden=hidden,
            pause=time_limit.check,
        )
        search.skipped = walk.skipped
        chosen = _count_links(walk, search)
        whole = "glob" not in arguments
        searching.search_batches(
            build_batches(chosen, whole=whole, hidden=hidden, first=engine.first_batch, most=engine.largest_batch)
        )
        if not searching.progress.files:
            searching.check_pattern()

    def _parse_glob(self, pattern: str | None, path: tuple[str, ...], folder: OpenHandle, *, hidden: bool) -> FileGlob:
        if pattern is None:
            return FileGlob(hidden=hidden)
        pattern = confine_pattern(
            pattern,
            "glob",
            root=str(self._workspace.root),
            path=path,
            has=lambda name: os.access(name, os.F_OK, dir_fd=folder.fd, follow_symlinks=False),
        )
        return FileGlob.parse(pattern, "glob", hidden=hidden)


def _build_query(arguments: Mapping[str, Any]) -> Query:
    pattern = arguments["pattern"]
    if len(pattern) > MAX_PATTERN:
        message = Message(
            "The pattern has {count} characters, and at most {max_pattern} are searched for.",
            count=len(pattern),
            max_pattern=MAX_PATTERN,
        )
        raise Failure(Reason.TOO_LARGE, message, hint=Message("Search for a part of it."))
    if "\0" in pattern:
        hint = Message("No text has one: a file that does is binary, and is not searched.")
        raise Failure(ErrorCode.INVALID_PARAM, Message("The pattern holds a NUL character."), hint=hint)
    return Query(
        pattern=pattern,
        literal=arguments["literal"],
        ignore_case=not arguments["case_sensitive"],
        multiline=arguments["multiline"],
        before=arguments["before"],
        after=arguments["after"],
    )


def _count_links(walk: FileWalk, search: FinishedSearch) -> Iterator[FolderMatches]:
    """Links are not followed: what they lead to is searched where it is."""
    for folder in walk:
        search.links += len(folder.links)
        yield folder


def _invalid_pattern(message: str) -> Failure:
    hint = (
        Message("Set multiline=true to match a newline.")
        if "multiline" in message
        else Message("Correct it, or set literal=true.")
    )
    return Failure(
        ErrorCode.INVALID_PARAM, Message("The pattern is not valid: {message}", message=message[:2000]), hint=hint
    )
