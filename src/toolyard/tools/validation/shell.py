"""Shell scripts, by ``bash -n``: it reads them and runs nothing. No grammar knows the shell as well as a shell."""

import re
import shutil
from collections.abc import Iterator

from toolyard.protocol.tool import Checkpoint
from toolyard.tools.validation.finding import Finding, Severity, Unchecked
from toolyard.tools.validation.program import run_program

_PLACES = "/bin:/usr/bin:/usr/local/bin:/opt/homebrew/bin"  # never a folder that a project could put a bash into
_LINE = re.compile(r"^[^:\n]*: line (\d+): ([^`\n].*)", re.MULTILINE)  # what begins with ` only repeats the line
_QUOTED = re.compile(r"(unexpected token|matching|unexpected argument) `(.*?)'")
_OPENING = {")": "(", "}": "{", "]": "[", "]]": "[["}


def check(text: str, checkpoint: Checkpoint) -> Iterator[Finding]:
    checkpoint()
    output = _run_bash(text, checkpoint)
    lines = text.rstrip("\n").split("\n")
    before: list[str] = []
    for number, message in _LINE.findall(output):
        if before and message.endswith("unexpected end of file"):
            continue  # it follows from the one before
        before.append(message)
        line = max(1, min(int(number), len(lines)))
        severity = Severity.WARNING if message.startswith("warning: ") else Severity.ERROR
        yield Finding(line, _find_column(lines[line - 1], message), severity, message.removeprefix("warning: ")[:200])


def _run_bash(text: str, checkpoint: Checkpoint) -> str:
    bash = shutil.which("bash", path=_PLACES)
    if bash is None:
        raise Unchecked("there is no bash here")
    extra = ["-O", "extglob"] if "extglob" in text else []  # only a script that runs can turn it on by itself
    return run_program([bash, *extra, "-n"], text, checkpoint).err


def _find_column(line: str, message: str) -> int:
    """bash names no columns: that of the word it complains of, else of the first one in the line."""
    named = _QUOTED.search(message)
    word = named[2] if named else ""
    if named and named[1] == "matching":
        word = _OPENING.get(word, word)
    index = line.find(word) if word else -1
    return (index if index >= 0 else len(line) - len(line.lstrip())) + 1
