"""The test cases of a plugin: the examples of its manifest, and the cases of its ``cases.json``.

An example passes when the plugin answers ``success`` or ``partial``; that of a command which only its description
shows counts too. ``cases.json`` is a list of objects: ``name``; ``args``, what the plugin gets; ``expect`` with any of
``status`` (success, partial or error; else success or partial) and ``text_contains`` (a text or a list of texts, which
the answer's text must have). At most 200 cases are read.

``add_case`` adds a call with the expected answer to the file. What stands there stays as it is written, the case comes
last, and the file is then there whole or as before. Only plugins of the home's and the project's own folders are
written to: what is shipped, linked or given for one run belongs to others. A case never changes what may run: where the
command line reads ``cases.json`` itself, it is refused.
"""

import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from toolyard.errors import ConfigError, UsageError
from toolyard.message import Message
from toolyard.plugins.authoring.lint import is_status_query, parse_examples
from toolyard.plugins.package.discovery import list_roots
from toolyard.plugins.package.plugin import Origin, Plugin, PluginProblem
from toolyard.protocol.envelope import Envelope, Status
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.manifests.manifest import Manifest, PluginType
from toolyard.workspace.home_folder import lock_file, write_private_file

FILE = "cases.json"
MAX_CASES = 200
MAX_BYTES = 2**20
_SHOWN = 300  # characters of an answer that a failed case shows
MAX_NAME = 80
_LINE = 118  # a case that is longer stands on several lines
_NEW_MODE = 0o644


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    name: str
    arguments: JsonObject = field(default_factory=dict)
    status: tuple[Status, ...] = (Status.SUCCESS, Status.PARTIAL)
    text_contains: tuple[str, ...] = ()
    skipped: str = ""  # why it is not run

    def find_failure(self, envelope: Envelope) -> str:
        """Return why the answer is not the expected one; empty when it is."""
        text = envelope.text if len(envelope.text) <= _SHOWN else envelope.text[:_SHOWN] + "..."
        if envelope.status not in self.status:
            return f"expected {' or '.join(self.status)}, got {envelope.status}: {text}"
        missing = next((words for words in self.text_contains if words not in envelope.text), None)
        return "" if missing is None else f"the text has no '{missing}': {text}"


def collect_cases(manifest: Manifest, folder: Path) -> tuple[list[Case], list[PluginProblem]]:
    """Return all cases to run, and the problems of ``cases.json``."""
    written, problems = _read_cases_file(folder)
    return [*_cases_from_examples(manifest), *written][:MAX_CASES], problems


def _cases_from_examples(manifest: Manifest) -> Iterator[Case]:
    """Yield the examples as cases. Blocks in a description count only where a command has no example."""
    examples = list(parse_examples(manifest))
    with_example = {id(example.command) for example in examples if not example.is_template}
    for example in examples:
        if example.is_template and id(example.command) in with_example:
            continue
        title = example.command.name or manifest.name
        name = f"{title}: {', '.join(f'{k}={v}' for k, v in example.arguments.items())}"[:80]
        skipped = ""
        if example.problem:
            skipped = f"it cannot be read: {example.problem}"
        elif manifest.type is PluginType.ASYNCHRONOUS and is_status_query(example.command):
            skipped = "it asks about the task of an earlier call"
        yield Case(name=" ".join(name.split()), arguments=example.arguments, skipped=skipped)


def _read_cases_file(folder: Path) -> tuple[list[Case], list[PluginProblem]]:
    try:
        with (folder / FILE).open("rb") as file:
            value: Json = json.loads(file.read(MAX_BYTES))
    except FileNotFoundError:
        return [], []
    except (OSError, ValueError, RecursionError) as error:
        return [], [
            PluginProblem(
                message=Message("cannot be read: {error}.", error=error),
                fix=Message("Write a JSON list of cases."),
                file=FILE,
            )
        ]
    if not isinstance(value, list):
        return [], [
            PluginProblem(
                message=Message("is not a list."), fix=Message('Write [{{"name", "args", "expect"}}].'), file=FILE
            )
        ]
    cases: list[Case] = []
    problems: list[PluginProblem] = []
    for number, item in enumerate(value[:MAX_CASES], 1):
        case = _parse_case(item, number)
        if isinstance(case, Case):
            cases.append(case)
        else:
            problems.append(
                PluginProblem(
                    message=Message("case {number}: {problem}", number=number, problem=case),
                    fix=Message("See writing-a-plugin.md."),
                    file=FILE,
                )
            )
    return cases, problems


