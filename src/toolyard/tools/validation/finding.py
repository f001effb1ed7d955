"""Findings of a checker about a file."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from toolyard.protocol.json import JsonObject

MAX_SECONDS = 2.0  # for a checker that is a program of its own
_MAX_MESSAGE = 200


class Severity(StrEnum):
    ERROR = "error"  # the language's own reader refuses the file
    WARNING = "warning"  # readers accept it, or put up with it, but hardly as it was meant


@dataclass(frozen=True, slots=True)
class Finding:
    """Lines and columns count from 1; a column counts characters."""

    line: int
    column: int
    severity: Severity
    message: str
    rule: str | None = None  # the name of the rule, for findings that are no plain syntax errors

    def to_json(self, file: str) -> JsonObject:
        """Return the finding as it stands in ``data.validation``; ``file`` is the checked file's path."""
        rule: JsonObject = {} if self.rule is None else {"rule": self.rule}
        return {
            "file": file,
            "line": self.line,
            "column": self.column,
            "severity": self.severity.value,
            "message": self.message,
            **rule,
        }


@dataclass(frozen=True, slots=True)
class Validation:
    """``skipped`` says why a file of a known ``language`` was not checked, or not to its end."""

    language: str | None = None
    findings: tuple[Finding, ...] = ()
    skipped: str | None = None


class Unchecked(Exception):
    """Raised by a checker that has to stop: its message goes on "... was not checked: "."""


def finding_at(
    text: str, index: int, message: str, severity: Severity = Severity.ERROR, rule: str | None = None
) -> Finding:
    """A finding at the character with this index; lines end at ``\\n`` only, as in all the tools."""
    index = max(0, min(index, len(text)))
    line = text.count("\n", 0, index) + 1
    return Finding(line, index - text.rfind("\n", 0, index), severity, message[:_MAX_MESSAGE], rule)


def shift_findings(findings: Iterable[Finding], text: str, start: int) -> Iterator[Finding]:
    """Findings in a piece of ``text`` that begins at ``start``, as findings in the whole."""
    for finding in findings:
        base = finding_at(text, start, "")
        column = finding.column + (base.column - 1 if finding.line == 1 else 0)
        yield replace(finding, line=finding.line + base.line - 1, column=column)


def quote(text: str, limit: int = 40) -> str:
    """A piece of the file for a message: its first line, cut."""
    line = text.strip().split("\n", 1)[0].rstrip()
    return f"`{line[:limit]}…`" if len(line) > limit else f"`{line}`"
