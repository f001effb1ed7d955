"""Problems of a plugin that can be found without running it, each with its place.

An error keeps it from running or from being called as its own text says; all else is a warning. Looked at are the
texts for the model, the example calls, which are the request blocks in examples and descriptions, parsed as a model's,
and the sources: a scan of patterns, never a proof, of a bounded number of files, of which nothing is run. Python files
are compiled by the Python that runs Toolyard. When the plugin has another one, which may know more or less, the message
says so and is a warning.
"""

import os
import re
import sys
import warnings
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from toolyard.dialects.tool_specs import LANGUAGE
from toolyard.message import Message
from toolyard.own_command import FOR_DEFAULT_HOME, OwnCommand
from toolyard.plugins.authoring.prompt_injection import HIDDEN, find_injections
from toolyard.plugins.package.plugin import MANIFEST, Plugin, PluginProblem, PluginState
from toolyard.protocol.arguments import accept_arguments
from toolyard.protocol.edits.json_text import Container
from toolyard.protocol.envelope import Failure
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.manifests.manifest import Command, Manifest, PluginType
from toolyard.protocol.manifests.manifest_json import JsonPath, blank_comments, format_path, locate
from toolyard.protocol.manifests.safe_text import has_hidden
from toolyard.protocol.manifests.spec import command_spec
from toolyard.protocol.requests.scanner import parse_requests

_ASKS_LATER = re.compile(r"query|status|check|poll|result|cancel|list|查询|状态|取消", re.IGNORECASE)
_REPEAT = re.compile(
    r"占位符|原文|原样|placeholder|verbatim|as it is|word for word|repeat|include|包含|返回给用户", re.IGNORECASE
)
_PLACEHOLDER = re.compile(r"VCP_ASYNC_RESULT::([^:{}\s]+)::")
_SCRIPT_BYTES = 65536  # of a script that are looked at
_SHELL_SUFFIXES = (".sh", ".bash", ".zsh")
_SHELL_LINE = re.compile(rb"#![^\r\n]*\b(?:ba|da|k|z)?sh\b")
_KNOWN_TEXTS = ("displayName", "description", "example")  # read_manifest itself reports hidden characters in these
_TRANSLATIONS = "translations"  # and in these
COMMANDS = ("capabilities", "invocationCommands")
_FENCE = re.compile(r"^[ \t>]*(?:```|~~~).*$", re.MULTILINE)
_MAX_COMPILED_FILES = 100
_MAX_COMPILED_BYTES = 128 * 1024  # the compiler's time is not linear
_FILE = "<plugin-source>"
_QUIET = ("ignore", None, Warning, re.compile(re.escape(_FILE)), 0)
_VERSION = re.compile(r"python(\d+\.\d+)")
_MAX_SCANNED_FILES = 40
_MAX_SCANNED_BYTES = 128 * 1024
_NODE = re.compile(r"\bdetached\s*:\s*true\b")
_PYTHON = re.compile(r"\bstart_new_session\s*=\s*True\b|\bos\.setsid\b|\bDETACHED_PROCESS\b")
_SHELL = re.compile(r"\b(?:nohup|setsid|disown)\b|(?<![&>|])&[ \t]*(?:#.*)?$", re.MULTILINE)
_BY_SUFFIX = {
    ".js": _NODE, ".mjs": _NODE, ".cjs": _NODE, ".ts": _NODE, ".py": _PYTHON, ".sh": _SHELL, ".bash": _SHELL,
}  # fmt: skip
_COMMENT = ("#", "//", "*")


@dataclass(frozen=True, slots=True)
class _ManifestText:
    """The text of the manifest, to point into."""

    text: str
    seen: dict[int, Container] = field(default_factory=dict)

    def problem(self, path: JsonPath, message: str, fix: str, *, warning: bool) -> PluginProblem:
        line, column = locate(self.text, path, self.seen)
        return PluginProblem(
            message=message, fix=fix, file=MANIFEST, line=line, column=column, field=format_path(path), warning=warning
        )


