"""Programs: Python by its own compiler, shell scripts by ``bash -n``, JavaScript and TypeScript by tree-sitter.

Nothing of a file is run. ``bash -n`` only reads a script; no grammar knows the shell as well as a shell. The grammars
of tree-sitter are C, so ``script_reader`` runs them in a process of its own.
"""

import json
import os
import re
import shutil
import subprocess
import symtable
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from toolyard.confinement.profile import Profile
from toolyard.confinement.program_files import list_program_trees
from toolyard.confinement.start import contain_process
from toolyard.protocol.regex import compile_pattern
from toolyard.protocol.tool import Checkpoint
from toolyard.tools.validation import MAX_SECONDS, Finding, Language, Severity, Unchecked, finding_at

_POLL_S = 0.05  # how often a waiting check looks at its checkpoint
_PLACES = "/bin:/usr/bin:/usr/local/bin:/opt/homebrew/bin"  # never a folder that a project could put a bash into
_LINE = re.compile(r"^[^:\n]*: line (\d+): ([^`\n].*)", re.MULTILINE)  # what begins with ` only repeats the line
_QUOTED = re.compile(r"(unexpected token|matching|unexpected argument) `(.*?)'")
_OPENING = {")": "(", "}": "{", "]": "[", "]]": "[["}
_READER = Path(__file__).with_name("script_reader.py")
_FLOW = compile_pattern(r"\A(?:\s|/\*|\*|//)*+@flow\b")


def check_shell(text: str, checkpoint: Checkpoint) -> Iterator[Finding]:
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


def check_script(text: str, language: Language, checkpoint: Checkpoint) -> Iterator[Finding]:
    if _FLOW.match(text):
        raise Unchecked("it is written in Flow")
    for findings in check_all([text], language, checkpoint):
        yield from findings


def check_json5(text: str, checkpoint: Checkpoint) -> Iterator[Finding]:
    """JSON5 is JavaScript: one value, in parentheses so that an object is no block."""
    last = text.count("\n") + 1
    for finding in check_script(f"({text}\n)", Language.JAVASCRIPT, checkpoint):
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


@dataclass(frozen=True, slots=True)
class ProgramOutput:
    out: str
    err: str


def run_program(command: Sequence[str], given: str, checkpoint: Checkpoint) -> ProgramOutput:
    """Run ``command`` with ``given`` on its stdin. It is killed when its time is over or the checkpoint raises.

    Whatever it has started ends with it.
    """
    with tempfile.TemporaryFile() as stdin:  # not a pipe: of one, a shell reads a byte at a time
        stdin.write(given.encode())
        stdin.seek(0)
        with contain_process(
            Profile(read=(*list_program_trees(command[0]), *map(os.path.realpath, filter(os.path.isabs, command[1:])))),
            command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/", env={"LC_ALL": "C.UTF-8"},
            starts_others=False,
        ) as process:  # fmt: skip
            out, err = _wait(process, checkpoint)
    if process.returncode < 0:
        raise Unchecked("its checker crashed")
    return ProgramOutput(out.decode(errors="replace"), err.decode(errors="replace"))


def _wait(process: subprocess.Popen[bytes], checkpoint: Checkpoint) -> tuple[bytes, bytes]:
    for _ in range(round(MAX_SECONDS / _POLL_S)):
        try:
            return process.communicate(timeout=_POLL_S)
        except subprocess.TimeoutExpired:
            checkpoint()
    raise Unchecked(f"its checker needed more than {MAX_SECONDS:g} s")


_MAX_COMPILED = 128 * 1024  # of longer files only grammar and names are checked: the compiler's time is not linear
_FILE = "<validated file>"
_QUIET = ("ignore", None, Warning, re.compile(re.escape(_FILE)), 0)


def check_python(text: str, checkpoint: Checkpoint) -> Iterator[Finding]:
    checkpoint()
    if _QUIET not in warnings.filters:
        # What Python would warn of is not ours to print, nor an error if warnings are. Only this file's name is
        # silenced, once and for all: warnings.catch_warnings() is not safe among threads.
        warnings.filterwarnings("ignore", module=re.escape(_FILE))
    try:
        if len(text) <= _MAX_COMPILED:
            compile(text, _FILE, "exec", dont_inherit=True)
        else:
            symtable.symtable(text, _FILE, "exec")
    except SyntaxError as error:
        yield _to_finding(text, error)
    except (RecursionError, MemoryError) as error:  # the parser says MemoryError for thousands of nested operators
        raise Unchecked("its expressions are nested too deeply") from error
    except (ValueError, OverflowError) as error:
        yield finding_at(text, 0, str(error))


def _to_finding(text: str, error: SyntaxError) -> Finding:
    line = max(1, min(error.lineno or 1, text.count("\n") + 1))
    return Finding(line, max(1, error.offset or 1), Severity.ERROR, error.msg[:200])
