"""The JSON of a manifest: strict, bounded, and every part can be found again by its path.

Comments are forgiven with a warning: the guides that people copy manifests from have them. Positions are looked up only
when there is something to say about them, so a good manifest costs one fast parse.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from toolyard.message import Message
from toolyard.protocol.edits.json_text import Container, read_container
from toolyard.protocol.json import Json, JsonObject, json_problem

MAX_BYTES = 2**20
MAX_DEPTH = 50
_MAX_DUPLICATES = 20  # reported of one manifest; more would not help

JsonPath: TypeAlias = tuple[str | int, ...]
_DECODER_REASONS: dict[str, str] = {  # the words of Python's decoder
    reason: reason
    for reason in (
        Message("Expecting value"),
        Message("Expecting ',' delimiter"),
        Message("Expecting ':' delimiter"),
        Message("Expecting property name enclosed in double quotes"),
        Message("Unterminated string starting at"),
        Message("Extra data"),
        Message("Invalid control character at"),
        Message("Invalid \\escape"),
        Message("Illegal trailing comma before end of object"),
        Message("Illegal trailing comma before end of array"),
    )
}
_STRING_OR_COMMENT = re.compile(r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"?|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_NO_NEWLINE = re.compile(r"[^\r\n]")
_LAST_COMMA = re.compile(r",[ \t\r\n]*[}\]]")
_BLANK = re.compile(r"[ \t\r\n]*")
_MARKDOWN = re.compile(r"[ \t\r\n]*(?:```|~~~)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A problem with the part of a manifest at ``path``, or at the character ``at`` of a text that is not JSON."""

    message: str
    fix: str
    path: JsonPath = ()
    at: int | None = None
    warning: bool = False


def parse_json(text: str) -> tuple[JsonObject | None, list[Fault]]:
    """Parse the object that ``text`` is, with warnings; None with the reasons when it cannot be trusted."""
    if len(text) > MAX_BYTES or len(text.encode(errors="surrogatepass")) > MAX_BYTES:
        return None, [
            Fault(
                message=Message("The manifest is larger than {limit} bytes.", limit=MAX_BYTES),
                fix=Message("Shorten its texts."),
                at=0,
            )
        ]
    plain = blank_comments(text)
    remarks = [_comment_fault(text, plain)] if plain != text else []
    value, faults = _parse_plain(plain)
    return value, [*remarks, *faults]


def blank_comments(text: str) -> str:
    """Return ``text`` with blanks in place of its comments, so that everything else keeps its position."""
    return _STRING_OR_COMMENT.sub(_blank_comment, text) if "//" in text or "/*" in text else text


def _blank_comment(match: re.Match[str]) -> str:
    return match[0] if match[0][0] == '"' else _NO_NEWLINE.sub(" ", match[0])


def _comment_fault(text: str, plain: str) -> Fault:
    at = next(number for number, pair in enumerate(zip(text, plain, strict=True)) if pair[0] != pair[1])
    message = Message(
        "There is a comment, which JSON does not have. It is ignored here; VCPToolBox refuses the manifest."
    )
    return Fault(message=message, fix=Message("Remove the comments."), at=at, warning=True)


def _parse_plain(text: str) -> tuple[JsonObject | None, list[Fault]]:
    repeated: list[str] = []
    try:
        value: Json = json.loads(text, object_pairs_hook=lambda pairs: _build_object(pairs, repeated))
    except json.JSONDecodeError as error:
        return None, [_explain_error(text, error)]
    except (ValueError, RecursionError) as error:
        message = (
            Message("The manifest is nested too deeply.")
            if isinstance(error, RecursionError)
            else Message("The manifest cannot be read: {error}.", error=error)
        )
        return None, [Fault(message=message, fix=Message("Write it as plain JSON."), at=0)]
    if not isinstance(value, dict):
        fault = Fault(
            message=Message("The manifest is not a JSON object."),
            fix=Message("Begin it with {{ and end it with }}."),
            at=0,
        )
        return None, [fault]
    faults = list(_find_unreadable(value)) or (_find_duplicates(text) if repeated else [])
    return (None, faults) if faults else (value, [])


def locate(text: str, path: JsonPath, seen: dict[int, Container]) -> tuple[int, int]:
    """Return line and column, from 1, of the part at ``path``: its key in an object; its nearest owner when missing.

    ``text`` has no comments. ``seen`` keeps what was read of ``text`` for the next question.
    """
    at = start = len(text) - len(text.lstrip())
    for step in path:
        if text[at] not in "{[":
            break
        inside = seen.get(at) or read_container(text, at)
        seen[at] = inside
        number = inside.numbers.get(step) if isinstance(step, str) else step
        if number is None or number >= len(inside.parts) or (text[at] == "{") != isinstance(step, str):
            break
        start, at = inside.parts[number].start, inside.parts[number].value
    return line_and_column(text, start)


