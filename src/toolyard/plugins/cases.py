"""The test cases of a plugin: the examples of its manifest, and the cases of its ``cases.json``.

An example passes when the plugin answers ``success`` or ``partial``; that of a command which only its description
shows counts too. ``cases.json`` is a list of objects: ``name``; ``args``, what the plugin gets; ``expect`` with any of
``status`` (success, partial or error; else success or partial) and ``text_contains`` (a text or a list of texts, which
the answer's text must have). At most 200 cases are read.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from toolyard.message import Message
from toolyard.plugins.examples import parse_examples
from toolyard.plugins.lint import is_status_query
from toolyard.plugins.plugin import PluginProblem
from toolyard.protocol.envelope import Envelope, Status
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.manifest import Manifest, PluginType

FILE = "cases.json"
MAX_CASES = 200
MAX_BYTES = 2**20
_SHOWN = 300  # characters of an answer that a failed case shows


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
                message=Message("plugin.cases_unreadable", "cannot be read: {error}.", error=error),
                fix=Message("plugin.write_case_list", "Write a JSON list of cases."),
                file=FILE,
            )
        ]
    if not isinstance(value, list):
        return [], [
            PluginProblem(
                message=Message("plugin.cases_not_a_list", "is not a list."),
                fix=Message("plugin.write_cases", 'Write [{{"name", "args", "expect"}}].'),
                file=FILE,
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
                    message=Message("plugin.case_problem", "case {number}: {problem}", number=number, problem=case),
                    fix=Message("plugin.see_plugin_guide", "See writing-a-plugin.md."),
                    file=FILE,
                )
            )
    return cases, problems


def _parse_case(item: Json, number: int) -> Case | str:
    """Return the case, or the problem with it."""
    if not isinstance(item, dict):
        return Message("plugin.case_no_object", "it is not an object.")
    name, arguments, expect = item.get("name", f"case {number}"), item.get("args", {}), item.get("expect", {})
    if not isinstance(arguments, dict) or not isinstance(expect, dict) or not isinstance(name, str):
        return Message("plugin.case_types", "'name' is a text, 'args' and 'expect' are objects.")
    unknown = sorted({*item} - {"name", "args", "expect"}) + sorted({*expect} - {"status", "text_contains"})
    if unknown:
        return Message("plugin.case_unknown_key", "'{key}' is not known.", key=unknown[0])
    status, contains = expect.get("status"), expect.get("text_contains", [])
    if status is not None and status not in list(Status):
        return Message(
            "plugin.case_status", "'status' cannot be {status}.", status=json.dumps(status, ensure_ascii=False)[:40]
        )
    texts = contains if isinstance(contains, list) else [contains]
    if not all(isinstance(words, str) for words in texts):
        return Message("plugin.case_text_contains", "'text_contains' is a text or a list of texts.")
    expected = (Status(str(status)),) if status is not None else (Status.SUCCESS, Status.PARTIAL)
    return Case(name=name, arguments=arguments, status=expected, text_contains=tuple(map(str, texts)))