def lint_plugin(
    plugin: Plugin,
    remarks: Iterable[str] = (),
    own_command: OwnCommand = FOR_DEFAULT_HOME,
) -> tuple[PluginProblem, ...]:
    """Return all problems of a plugin in the order of its files; ``remarks`` are those of its environment."""
    text = _ManifestText(blank_comments(plugin.raw_manifest.decode(errors="replace")))
    problems = [_locate_problem(text, problem) for problem in plugin.problems]
    problems += [PluginProblem(message=remark, warning=True) for remark in remarks]
    if plugin.state in (PluginState.SHADOWED, PluginState.UNSUPPORTED):
        warning = plugin.state is PluginState.UNSUPPORTED
        problems.append(text.problem(("name",), plugin.reason, "", warning=warning))
    if plugin.manifest is not None:
        problems += _check_texts(text, plugin.manifest)
        problems += _check_examples(text, plugin.manifest)
        problems += _check_type(text, plugin.manifest)
        problems += _check_permissions(text, plugin.manifest)
        problems += _check_python(plugin)
        problems += _check_line_endings(plugin)
        problems += _check_sources(plugin, plugin.manifest, own_command)
    return tuple(sorted(problems, key=lambda problem: (problem.file != MANIFEST, problem.line, problem.column)))


def is_status_query(command: Command) -> bool:
    """Return whether a command of an asynchronous plugin asks about the task of an earlier call."""
    return _ASKS_LATER.search(command.name) is not None and not _PLACEHOLDER.search(command.description)


def has_hidden_characters(manifest: Manifest) -> bool:
    """Return whether a text for the model has invisible characters as written; a model never gets them."""
    return any(has_hidden(text) for _, text in _iter_model_texts(manifest))


def _locate_problem(text: _ManifestText, problem: PluginProblem) -> PluginProblem:
    """Return a problem with its place: one of the command has none of its own."""
    if problem.file or not problem.field:
        return problem
    return replace(text.problem(tuple(problem.field.split(".")), problem.message, problem.fix, warning=False))


def _check_texts(text: _ManifestText, manifest: Manifest) -> Iterator[PluginProblem]:
    """Yield problems of the texts that a model reads, also inside a schema."""
    for path, value in _iter_model_texts(manifest):
        for message, words in find_injections(value):
            is_text = len(path) in (1, len(COMMANDS) + 2) and path[-1] in _KNOWN_TEXTS
            if message == HIDDEN and (is_text or path[0] == _TRANSLATIONS):
                continue
            fix = Message("Say only what the plugin does and how it is called.")
            suspicion = (
                Message('{message}: "{words}".', message=message, words=words)
                if words
                else Message("{message}.", message=message)
            )
            yield text.problem(path, suspicion, fix, warning=True)


def _iter_model_texts(manifest: Manifest) -> Iterator[tuple[JsonPath, str]]:
    capabilities = manifest.fields.get("capabilities")
    listed = capabilities.get(COMMANDS[-1]) if isinstance(capabilities, dict) else None
    texts: dict[JsonPath, Json] = {(name,): manifest.fields.get(name) for name in _KNOWN_TEXTS[:2]}
    translations = manifest.fields.get(_TRANSLATIONS)
    english = translations.get(LANGUAGE) if isinstance(translations, dict) else None
    yield from (
        *_iter_strings(texts),
        *_iter_strings({(_TRANSLATIONS, LANGUAGE): english}),
        *_iter_strings({COMMANDS: listed}),
    )


def _iter_strings(values: "dict[JsonPath, Json]") -> Iterator[tuple[JsonPath, str]]:
    pending = list(values.items())
    while pending:
        path, value = pending.pop(0)
        if isinstance(value, str):
            yield path, value
        elif isinstance(value, dict):
            pending += [((*path, name), inner) for name, inner in value.items()]
        elif isinstance(value, list):
            pending += [((*path, number), inner) for number, inner in enumerate(value)]