def line_and_column(text: str, at: int) -> tuple[int, int]:
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


def format_path(path: JsonPath) -> str:
    """Return ``entryPoint.command`` or ``capabilities.invocationCommands[0].parameters``."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")


def _build_object(pairs: list[tuple[str, Json]], repeated: list[str]) -> JsonObject:
    value = dict(pairs)
    if len(value) < len(pairs):
        repeated.extend(key for key, _ in pairs)
    return value


def _find_unreadable(value: JsonObject) -> Iterator[Fault]:
    for key, inner in value.items():
        problem = json_problem(key, Message("its name")) or json_problem(inner, "it") or _depth_problem(inner)
        if problem:
            yield Fault(
                message=Message("{key!r} cannot be read: {problem}.", key=key, problem=problem),
                fix=Message("Write plain JSON values."),
                path=(key,),
            )


def _depth_problem(value: Json) -> str | None:
    level, depth = [value], 1
    while level:
        depth += 1
        level = [
            inner
            for item in level
            if isinstance(item, dict | list)
            for inner in (item.values() if isinstance(item, dict) else item)
        ]
        if depth > MAX_DEPTH and level:
            return Message("it is nested deeper than {max_depth} levels", max_depth=MAX_DEPTH)
    return None


def _find_duplicates(text: str) -> list[Fault]:
    faults: list[Fault] = []
    pending: list[tuple[int, JsonPath]] = [(read_container(text).start, ())]
    while pending and len(faults) < _MAX_DUPLICATES:
        at, path = pending.pop()
        seen: set[str] = set()
        for number, part in enumerate(read_container(text, at).parts):
            step: str | int = part.key if text[at] == "{" else number
            if isinstance(step, str) and step in seen:
                message = Message("The key {key} stands twice in one object.", key=json.dumps(step, ensure_ascii=False))
                fix = Message("Keep one of the two.")
                faults.append(Fault(message=message, fix=fix, path=(*path, step), at=part.start))
            elif isinstance(step, str):
                seen.add(step)
            if text[part.value] in "{[":
                pending.append((part.value, (*path, step)))
    return sorted(faults, key=lambda fault: fault.at or 0)


def _explain_error(text: str, error: json.JSONDecodeError) -> Fault:
    """Return the parser's error in plain words for the usual mistakes."""
    blank = _BLANK.match(text, error.pos)
    at = blank.end() if blank else error.pos
    before = text[:at].rstrip(" \t\r\n")
    rest = text[at:]
    if text.startswith("\ufeff"):
        message, fix, at = (
            Message("The file begins with a byte order mark."),
            Message("Save it as UTF-8 without BOM."),
            0,
        )
    elif not text.strip():
        message, fix, at = (
            Message("The file is empty."),
            Message("Write the manifest, or remove the file."),
            0,
        )
    elif rest.startswith("#"):
        message, fix = (
            Message("There is a comment with #, which JSON does not have."),
            Message("Remove the comment."),
        )
    elif _LAST_COMMA.match(rest):  # Python 3.13 names the comma, older ones what follows it
        message, fix = (
            Message("There is a comma after the last entry."),
            Message("Remove the comma."),
        )
    elif rest.startswith(","):
        message, fix = (
            Message("There is a comma with nothing before or after it."),
            Message("Remove the comma."),
        )
    elif rest.startswith(("}", "]")) and before.endswith(","):
        message, fix, at = (
            Message("There is a comma after the last entry."),
            Message("Remove the comma."),
            len(before) - 1,
        )
    elif rest.startswith(("'", "“", "”")):
        message, fix = (
            Message("A text stands in quotes that are not JSON's."),
            Message('Write it in straight double quotes: "...".'),
        )
    elif _MARKDOWN.match(text):
        message, fix, at = (
            Message("The file is Markdown around JSON."),
            Message("Keep only what stands between the fences."),
            0,
        )
    elif not rest:
        message, fix = (
            Message("The text ends before the JSON is complete."),
            Message("Close what is still open: a quote, ] or }}."),
        )
    else:
        message, fix = (
            Message("This is not JSON: {reason}.", reason=_DECODER_REASONS.get(error.msg, error.msg)),
            Message("Correct it at this place."),
        )
    return Fault(message=message, fix=fix, at=at)
