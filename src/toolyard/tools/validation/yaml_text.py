"""YAML, and the YAML or TOML that stands before a Markdown text.

The file is read as events: nothing is ever built, so aliases are not expanded and tags mean nothing.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import yaml

from toolyard.protocol.tool import Checkpoint
from toolyard.tools.validation.data import check_toml
from toolyard.tools.validation.finding import Finding, Severity, Unchecked, finding_at, quote, shift_findings

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # twenty times as fast, where it was built
_MAX_DEPTH = 500  # the library's time grows with the square of it
_EVENTS_PER_STEP = 200
_TEMPLATE = re.compile(
    r"(?<!\$)\{\{|\{%"
)  # ${{ }} is an expression of GitHub's, in YAML that must read well without it
_FRONT_MATTER = re.compile(r"(---|\+\+\+)[ \t]*\r?\n(?:(.*?)\r?\n)?(?:\1|\.\.\.)[ \t]*\r?(?:\n|\Z)", re.DOTALL)


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
        if _TEMPLATE.search(text):
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
