"""Regular expressions with possessive groups, right on every Python.

CPython before 3.11.5 gets ``(?:...)*+`` wrong when its last repetition fails half-way: the text that was tried counts
as matched (gh-106052; Debian 12 ships 3.11.2). There ``compile_pattern`` writes such a group as a lookahead that is
then taken as a whole, which matches the same. That adds a group, so groups behind a possessive one must have names.
"""

import re
from typing import AnyStr, Final

IS_BROKEN: Final = re.fullmatch(r"(?:ab?c)?+", "a") is not None
_NAME = "possessive_"
_POSSESSIVE = re.compile(r"(?:[*+?]|\{\d*,?\d*\})\+")
_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\((?:\?(?:P<\w+>|[:=!]|<[=!]|[aiLmsux-]+:))?|\)|.", re.DOTALL)


def compile_pattern(pattern: AnyStr, flags: int = 0) -> "re.Pattern[AnyStr]":
    """Compile a pattern; its possessive groups mean the same on every Python."""
    return re.compile(expand_possessive(pattern) if IS_BROKEN else pattern, flags)


def expand_possessive(pattern: AnyStr) -> AnyStr:
    """Return the pattern with each possessive group written as a lookahead and a back-reference to its match."""
    if isinstance(pattern, bytes):
        return _expand(pattern.decode("latin-1")).encode("latin-1")
    return _expand(pattern)


def _expand(pattern: str) -> str:
    written: list[str] = []
    open_groups: list[int] = []  # the start of each in ``written``
    count, at = 0, 0
    while token := _TOKEN.match(pattern, at):
        text, at = token[0], token.end()
        if text == "(" and count:
            raise ValueError(f"a group behind a possessive one needs a name: {pattern!r}")
        if text.startswith("("):
            open_groups.append(len(written))
        written.append(text)
        if text == ")":
            begin = open_groups.pop()
            if quantifier := _POSSESSIVE.match(pattern, at):
                at = quantifier.end()
                if "(" in written[begin:]:
                    raise ValueError(f"a group inside a possessive one needs a name: {pattern!r}")
                group = "".join(written[begin:]) + quantifier[0][:-1]
                written[begin:] = [f"(?=(?P<{_NAME}{count}>{group}))(?P={_NAME}{count})"]
                count += 1
    return "".join(written)
