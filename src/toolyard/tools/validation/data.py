"""Data: JSON and its relatives, TOML, XML, YAML, and the YAML or TOML that stands before a Markdown text.

YAML is read as events: nothing is ever built, so aliases are not expanded and tags mean nothing.
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from xml.parsers import expat

import yaml

from toolyard.protocol.regex import compile_pattern
from toolyard.protocol.tool import Checkpoint
from toolyard.tools.validation import Finding, Language, Severity, Unchecked, finding_at, quote, shift_findings

_TOO_DEEP = "its values are nested too deeply"
_STRING = r'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"?'
_COMMENT = compile_pattern(rf"(?P<string>{_STRING})|//[^\n]*|/\*(?:.*?\*/|(?P<open>.*))", re.DOTALL)
_TRAILING_COMMA = compile_pattern(rf"(?P<string>{_STRING})|,(?=\s*+[\]}}])")
_CONSTANT = compile_pattern(rf"{_STRING}|(?P<constant>-?\bInfinity\b|\bNaN\b)")
_TOML_PLACE = re.compile(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", re.DOTALL)
_MAX_TOML_WORK = 20_000_000  # about two seconds: tomllib's time grows with the square of a key's dots
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # twenty times as fast, where it was built
_MAX_DEPTH = 500  # the library's time grows with the square of it
_EVENTS_PER_STEP = 200
_YAML_TEMPLATE = re.compile(
    r"(?<!\$)\{\{|\{%"
)  # ${{ }} is an expression of GitHub's, in YAML that must read well without it
_FRONT_MATTER = re.compile(r"(---|\+\+\+)[ \t]*\r?\n(?:(.*?)\r?\n)?(?:\1|\.\.\.)[ \t]*\r?(?:\n|\Z)", re.DOTALL)


def check_json(text: str, checkpoint: Checkpoint) -> Iterator[Finding]:
    checkpoint()
    constants: list[str] = []
    try:
        json.loads(text, parse_constant=constants.append)
    except json.JSONDecodeError as error:
        yield finding_at(text, error.pos, error.msg)
    except RecursionError as error:
        raise Unchecked(_TOO_DEEP) from error
    except ValueError as error:
        raise Unchecked("it holds a number of thousands of digits") from error
    if constants:
        yield from _find_constants(text)


def check_jsonc(text: str, checkpoint: Checkpoint) -> Iterator[Finding]:
    """Comments and trailing commas become blanks, so that all the rest keeps its place."""
    checkpoint()
    unclosed = next((comment for comment in _COMMENT.finditer(text) if comment["open"] is not None), None)
    if unclosed:
        yield finding_at(text, unclosed.start(), "the comment is never closed")
    yield from check_json(_TRAILING_COMMA.sub(_blank_out, _COMMENT.sub(_blank_out, text)), checkpoint)


def check_json_lines(text: str, checkpoint: Checkpoint) -> Iterator[Finding]:
    start = 0
    for line in text.split("\n"):
        if line.strip():
            yield from shift_findings(check_json(line, checkpoint), text, start)
        start += len(line) + 1


def check_toml(text: str, checkpoint: Checkpoint) -> Iterator[Finding]:
    checkpoint()
    if sum(line.count(".") ** 2 for line in text.split("\n")) > _MAX_TOML_WORK:
        raise Unchecked("its keys have too many parts")
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = _TOML_PLACE.fullmatch(str(error))
        if place and place[2]:
            yield Finding(int(place[2]), int(place[3]), Severity.ERROR, place[1])
        else:
            yield finding_at(text, len(text), place[1] if place else str(error))
    except RecursionError as error:
        raise Unchecked(_TOO_DEEP) from error
    except ValueError as error:
        raise Unchecked("it holds a number of thousands of digits") from error


def check_xml(text: str, checkpoint: Checkpoint) -> Iterator[Finding]:
    checkpoint()
    raw = text.encode()
    parser = expat.ParserCreate(encoding="utf-8")  # whatever the file declares: it is already decoded
    parser.EntityDeclHandler = _refuse_entities
    try:
        parser.Parse(raw, True)
    except expat.ExpatError as error:
        index = len(raw[: max(0, parser.ErrorByteIndex)].decode(errors="replace"))
        yield finding_at(text, index, expat.ErrorString(error.code))


def _refuse_entities(*_: object) -> None:
    raise Unchecked("it declares entities of its own, which are never expanded here")


def _find_constants(text: str) -> Iterator[Finding]:
    for match in _CONSTANT.finditer(text):
        if match["constant"]:
            message = f"{match['constant']} is not JSON: most readers refuse it"
            yield finding_at(text, match.start(), message, Severity.WARNING, "json:constant")


def _blank_out(match: re.Match[str]) -> str:
    return match["string"] or re.sub(r"[^\n]", " ", match[0])


CHECKERS: Mapping[Language, Callable[[str, Checkpoint], Iterator[Finding]]] = {
    Language.JSON: check_json,
    Language.JSONC: check_jsonc,
    Language.JSON_LINES: check_json_lines,
    Language.TOML: check_toml,
    Language.XML: check_xml,
}


@dataclass(slots=True)
class _Level:
    """A collection that is being read: the lines of a mapping's keys, and whether a key is next."""

    keys: dict[str, int] | None
    key_next: bool = True