def _parse_case(item: Json, number: int) -> Case | str:
    """Return the case, or the problem with it."""
    if not isinstance(item, dict):
        return Message("it is not an object.")
    name, arguments, expect = item.get("name", f"case {number}"), item.get("args", {}), item.get("expect", {})
    if not isinstance(arguments, dict) or not isinstance(expect, dict) or not isinstance(name, str):
        return Message("'name' is a text, 'args' and 'expect' are objects.")
    unknown = sorted({*item} - {"name", "args", "expect"}) + sorted({*expect} - {"status", "text_contains"})
    if unknown:
        return Message("'{key}' is not known.", key=unknown[0])
    status, contains = expect.get("status"), expect.get("text_contains", [])
    if status is not None and status not in list(Status):
        return Message("'status' cannot be {status}.", status=json.dumps(status, ensure_ascii=False)[:40])
    texts = contains if isinstance(contains, list) else [contains]
    if not all(isinstance(words, str) for words in texts):
        return Message("'text_contains' is a text or a list of texts.")
    expected = (Status(str(status)),) if status is not None else (Status.SUCCESS, Status.PARTIAL)
    return Case(name=name, arguments=arguments, status=expected, text_contains=tuple(map(str, texts)))


def is_own_plugin(plugin: Plugin, *, project: Path, home: Path) -> bool:
    """Return whether the plugin really lies in a plugin folder of this home or this project."""
    roots = (root for root in list_roots(project, home) if root.origin in (Origin.HOME, Origin.PROJECT))
    own = {os.path.realpath(root.folder) for root in roots}
    return plugin.origin is not Origin.SHIPPED and not own.isdisjoint((str(plugin.folder), str(plugin.folder.parent)))


def add_case(plugin: Plugin, *, home: Path, name: str, arguments: JsonObject, expect: JsonObject) -> str:
    """Write a case and return its name, made unique. Raises UsageError, ConfigError.

    Writers of one ``home`` take turns by a file there: the plugin's folder is a source, and gets nothing but the case.
    """
    if plugin.fingerprint is not None and FILE in plugin.fingerprint.files:
        raise UsageError(
            Message(
                "the command line of {name} names {file}: a test there would change what runs",
                name=plugin.name,
                file=FILE,
            )
        )
    file = plugin.folder / FILE
    try:
        with lock_file(home / f".{FILE}.lock"):
            raw, mode = _read_cases(file)
            cases = _parse_cases(raw)
            same = next((one for one in cases if _case_content(one) == (arguments, expect)), None)
            if same is not None:
                raise UsageError(
                    Message("{file} has this test already: '{name}'", file=FILE, name=same.get("name", ""))
                )
            free = _unique_name(_to_one_line(name), {str(one.get("name", "")) for one in cases})
            case = _format_case({"name": free, "args": arguments, "expect": expect})
            content = _append_case(raw.decode(), case, is_first=not cases).encode()
            if len(content) > MAX_BYTES:
                raise UsageError(Message("{file} would be larger than {value} MiB", file=FILE, value=MAX_BYTES >> 20))
            write_private_file(file, content)
            file.chmod(mode)  # it is a source like the others, and not for its owner only
    except OSError as error:
        raise ConfigError(
            Message("{file} cannot be changed: {error}", file=file, error=error.strerror or error)
        ) from error
    return free


def _read_cases(file: Path) -> tuple[bytes, int]:
    try:
        fd = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return b"[]", _NEW_MODE
    with os.fdopen(fd, "rb") as stream:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            raise UsageError(Message("{file} is no ordinary file", file=FILE))
        return stream.read(MAX_BYTES + 1), stat.S_IMODE(info.st_mode)


def _parse_cases(raw: bytes) -> list[JsonObject]:
    try:
        raw.decode()
        value: Json = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise UsageError(Message("{file} cannot be read: {error}. Correct it first", file=FILE, error=error)) from error
    if not isinstance(value, list):
        raise UsageError(Message("{file} is not a list of cases. Correct it first", file=FILE))
    if len(value) >= MAX_CASES:
        raise UsageError(
            Message(
                "{file} has {count} cases, and no more than {max_cases} are run: take one out first",
                file=FILE,
                count=len(value),
                max_cases=MAX_CASES,
            )
        )
    return [one if isinstance(one, dict) else {} for one in value]


def _case_content(case: JsonObject) -> tuple[Json, Json]:
    return case.get("args", {}), case.get("expect", {})


def _to_one_line(name: str) -> str:
    """Return a name as one line of printable text."""
    printable = "".join(char if char.isprintable() else " " for char in name)
    return " ".join(printable.split())[:MAX_NAME].strip() or "call"


def _unique_name(name: str, taken: set[str]) -> str:
    return next(one for n in range(1, len(taken) + 2) if (one := name if n == 1 else f"{name} ({n})") not in taken)


def _format_case(case: JsonObject) -> str:
    line = json.dumps(case, ensure_ascii=False)
    return line if len(line) <= _LINE else json.dumps(case, ensure_ascii=False, indent=2).replace("\n", "\n  ")


def _append_case(text: str, case: str, *, is_first: bool) -> str:
    """Insert a case before the closing bracket of ``text``, a JSON list."""
    before = text.rstrip()[:-1].rstrip()
    return f"{before}{'' if is_first else ','}\n  {case}\n]\n"
