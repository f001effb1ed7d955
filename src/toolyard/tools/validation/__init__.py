"""Validation: a file that was just written is checked in the language that its name tells.

A finding is a remark, never a failure: the write has been done, and it stands. Checking runs nothing of the file, never
raises, and is bounded: by the size of the file, which every checker in this process reads in linear time; by a time
limit for those that are programs of their own; by the number of findings. A file that cannot be checked is reported.
"""

import re
from collections.abc import Callable, Iterator
from typing import TypeAlias

from toolyard.protocol.envelope import Failure
from toolyard.protocol.tool import Checkpoint
from toolyard.tools.validation.finding import (
    MAX_SECONDS,
    Finding,
    Language,
    Severity,
    Unchecked,
    Validation,
    detect_language,
    finding_at,
)

__all__ = ["MAX_BYTES", "MAX_FINDINGS", "MAX_SECONDS", "Finding", "Severity", "Validation", "validate"]

MAX_BYTES = 1024 * 1024
MAX_FINDINGS = 20
_HALVES = re.compile("[\ud800-\udfff]")

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


def _load_checker(language: Language) -> _Checker:
    """The checker of a language. Its libraries are loaded with the first file that needs them."""
    match language:
        case Language.PYTHON:
            from toolyard.tools.validation import python

            return python.check
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
