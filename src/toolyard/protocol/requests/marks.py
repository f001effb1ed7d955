"""The marks of a tool request, exact and mistyped, and the escaping of text that holds them in an ESCAPE value.

Every pattern takes linear time: parts that could backtrack are possessive, and a word is tried from its beginning only.
No mark crosses a line end, so complete lines can be scanned as they come.

The events of a scanned text are tuples, which are created several times faster than dataclasses: a reply may hold
thousands.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from toolyard.protocol.json import JsonObject
from toolyard.protocol.regex import compile_pattern

OPEN, CLOSE = "「始」", "「末」"
ESCAPE_OPEN, ESCAPE_CLOSE = "「始ESCAPE」", "「末ESCAPE」"
START, END = "<<<[TOOL_REQUEST]>>>", "<<<[END_TOOL_REQUEST]>>>"
_NAME = r"[\w.\-]++"
NAME = re.compile(_NAME)
_FIELD = rf"[\s,，]*+({_NAME})[ \t]*+:[ \t]*+「始」([^「{{<]*+)「末」"  # an unambiguous one, as most are
FIELD = re.compile(_FIELD)
FIELD_IN_VALUE = re.compile(rf"\n[ \t]*+({_NAME})[ \t]*+[:：][ \t]*+「始")
_AFTER_VALUE = rf"[ \t]*+[,，]?[ \t]*+(?:\r?$|//|<{{2,4}}\[END_TOOL_REQUEST|{_NAME}[ \t]*+[:：][ \t]*+[「{{]始)"
AFTER_VALUE = re.compile(_AFTER_VALUE, re.MULTILINE)
_ESCAPED = re.compile(r"(<<<\[(?:END_)?TOOL_REQUEST)((?:_ESCAPE)+)(\]>>>)|(「[始末])((?:ESCAPE)+)(」)")
Span = tuple[int, int]  # from the start marker to the end of the end marker, in code points
_PIECE = 512  # characters


@dataclass(frozen=True, slots=True)
class Marks:
    """The patterns of one reply: with a nonce, only a start marker that carries it counts."""

    block: re.Pattern[str]  # a complete block of unambiguous fields; groups 1 and 2: blanks before it, its inside
    start: re.Pattern[str]  # group 1 is the marker; matched where a line begins
    fields: re.Pattern[str]  # the marks between values
    plain: re.Pattern[str]  # the marks that may end a plain value
    loose_end: re.Pattern[str]  # marks of the inside of a block, left over when they stand in prose


@lru_cache(maxsize=64)
def make_marks(nonce: str | None) -> Marks:
    tail = "" if nonce is None else ":" + re.escape(nonce)
    start = rf"<{{2,4}}\[TOOL_REQUEST{tail}\]>{{2,4}}"
    end = rf"<{{2,4}}\[END_TOOL_REQUEST(?:{tail})?\]>{{2,4}}"
    fields = _FIELD.replace("(", "(?:")
    return Marks(
        block=compile_pattern(
            rf"(\s*+)^<<<\[TOOL_REQUEST{tail}\]>>>((?:{fields})++)[\s,，]*+<<<\[END_TOOL_REQUEST(?:{tail})?\]>>>(?!>)",
            re.MULTILINE,
        ),
        start=re.compile(rf"[ \t\ufeff]*+({start})"),  # a byte-order mark is invisible
        fields=re.compile(
            rf"(?P<start>^[ \t]*+{start})|(?P<end>{end})|(?P<note>//[^\n]*?(?={end}|$))"
            rf"|(?P<name>(?<![\w.\-]){_NAME})[ \t]*+(?P<colon>[:：])"
            r"|(?P<open>[「{]始(?P<word>(?i:ESCAPE))?[」}])|(?P<close>[「{]末(?i:ESCAPE)?[」}])",
            re.MULTILINE,
        ),
        plain=re.compile(rf"(?P<close>[「{{]末[」}}])|^[ \t]*+(?:(?P<start>{start})|(?P<end>{end}))", re.MULTILINE),
        loose_end=re.compile(rf"{CLOSE}|{end}"),
    )


@lru_cache(maxsize=64)
def escape_close(opened: str) -> re.Pattern[str]:
    """Return the end of a value opened by ``opened``: the same word, and braces only if it began with one."""
    word = re.escape(opened[2:-1])
    exact = opened[0] == "「" and opened[-1] == "」"
    return re.compile(f"「末{word}」" if exact else f"[「{{]末{word}[」}}]")


def unescape(text: str) -> str:
    """Return an ESCAPE value's text with one ESCAPE less in each mark: the inverse of ``escape``."""

    def less(match: re.Match[str]) -> str:
        if match[1]:
            return match[1] + match[2].removesuffix("_ESCAPE") + match[3]
        return match[4] + match[5].removesuffix("ESCAPE") + match[6]

    return _ESCAPED.sub(less, text)


def escape(text: str) -> str:
    """Return text for an ESCAPE value: marks with an ESCAPE get one more, so none ends the value; plain ones stay."""

    def more(match: re.Match[str]) -> str:
        return match[1] + match[2] + "_ESCAPE" + match[3] if match[1] else match[4] + match[5] + "ESCAPE" + match[6]

    return _ESCAPED.sub(more, text)


class Text(NamedTuple):
    """A piece of the reply that is no request; the cuts between pieces depend on the feeding."""

    text: str


class Call(NamedTuple):
    tool: str
    args: Mapping[str, str]  # in order of appearance, ``maid`` included, without the special keys
    span: Span
    timely_contact: str | None = None
    archery: str | None = None
    ink: str | None = None
    river: str | None = None
    password: str | None = None
    repaired: tuple[str, ...] = ()

    def __repr__(self) -> str:
        fields = (f"{name}={value!r}" for name, value in self._asdict().items() if name != "password")
        return f"Call({', '.join(fields)})"

    @property
    def maid(self) -> str | None:
        """The agent's signature, by ``maid`` or ``valet``: a label, never an identity."""
        return self.args.get("maid", self.args.get("valet"))

    @property
    def fire_and_forget(self) -> bool:
        return self.archery in {"true", "no_reply"}

    def to_dict(self) -> JsonObject:
        return {
            "tool": self.tool,
            "args": dict(self.args),
            "maid": self.maid,
            "timely_contact": self.timely_contact,
            "archery": self.archery,
            "ok": True,
            "problem": None,
            "repaired": list(self.repaired),
            "span": list(self.span),
        }


class Malformed(NamedTuple):
    problem: str  # the problem and the correct way to write it, for the model
    span: Span
    tool: str | None = None
    repaired: tuple[str, ...] = ()

    def to_dict(self) -> JsonObject:
        return {
            "tool": self.tool,
            "args": None,
            "maid": None,
            "timely_contact": None,
            "archery": None,
            "ok": False,
            "problem": self.problem,
            "repaired": list(self.repaired),
            "span": list(self.span),
        }


Event = Text | Call | Malformed


def add_piece(pieces: list[str], text: str) -> None:
    """Add to the pieces of a text: short ones become one, because many of them take many times their memory."""
    if pieces and len(pieces[-1]) < _PIECE:
        pieces[-1] += text
    else:
        pieces.append(text)