@dataclass(slots=True)
class _Reading:
    levels: list[_Level] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)


def check_yaml(text: str, checkpoint: Checkpoint) -> Iterator[Finding]:
    reading = _Reading()
    try:
        for number, event in enumerate(yaml.parse(text, Loader=_LOADER)):
            if number % _EVENTS_PER_STEP == 0:
                checkpoint()
            yield from _read_event(text, event, reading)
    except yaml.MarkedYAMLError as error:
        if _YAML_TEMPLATE.search(text):
            raise Unchecked("it is a template, not YAML yet") from error
        mark = error.problem_mark or error.context_mark
        context = f" {error.context}" if error.context else ""
        yield finding_at(text, mark.index if mark else len(text), f"{error.problem or 'this is not YAML'}{context}")
    except yaml.reader.ReaderError as error:
        odd = yaml.reader.Reader.NON_PRINTABLE.search(text)
        yield finding_at(text, odd.start() if odd else 0, f"a character that YAML does not allow: {error.reason}")
    except RecursionError as error:
        raise Unchecked("it is nested too deeply") from error


def check_markdown(text: str, checkpoint: Checkpoint) -> Iterator[Finding]:
    """Check only the front matter, between two lines of ``---`` (YAML) or ``+++`` (TOML)."""
    checkpoint()
    matter = _FRONT_MATTER.match(text)
    if matter and matter[2]:
        check = check_yaml if matter[1] == "---" else check_toml
        yield from shift_findings(check(matter[2], checkpoint), text, matter.start(2))


def _read_event(text: str, event: yaml.Event, reading: _Reading) -> Iterator[Finding]:
    levels = reading.levels
    match event:
        case yaml.DocumentStartEvent():
            reading.anchors.clear()
        case yaml.AliasEvent():
            if event.anchor not in reading.anchors:
                yield finding_at(
                    text, _start_of(event)[0], f"the alias `*{event.anchor}` has no anchor `&{event.anchor}`"
                )
            _end_node(levels)
        case yaml.ScalarEvent():
            yield from _check_repeated_key(text, event, levels)
            _end_node(levels)
        case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
            if len(levels) >= _MAX_DEPTH:
                raise Unchecked("it is nested too deeply")
            levels.append(_Level({} if isinstance(event, yaml.MappingStartEvent) else None))
        case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
            levels.pop()
            _end_node(levels)
    anchor = getattr(event, "anchor", None)
    if anchor:
        reading.anchors.add(anchor)


def _end_node(levels: list[_Level]) -> None:
    """A whole node was read: in a mapping, keys and values take turns."""
    if levels:
        levels[-1].key_next = not levels[-1].key_next


def _check_repeated_key(text: str, event: yaml.ScalarEvent, levels: list[_Level]) -> Iterator[Finding]:
    keys = levels[-1].keys if levels and levels[-1].key_next else None
    if keys is None or event.value == "<<":
        return
    index, line = _start_of(event)
    if event.value in keys:
        message = f"the key {quote(event.value)} is already in line {keys[event.value]}: only one of the two counts"
        yield finding_at(text, index, message, Severity.WARNING, "yaml:key")
    else:
        keys[event.value] = line


def _start_of(event: yaml.Event) -> tuple[int, int]:
    """The index and the line at which an event begins."""
    mark = event.start_mark
    return (mark.index, mark.line + 1) if mark else (0, 1)
