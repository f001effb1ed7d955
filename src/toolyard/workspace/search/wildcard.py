"""Wildcards as git has them: ``*`` and ``?`` inside one path segment, ``[a-z]`` classes, ``**`` across segments.

Linear in practice on any pattern: a segment becomes a regular expression of atomic groups, which never look back, and
``**`` is matched by remembering only the last one. A pattern that git could never match (an unclosed bracket, a
trailing backslash) matches nothing.
"""

import re
from collections.abc import Sequence
from typing import TypeAlias

Segment: TypeAlias = "re.Pattern[str] | None"  # None is ``**``

_POSIX = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": " \\t",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": " \\t\\n\\r",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}
_CLASS = re.compile(r"\[:([^\]]{0,20}):\]")
_STARS = re.compile(r"\*\*+")
_NOTHING = re.compile(r"(?!)")


def compile_path(pattern: str) -> tuple[Segment, ...]:
    """A whole pattern such as ``src/**/*.py``, one item per segment."""
    return tuple(
        None if _STARS.fullmatch(segment) else compile_segment(segment) for segment in _split_segments(pattern)
    )


def _split_segments(pattern: str) -> list[str]:
    """The segments. A slash in brackets parts nothing, and one behind a backslash is a slash like any other."""
    segments: list[str] = []
    start = i = 0
    while i < len(pattern):
        char = pattern[i]
        slash = i + (char == "\\")
        if pattern.startswith("/", slash):
            segments.append(pattern[start:i])
            start = i = slash + 1
        elif char == "[":
            bracket = _translate_bracket(pattern, i + 1)
            if bracket is None:
                return [pattern[i:]]  # which matches nothing, and so does the whole
            i = bracket[1]
        else:
            i = slash + 1
    return [*segments, pattern[start:]]


def matches_path(pattern: Sequence[Segment], path: Sequence[str]) -> bool:
    """Return whether a path matches; ``**`` stands for any number of segments, at its end for at least one."""
    if pattern and pattern[-1] is None:
        pattern = (*pattern, _ANY)
    p = s = 0
    star, mark = -1, 0
    while s < len(path):
        if p < len(pattern) and pattern[p] is None:
            star, mark, p = p, s, p + 1
            continue
        segment = pattern[p] if p < len(pattern) else None
        if segment is not None and segment.fullmatch(path[s]):
            p, s = p + 1, s + 1
        elif star >= 0:
            mark += 1
            p, s = star + 1, mark
        else:
            return False
    return all(segment is None for segment in pattern[p:])


def compile_segment(glob: str) -> re.Pattern[str]:
    """One segment. Between two stars the first place that fits is always right, so each piece is an atomic group."""
    pieces: list[list[str]] = [[]]
    i = 0
    while i < len(glob):
        char = glob[i]
        i += 1
        if char == "*":
            pieces.append([])
        elif char == "?":
            pieces[-1].append(".")
        elif char == "\\":
            if i == len(glob):
                return _NOTHING
            pieces[-1].append(re.escape(glob[i]))
            i += 1
        elif char == "[":
            bracket = _translate_bracket(glob, i)
            if bracket is None:
                return _NOTHING
            pieces[-1].append(bracket[0])
            i = bracket[1]
        else:
            pieces[-1].append(re.escape(char))
    first, *rest = map("".join, pieces)
    if not rest:
        return re.compile(first, re.DOTALL)
    middle = "".join(f"(?>.*?{piece})" for piece in rest[:-1] if piece)
    return re.compile(f"{first}{middle}.*{rest[-1]}", re.DOTALL)


_ANY = compile_segment("*")


def _translate_bracket(glob: str, start: int) -> tuple[str, int] | None:
    """The class that opens before ``start`` as a regular expression, and where the text goes on after it."""
    i = start
    negated = glob[i : i + 1] in ("!", "^")
    i += negated
    items: list[str] = []
    first = True
    while i < len(glob):
        char = glob[i]
        if char == "]" and not first:
            return f"[{'^' if negated else ''}{''.join(items)}]", i + 1
        first = False
        named = _CLASS.match(glob, i)
        if named:
            if named[1] not in _POSIX:
                return None
            items.append(_POSIX[named[1]])
            i = named.end()
            continue
        low, i = _read_literal(glob, i)
        if low is None:
            return None
        items.append(re.escape(low))  # the first of a range counts even when the range runs backwards
        if glob[i : i + 1] == "-" and glob[i + 1 : i + 2] not in ("", "]"):
            high, i = _read_literal(glob, i + 1)
            if high is None:
                return None
            if low <= high:
                items.append(f"{re.escape(low)}-{re.escape(high)}")
    return None


def _read_literal(glob: str, i: int) -> tuple[str | None, int]:
    if glob[i] != "\\":
        return glob[i], i + 1
    return (glob[i + 1], i + 2) if i + 1 < len(glob) else (None, i + 1)
