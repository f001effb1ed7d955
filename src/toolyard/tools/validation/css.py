"""CSS: every block, bracket, string and comment is closed, and every declaration has a name and a value.

A scanner of its own, for it must not know what CSS can say: that grows every month, and grammars that lag behind call
good files wrong. It follows the rules of CSS Syntax for errors, where a prelude may say anything.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from toolyard.protocol.regex import compile_pattern
from toolyard.protocol.tool import Checkpoint
from toolyard.tools.validation import Finding, finding_at, quote

_MARK = re.compile(r"""/\*|["']|\burl\(\s*+(?!["'\s])|\\.|[{}()\[\];:]""", re.DOTALL | re.IGNORECASE)
_STRING = compile_pattern(r"""(["'])(?:\\.|(?!\1)[^\\\n])*+(?P<close>\1)?""", re.DOTALL)
_NOTHING = compile_pattern(r"(?:\s++|/\*.*?\*/|<!--|-->)*+", re.DOTALL)
_OPENING = {"}": "{", ")": "(", "]": "["}
_MARKS_PER_STEP = 1000


@dataclass(frozen=True, slots=True)
class _OpenBracket:
    mark: str
    start: int
    free: bool = False  # the block is the value of a custom property, where anything may stand


@dataclass(slots=True)
class _Scan:
    """The state of a scan: open brackets, and the start and first colon of the current statement."""

    text: str
    opened: list[_OpenBracket] = field(default_factory=list)
    start: int = 0
    colon: int | None = None

    @property
    def in_brackets(self) -> bool:
        return bool(self.opened) and self.opened[-1].mark != "{"

    def read_mark(self, mark: str, start: int) -> Iterator[Finding]:
        match mark:
            case ":":
                if self.colon is None and not self.in_brackets:
                    self.colon = start
            case ";":
                if not self.in_brackets:
                    yield from self.end_statement(start)
            case "(" | "[":
                self.opened.append(_OpenBracket(mark, start))
            case "{":
                free = bool(self.opened) and self.opened[-1].free
                self.opened.append(_OpenBracket(mark, start, free or self._statement_text(start).startswith("--")))
                self._begin_statement(start + 1)
            case _:
                yield from self._close(mark, start)

    def end_statement(self, end: int) -> Iterator[Finding]:
        """A declaration, or an at-rule without a block, ends here."""
        body = self._statement_text(end)
        index = end - len(body)
        if body and not body.startswith("@") and not (self.opened and self.opened[-1].free):
            if not self.opened:
                yield finding_at(self.text, index, f"{quote(body)} stands outside a block")
            elif self.colon is None:
                yield finding_at(self.text, index, f"{quote(body)} is no declaration: it has no `:`")
            elif not body.startswith("--") and _NOTHING.fullmatch(self.text, self.colon + 1, end):
                yield finding_at(self.text, index, f"{quote(body)} has no value")
        self._begin_statement(end + 1)

    def _close(self, mark: str, start: int) -> Iterator[Finding]:
        if mark == "}":
            while self.in_brackets:
                yield _unclosed_finding(self.text, self.opened.pop())
            yield from self.end_statement(start)
        if self.opened and self.opened[-1].mark == _OPENING[mark]:
            self.opened.pop()
        else:
            yield finding_at(self.text, start, f"unexpected `{mark}`")

    def _statement_text(self, end: int) -> str:
        nothing = _NOTHING.match(self.text, self.start, end)
        return self.text[nothing.end() if nothing else self.start : end]

    def _begin_statement(self, start: int) -> None:
        self.start, self.colon = start, None


def check(text: str, checkpoint: Checkpoint) -> Iterator[Finding]:
    scan = _Scan(text)
    index = number = 0
    while match := _MARK.search(text, index):
        number += 1
        if number % _MARKS_PER_STEP == 1:
            checkpoint()
        mark, start, index = match[0], match.start(), match.end()
        if mark == "/*" or mark[0] in "uU":
            end = text.find("*/" if mark == "/*" else ")", index)
            if end < 0:
                yield finding_at(text, start, f"{quote(mark)} is never closed")
                return
            index = end + (2 if mark == "/*" else 1)
        elif mark in "\"'":
            string = _STRING.match(text, start)
            index = string.end() if string else index
            if string and not string["close"]:
                yield finding_at(text, start, f"the string {quote(string[0])} is not closed in its line")
        elif mark[0] != "\\":
            yield from scan.read_mark(mark, start)
    yield from (_unclosed_finding(text, unclosed) for unclosed in scan.opened)
    if not scan.opened:
        yield from scan.end_statement(len(text))


def _unclosed_finding(text: str, unclosed: _OpenBracket) -> Finding:
    return finding_at(text, unclosed.start, f"`{unclosed.mark}` is never closed")
