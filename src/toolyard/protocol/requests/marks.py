"""The marks of a tool request, exact and mistyped, and how text that holds them is carried in an ESCAPE value.

Every pattern is tried in linear time: what could backtrack is possessive, and a word is tried from its beginning only.
No mark runs over a line end, so whole lines can be looked at as they come.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from toolyard.protocol.regex import compile_pattern

OPEN, CLOSE = "「始」", "「末」"
ESCAPE_OPEN, ESCAPE_CLOSE = "「始ESCAPE」", "「末ESCAPE」"
START, END = "<<<[TOOL_REQUEST]>>>", "<<<[END_TOOL_REQUEST]>>>"

_NAME = r"[\w.\-]++"
NAME = re.compile(_NAME)
_FIELD = rf"[\s,，]*+({_NAME})[ \t]*+:[ \t]*+「始」([^「{{<]*+)「末」"  # one that leaves no question, as most
FIELD = re.compile(_FIELD)
FIELD_IN_VALUE = re.compile(rf"\n[ \t]*+({_NAME})[ \t]*+[:：][ \t]*+「始")
_AFTER_VALUE = rf"[ \t]*+[,，]?[ \t]*+(?:\r?$|//|<{{2,4}}\[END_TOOL_REQUEST|{_NAME}[ \t]*+[:：][ \t]*+[「{{]始)"
AFTER_VALUE = re.compile(_AFTER_VALUE, re.MULTILINE)

_ESCAPED = re.compile(r"(<<<\[(?:END_)?TOOL_REQUEST)((?:_ESCAPE)+)(\]>>>)|(「[始末])((?:ESCAPE)+)(」)")


@dataclass(frozen=True, slots=True)
class Marks:
    """The patterns of one reply: with a nonce, only a start marker that carries it counts."""

    block: re.Pattern[
        str
    ]  # a whole block of fields that leave no question; groups 1 and 2: blanks before it, its inside
    start: re.Pattern[str]  # group 1 is the marker; matched where a line begins
    fields: re.Pattern[str]  # what may stand between values
    plain: re.Pattern[str]  # what may end a plain value
    loose_end: re.Pattern[str]  # what belongs inside a block, and is left over when it stands in prose


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
        start=re.compile(rf"[ \t\ufeff]*+({start})"),  # a byte-order mark is nothing to see
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
    """What ends a value that was opened by ``opened``: the same word, and braces only if it began with one."""
    word = re.escape(opened[2:-1])
    exact = opened[0] == "「" and opened[-1] == "」"
    return re.compile(f"「末{word}」" if exact else f"[「{{]末{word}[」}}]")


def unescape(text: str) -> str:
    """The marks that an ESCAPE value carries, with one ESCAPE less: the inverse of ``escape``."""

    def less(found: re.Match[str]) -> str:
        if found[1]:
            return found[1] + found[2].removesuffix("_ESCAPE") + found[3]
        return found[4] + found[5].removesuffix("ESCAPE") + found[6]

    return _ESCAPED.sub(less, text)


def escape(text: str) -> str:
    """Text for an ESCAPE value: marks with an ESCAPE get one more, so none of them ends the value; plain ones stay."""

    def more(found: re.Match[str]) -> str:
        return found[1] + found[2] + "_ESCAPE" + found[3] if found[1] else found[4] + found[5] + "ESCAPE" + found[6]

    return _ESCAPED.sub(more, text)
