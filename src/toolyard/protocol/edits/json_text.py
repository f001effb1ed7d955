"""Positions of the parts of a JSON text, and changes of one part that leave the others untouched.

The text must have been parsed before: it is trusted to be JSON. A container is an object or an array; its parts are the
members of the one and the items of the other. New parts are written in the layout of their neighbours, so that a file
keeps its indentation, line endings and spaces, whatever they are. Linear in the text; never recurses by itself.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from toolyard.protocol.edits.text_edit import Splice

_BLANKS = " \t\n\r"
_decode = json.JSONDecoder().raw_decode


@dataclass(frozen=True, slots=True)
class Part:
    """``text[start:end]`` is a member or an item, ``text[value:end]`` its value; the items of an array have no key."""

    key: str
    start: int
    value: int
    end: int


@dataclass(frozen=True, slots=True)
class Container:
    """``text[start:end]`` is an object or an array, brackets included. A key may occur more than once."""

    start: int
    end: int
    parts: tuple[Part, ...]

    @property
    def numbers(self) -> dict[str, int]:
        """The number of each key's effective part: of several with one key, readers take the last."""
        return {part.key: number for number, part in enumerate(self.parts)}


@dataclass(frozen=True, slots=True)
class Layout:
    """The text between the brackets and parts of a container."""

    lead: str = ""  # before the first part
    comma: str = ", "  # from the end of a part to the start of the next
    tail: str = ""  # after the last part
    colon: str = ": "

    @property
    def inner(self) -> "Layout":
        """The layout of a container inside this one that has no parts to show its own."""
        if not _has_newline(self.lead):
            return Layout(comma=self.flat_comma, colon=self.colon)
        stepped = _has_newline(self.tail) and self.lead.startswith(self.tail)
        lead = self.lead + (self.lead[len(self.tail) :] if stepped else "")
        return Layout(lead, "," + lead, self.lead, self.colon)

    @property
    def flat_comma(self) -> str:
        if not _has_newline(self.comma):
            return self.comma
        return ", " if self.colon.endswith(" ") else ","

    def member(self, key: str, value: str) -> str:
        return f"{json.dumps(key)}{self.colon}{value}"

    def write(self, brackets: str, parts: Collection[str]) -> str:
        if not parts:
            return brackets
        return f"{brackets[0]}{self.lead}{self.comma.join(parts)}{self.tail}{brackets[1]}"


def read_container(text: str, start: int = 0) -> Container:
    """Return the container whose opening bracket is the first non-blank character from ``start``."""
    start = _skip_blanks(text, start)
    closing = "}" if text[start] == "{" else "]"
    parts: list[Part] = []
    at = _skip_blanks(text, start + 1)
    while text[at] != closing:
        part = _read_part(text, at, is_member=closing == "}")
        parts.append(part)
        at = _skip_blanks(text, part.end)
        if text[at] == ",":
            at = _skip_blanks(text, at + 1)
    return Container(start, at + 1, tuple(parts))


def read_layout(text: str, inside: Container, parent: Layout) -> Layout:
    """Return the layout of ``inside``, or a suitable one in a container with the layout ``parent``."""
    parts = inside.parts
    if not parts:
        return parent.inner
    first = parts[0]
    lead = text[inside.start + 1 : first.start]
    colon = parent.colon
    if text[inside.start] == "{":
        colon = text[_decode(text, first.start)[1] : first.value]
    comma = "," + lead if _has_newline(lead) else parent.flat_comma
    if len(parts) > 1:
        comma = text[first.end : parts[1].start]
    return Layout(lead, comma, text[parts[-1].end : inside.end - 1], colon)


def change_parts(
    inside: Container,
    shape: Layout,
    *,
    values: Mapping[int, str] | None = None,
    gone: Collection[int] = (),
    new: Sequence[tuple[int, str]] = (),
) -> tuple[Splice, ...]:
    """Return the splices that set ``values`` by number, remove the parts ``gone`` and insert ``new`` before others."""
    parts = inside.parts
    remaining = [number for number in range(len(parts)) if number not in gone]
    if not remaining:
        body = shape.comma.join(piece for _, piece in new)
        return (Splice(inside.start + 1, inside.end - 1, f"{shape.lead}{body}{shape.tail}" if new else ""),)
    splices = [Splice(parts[number].value, parts[number].end, value) for number, value in (values or {}).items()]
    if remaining[0]:
        splices.append(Splice(parts[0].start, parts[remaining[0]].start, ""))
    splices += [Splice(parts[number - 1].end, parts[number].end, "") for number in gone if number > remaining[0]]
    for number, piece in new:
        before = [other for other in remaining if other < number]
        at = parts[before[-1]].end if before else parts[remaining[0]].start
        splices.append(Splice(at, at, shape.comma + piece if before else piece + shape.comma))
    return tuple(sorted(splices, key=lambda splice: (splice.start, splice.end)))


def _read_part(text: str, start: int, *, is_member: bool) -> Part:
    if not is_member:
        return Part("", start, start, _decode(text, start)[1])
    key, end = _decode(text, start)
    value = _skip_blanks(text, _skip_blanks(text, end) + 1)
    return Part(key, start, value, _decode(text, value)[1])


def _skip_blanks(text: str, at: int) -> int:
    while text[at] in _BLANKS:
        at += 1
    return at


def _has_newline(gap: str) -> bool:
    """Return whether a gap holds a line break."""
    return "\n" in gap or "\r" in gap
