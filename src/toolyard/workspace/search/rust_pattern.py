"""Patterns as ripgrep has them, for Python's engine.

What remains of the difference: ``\\p{...}`` and flags in the middle of a pattern are refused here, ``.`` also matches a
byte that is not UTF-8, and a letter with marks of its own counts as several characters of a word.
"""

import re

_TOKEN = re.compile(r"\\x\{([0-9A-Fa-f]{1,6})\}|(\\.)|(\(\?<)(?=[A-Za-z_])|\[:(\w+):\]|.", re.DOTALL)
_NEEDLE_TOKEN = re.compile(r"(\\[dDwWsSbBntr<>])|\\(\W)|([.^$+])|([*?])|([\[({\\])|(.)", re.DOTALL)
_ESCAPES = {r"\z": r"\Z", r"\<": r"\b(?=\w)", r"\>": r"\b(?<=\w)"}
_POSIX = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": r" \t",
    "digit": "0-9",
    "lower": "a-z",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\s",
    "upper": "A-Z",
    "word": r"\w",
    "xdigit": "0-9A-Fa-f",
}


def to_python_pattern(pattern: str, *, literal: bool, multiline: bool) -> str:
    """The pattern as Python writes it. Raises ValueError for what Python cannot do."""
    tokens = list(_TOKEN.finditer(pattern))
    if not multiline and any(token[0] == "\n" or (token[0] == r"\n" and not literal) for token in tokens):
        raise ValueError("a newline in a pattern needs multiline")
    return re.escape(pattern) if literal else "".join(map(_translate, tokens))


def find_needle(pattern: str) -> str:
    """A text that stands in every match; empty when none is certain. Only what comes before any group is looked at."""
    runs = [""]
    for token in _NEEDLE_TOKEN.finditer(pattern) if "|" not in pattern else ():
        symbol, escaped, wild, optional, stop, plain = token.groups()
        if stop:
            runs[-1] = runs[-1][: -1 if stop == "{" else None]
            break
        if symbol or wild:
            runs.append("")
        elif optional:
            runs[-1] = runs[-1][:-1]
            runs.append("")
        else:
            runs[-1] += escaped or plain
    return max(runs, key=len)


def _translate(token: re.Match[str]) -> str:
    code, escape, name, posix = token.groups()
    if code:
        return re.escape(chr(int(code, 16)))
    if escape and escape[1] in "pP":
        raise ValueError("classes such as \\p{...} are known to ripgrep only, which is not installed")
    if name:
        return "(?P<"
    return _POSIX.get(posix) or _ESCAPES.get(escape) or token[0]
