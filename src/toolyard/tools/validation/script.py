"""JavaScript, TypeScript and their JSX, by tree-sitter grammars."""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from toolyard.protocol.regex import compile_pattern
from toolyard.protocol.tool import Checkpoint
from toolyard.tools.validation.finding import Finding, Unchecked, finding_at
from toolyard.tools.validation.language import Language
from toolyard.tools.validation.program import run_program

_READER = Path(__file__).with_name("script_reader.py")
_FLOW = compile_pattern(r"\A(?:\s|/\*|\*|//)*+@flow\b")


def check(text: str, language: Language, checkpoint: Checkpoint) -> Iterator[Finding]:
    if _FLOW.match(text):
        raise Unchecked("it is written in Flow")
    for findings in check_all([text], language, checkpoint):
        yield from findings


def check_json5(text: str, checkpoint: Checkpoint) -> Iterator[Finding]:
    """JSON5 is JavaScript: one value, in parentheses so that an object is no block."""
    last = text.count("\n") + 1
    for finding in check(f"({text}\n)", Language.JAVASCRIPT, checkpoint):
        column = finding.column - (finding.line == 1)
        yield replace(finding, line=min(finding.line, last), column=max(1, column))


def check_all(texts: Sequence[str], language: Language, checkpoint: Checkpoint) -> list[list[Finding]]:
    """The findings in each of several scripts: starting the reader is what takes the time."""
    checkpoint()
    request = json.dumps({"path": sys.path, "language": language, "texts": texts})
    answer = run_program([sys.executable, "-I", "-S", str(_READER)], request, checkpoint)
    if not answer.out:
        raise Unchecked(f"its checker failed: {answer.err.strip()[-100:]}")
    problems: list[list[tuple[int, str]]] = json.loads(answer.out)
    return [
        [finding_at(text, index, message) for index, message in text_problems]
        for text, text_problems in zip(texts, problems, strict=True)
    ]