def _check_examples(text: _ManifestText, manifest: Manifest) -> Iterator[PluginProblem]:
    examples = list(parse_examples(manifest))
    for example in examples:
        yield from _check_example(text, manifest, example)
    if manifest.type in (PluginType.SYNCHRONOUS, PluginType.ASYNCHRONOUS):
        have = {id(example.command) for example in examples}
        for number, command in enumerate(manifest.commands):
            if id(command) not in have:
                message = Message("no request block shows how to call this: models guess, and nothing can be tested.")
                yield text.problem((*COMMANDS, number), message, Message('Add an "example".'), warning=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    path: JsonPath  # of the text that has it
    command: Command
    tool: str = ""
    arguments: JsonObject = field(default_factory=dict)
    problem: str = ""  # why it is no call

    @property
    def is_template(self) -> bool:
        """True when it is in a description, where blocks often show the form only."""
        return self.path[-1] == "description"


def _check_example(text: _ManifestText, manifest: Manifest, example: Example) -> Iterator[PluginProblem]:
    if example.problem:
        yield text.problem(
            example.path,
            Message("the block cannot be read: {problem}", problem=example.problem),
            "",
            warning=example.is_template,
        )
        return
    if example.tool != manifest.name:
        message = Message(
            "the block calls '{tool}', but the plugin is called '{name}'.", tool=example.tool, name=manifest.name
        )
        yield text.problem(
            example.path, message, Message("Write tool_name:「始」{name}「末」.", name=manifest.name), warning=False
        )
    spec = command_spec(manifest, example.arguments)
    if spec is not None and not example.command.derived and not example.is_template:
        try:
            accept_arguments(spec, example.arguments)
        except Failure as failure:
            message = Message("the example is refused by the plugin's own schema: {message}", message=failure.message)
            yield text.problem(example.path, message, Message("Correct the example or the schema."), warning=False)


def _check_python(plugin: Plugin) -> Iterator[PluginProblem]:
    if plugin.command is not None and plugin.fingerprint is not None:
        files, named = plugin.fingerprint.files, plugin.command.files
        yield from find_syntax_errors(plugin.folder, files, named, plugin.command.argv[0])


def _check_sources(plugin: Plugin, manifest: Manifest, own_command: OwnCommand) -> Iterator[PluginProblem]:
    """Yield problems of programs that start processes which Toolyard stops."""
    if manifest.detached or manifest.type is not PluginType.SYNCHRONOUS or plugin.fingerprint is None:
        return
    for file, line, words in find_detached_starts(plugin.folder, plugin.fingerprint.files):
        message = Message(
            "'{words}' starts work that outlives the answer: it is stopped when the plugin has answered.", words=words
        )
        fix = Message(
            'Write "detached": true, or let it go on: {command}',
            command=own_command.format("plugin allow", manifest.name, "--detached"),
        )
        yield PluginProblem(message=message, fix=fix, file=file, line=line, warning=True)


def _check_line_endings(plugin: Plugin) -> Iterator[PluginProblem]:
    """Yield an error for a script that no shell can read, because its lines end as on Windows."""
    for name in plugin.command.files if plugin.command else ():
        try:
            with (plugin.folder / name).open("rb") as file:
                start = file.read(_SCRIPT_BYTES)
        except OSError:
            continue
        if b"\r\n" in start and (name.endswith(_SHELL_SUFFIXES) or _SHELL_LINE.match(start)):
            yield PluginProblem(
                message=Message("its lines end with CRLF, which no shell understands."),
                fix=Message("Save it with LF line endings."),
                file=name,
                line=1,
            )


def _check_permissions(text: _ManifestText, manifest: Manifest) -> Iterator[PluginProblem]:
    """Yield a warning when a manifest leaves open which hosts it connects to."""
    runs = manifest.type in (PluginType.SYNCHRONOUS, PluginType.ASYNCHRONOUS, PluginType.STATIC)
    if runs and (manifest.access is None or manifest.access.network is None):
        message = Message(
            "nothing says which hosts it connects to: its network is open, or closed where the owner wants that."
        )
        fix = Message(
            'Write {permissions}, name the hosts in the list, or write "any" in place of it.',
            permissions='"permissions": {"network": []}',
        )
        yield text.problem(("permissions", "network"), message, fix, warning=True)


def _check_type(text: _ManifestText, manifest: Manifest) -> Iterator[PluginProblem]:
    if manifest.shell:
        path: JsonPath = ("shell",) if "shell" in manifest.fields else ("entryPoint", "shell")
        message = Message("the command is run by a shell, which is slower and shown at every review.")
        yield text.problem(path, message, Message("Write it without a shell if you can."), warning=True)
    if manifest.type is not PluginType.ASYNCHRONOUS:
        return
    for number, command in enumerate(manifest.commands):
        path = (*COMMANDS, number, "description")
        placeholder = _PLACEHOLDER.search(command.description)
        fix = Message(
            "Say: include this placeholder as it is in your reply: {placeholder}",
            placeholder=f"{{{{VCP_ASYNC_RESULT::{manifest.name}::ID}}}}",
        )
        if placeholder and placeholder[1] != manifest.name:
            yield text.problem(
                path,
                Message("the placeholder names '{placeholder}', not this plugin.", placeholder=placeholder[1]),
                fix,
                warning=False,
            )
        elif not is_status_query(command) and not (placeholder and _REPEAT.search(command.description)):
            message = Message("nothing tells the model to repeat the placeholder, so the result would never be seen.")
            yield text.problem(path, message, fix, warning=True)


def parse_examples(manifest: Manifest) -> Iterator[Example]:
    """Yield every request block, in the order of the manifest."""
    for number, command in enumerate(manifest.commands):
        for name in ("description", "example"):
            path: JsonPath = (*COMMANDS, number, name)
            for request in parse_requests(_FENCE.sub("", getattr(command, name))):
                if request["ok"]:
                    arguments = request["args"] if isinstance(request["args"], dict) else {}
                    yield Example(path=path, command=command, tool=str(request["tool"]), arguments=arguments)
                else:
                    yield Example(
                        path=path, command=command, tool=str(request["tool"]), problem=str(request["problem"])
                    )


def find_syntax_errors(
    folder: Path, files: Iterable[str], named: Collection[str], program: str
) -> Iterator[PluginProblem]:
    """Yield the first error of each file; files ``named`` on the command line cannot run at all."""
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    version = _VERSION.fullmatch(os.path.basename(os.path.realpath(program)))
    is_ours = version is None or version[1] == own
    for name in sorted(file for file in files if file.endswith((".py", ".pyw")))[:_MAX_COMPILED_FILES]:
        error = _syntax_error(folder / name)
        if error is not None:
            kind, line, what = type(error).__name__, error.lineno or 1, error.msg[:200]
            message = Message("Python cannot read it: {kind} in line {line}: {what}.", kind=kind, line=line, what=what)
            if not is_ours:
                message = Message(
                    "Python {own}, which may know less than the plugin's, has a {kind} in line {line}: {what}.",
                    own=own,
                    kind=kind,
                    line=line,
                    what=what,
                )
            yield PluginProblem(
                message=message,
                fix=Message("Correct it at this place."),
                file=name,
                line=line,
                column=max(0, error.offset or 0),
                warning=not is_ours or name not in named,
            )


def _syntax_error(path: Path) -> SyntaxError | None:
    if _QUIET not in warnings.filters:  # for this name alone and for good: catch_warnings() is not safe among threads
        warnings.filterwarnings("ignore", module=re.escape(_FILE))
    try:
        with path.open("rb") as file:
            source = file.read(_MAX_COMPILED_BYTES + 1)
        if len(source) <= _MAX_COMPILED_BYTES:
            compile(source, _FILE, "exec", dont_inherit=True)
    except SyntaxError as error:
        return error
    except (OSError, ValueError, RecursionError, MemoryError, OverflowError):
        return None  # unreadable files are reported elsewhere
    return None


class DetachedStart(NamedTuple):
    """A line in a file of the plugin's folder, and the matched words."""

    file: str
    line: int
    words: str


def find_detached_starts(folder: Path, files: Iterable[str]) -> Iterator[DetachedStart]:
    """Yield the first such line of each file. ``files`` are relative to ``folder``."""
    scanned = [name for name in sorted(files) if Path(name).suffix in _BY_SUFFIX and "node_modules" not in name]
    for name in scanned[:_MAX_SCANNED_FILES]:
        for number, line in enumerate(_read_start(folder / name).splitlines(), 1):
            match = _BY_SUFFIX[Path(name).suffix].search(line)
            if match and not line.lstrip().startswith(_COMMENT):
                yield DetachedStart(name, number, match[0].strip())
                break


def _read_start(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_SCANNED_BYTES).decode(errors="replace")
    except OSError:
        return ""
