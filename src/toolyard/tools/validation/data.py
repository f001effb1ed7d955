"""Data: JSON and its relatives, TOML, XML."""

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from xml.parsers import expat

from toolyard.protocol.regex import compile_pattern
from toolyard.protocol.tool import Checkpoint
from toolyard.tools.validation.finding import Finding, Severity, Unchecked, finding_at, shift_findings
from toolyard.tools.validation.language import Language

_TOO_DEEP = "its values are nested too deeply"
_STRING = r'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"?'
_COMMENT = compile_pattern(rf"(?P<string>{_STRING})|//[^\n]*|/\*(?:.*?\*/|(?P<open>.*))", re.DOTALL)
_TRAILING_COMMA = compile_pattern(rf"(?P<string>{_STRING})|,(?=\s*+[\]}}])")
_CONSTANT = compile_pattern(rf"{_STRING}|(?P<constant>-?\bInfinity\b|\bNaN\b)")
_TOML_PLACE = re.compile(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", re.DOTALL)
_MAX_TOML_WORK = 20_000_000  # about two seconds: tomllib's time grows with the square of a key's dots


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
