"""Validation: a file that was just written is checked in the language that its name tells.

A finding is a remark, never a failure: the write has been done, and it stands. Checking runs nothing of the file, never
raises, and is bounded: by the size of the file, which every checker in this process reads in linear time; by a time
limit for those that are programs of their own; by the number of findings. A file that cannot be checked is reported.

The language is told by the name and, where the name does not tell, the first line. Each module here checks some of
them.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import PurePosixPath
from typing import TypeAlias

from toolyard.protocol.envelope import Failure
from toolyard.protocol.json import JsonObject
from toolyard.protocol.tool import Checkpoint

MAX_BYTES = 1024 * 1024
MAX_FINDINGS = 20
MAX_SECONDS = 2.0  # for a checker that is a program of its own
_MAX_MESSAGE = 200
_HALVES = re.compile("[\ud800-\udfff]")
_COMMENTED = re.compile(
    r"(ts|js)config([.-].*)?\.json|\.(eslintrc|swcrc|jshintrc|babelrc|hintrc)\.json|babel\.config\.json|tslint\.json"
    r"|devcontainer\.json|deno\.json|turbo\.json|wrangler\.json|api-extractor\.json|language-configuration\.json"
)
_COMMENTED_FOLDERS = {".vscode", ".devcontainer", ".codesandbox"}
_PROGRAM = re.compile(r"#!\s*(?:\S*/env\s+(?:-S\s+)?)?(?:\S*/)?([a-z]+)")
# A file may be strange in more ways than a checker foresees; the write that it belongs to has still been done.
_BROKEN = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)


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


class Language(StrEnum):
    PYTHON = "python"
    JSON = "json"
    JSONC = "jsonc"  # with comments and trailing commas
    JSON5 = "json5"
    JSON_LINES = "jsonl"
    YAML = "yaml"
    TOML = "toml"
    XML = "xml"
    JAVASCRIPT = "javascript"  # JSX is a part of it
    TYPESCRIPT = "typescript"
    TSX = "tsx"
    CSS = "css"
    HTML = "html"
    SHELL = "shell"
    MARKDOWN = "markdown"


_Checker: TypeAlias = Callable[[str, Checkpoint], Iterator[Finding]]


def validate(path: str, text: str, checkpoint: Checkpoint = lambda: None) -> Validation:
    """Check ``text``, the new content of the file ``path``. A checkpoint that raises Failure ends it, nothing more."""
    language = detect_language(path, text)
    if language is None:
        return Validation()
    if len(text) > MAX_BYTES or len(text.encode(errors="replace")) > MAX_BYTES:
        return Validation(language, skipped=f"it is bigger than {MAX_BYTES // 1024} KiB")
    # Bytes that are no text are kept as half characters, which few libraries can read.
    text = _HALVES.sub("\ufffd", text.removeprefix("\ufeff"))
    if "\0" in text:
        return Validation(language, (finding_at(text, text.index("\0"), "a NUL character: no text has one"),))
    return _run_checker(language, text, checkpoint)


def _run_checker(language: Language, text: str, checkpoint: Checkpoint) -> Validation:
    findings: list[Finding] = []
    skipped = None
    try:
        for finding in _load_checker(language)(text, checkpoint):
            findings.append(finding)
            if len(findings) == MAX_FINDINGS:
                break
    except Unchecked as reason:
        skipped = str(reason)
    except Failure as stop:
        skipped = stop.message
    except _BROKEN as error:
        skipped = f"the checker failed ({type(error).__name__})"
    return Validation(language, tuple(sorted(findings, key=lambda finding: (finding.line, finding.column))), skipped)


def _load_checker(language: Language) -> _Checker:
    """The checker of a language. Its libraries are loaded with the first file that needs them."""
    match language:
        case Language.PYTHON:
            from toolyard.tools.validation.program import check_python

            return check_python
        case Language.JAVASCRIPT | Language.TYPESCRIPT | Language.TSX:
            from toolyard.tools.validation.program import check_script

            return lambda text, checkpoint: check_script(text, language, checkpoint)
        case Language.JSON5 | Language.SHELL:
            from toolyard.tools.validation import program

            return program.check_json5 if language is Language.JSON5 else program.check_shell
        case Language.YAML | Language.MARKDOWN:
            from toolyard.tools.validation import data

            return data.check_yaml if language is Language.YAML else data.check_markdown
        case Language.CSS:
            from toolyard.tools.validation import css

            return css.check
        case Language.HTML:
            from toolyard.tools.validation import html

            return html.check
        case _:
            from toolyard.tools.validation import data

            return data.CHECKERS[language]


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


_BY_PROGRAM = {
    "sh": Language.SHELL,
    "bash": Language.SHELL,
    "dash": Language.SHELL,
    "python": Language.PYTHON,
    "node": Language.JAVASCRIPT,
}
_NAMES = {
    Language.JSON: "composer.lock flake.lock .all-contributorsrc",
    Language.JSONC: ".babelrc .eslintrc .jshintrc .swcrc .hintrc",
    Language.TOML: "cargo.lock pipfile poetry.lock uv.lock",
    Language.SHELL: ".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile",
}
_SUFFIXES = {
    Language.PYTHON: ".py .pyi .pyw",
    Language.JSON: ".json .ipynb .geojson .jsonld .webmanifest .har",
    Language.JSONC: ".jsonc .code-workspace .code-snippets",
    Language.JSON5: ".json5",
    Language.JSON_LINES: ".jsonl .ndjson",
    Language.YAML: ".yaml .yml",
    Language.TOML: ".toml",
    Language.XML: ".xml .svg .xhtml .xsd .xsl .xslt .plist .rss .atom .csproj .props .targets .resx .xaml .kml .gpx",
    Language.JAVASCRIPT: ".js .mjs .cjs .jsx",
    Language.TYPESCRIPT: ".ts .mts .cts",
    Language.TSX: ".tsx",
    Language.CSS: ".css",
    Language.HTML: ".html .htm",
    Language.SHELL: ".sh .bash",
    Language.MARKDOWN: ".md .markdown .mdx .mdc",
}
_BY_NAME = {name: language for language, names in _NAMES.items() for name in names.split()}
_BY_SUFFIX = {suffix: language for language, suffixes in _SUFFIXES.items() for suffix in suffixes.split()}


def detect_language(path: str, text: str) -> Language | None:
    """None for a language that has no checker."""
    file = PurePosixPath(path.lower())
    if file.suffix == ".json" and (_COMMENTED.fullmatch(file.name) or set(file.parts[:-1]) & _COMMENTED_FOLDERS):
        return Language.JSONC
    known = _BY_NAME.get(file.name) or _BY_SUFFIX.get(file.suffix)
    if known is Language.TYPESCRIPT and text.lstrip().startswith("<?xml"):
        return Language.XML  # Qt's translations
    if known in (None, Language.SHELL) and text.startswith("#!") and (known or not file.suffix):
        return _detect_by_first_line(text)
    return known


def _detect_by_first_line(text: str) -> Language | None:
    program = _PROGRAM.match(text)
    return _BY_PROGRAM.get(program[1]) if program else None
