"""``entryPoint.command`` as the argv of a program: split as a shell splits it, started without one (S-81).

The program is a file of the plugin's own folder or one of a short list of interpreters; a script that is named to an
interpreter is in the folder too, so that a review covers it. What only a shell understands is refused, unless the
manifest says so; then the whole line goes to ``/bin/sh``.

``python``, ``python3`` and ``py`` are, in this order: the plugin's own virtual environment, the interpreter that the
owner chose, what PATH has (version managers' shims are looked through, since they cost more than the plugin), and the
interpreter that runs Toolyard. Reads the file system, changes nothing.
"""

import os
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from toolyard.confinement.program_files import is_inside, resolve_links
from toolyard.message import Message

_INTERPRETERS = re.compile(
    r"(?:python|pypy|node|nodejs|ruby|perl|php|lua|luajit|tclsh)[\d.]*|bun|deno|bash|sh|dash|zsh|pwsh|java|dotnet|go|julia|Rscript"
)
_HAS_SUBCOMMANDS = re.compile(r"bun|deno|go|java|dotnet|julia")
_SHELLS = frozenset({"bash", "sh", "dash", "zsh"})
_PYTHON = frozenset({"python", "python3", "py"})
# where a plugin keeps an interpreter of its own
OWN_PYTHON = (".venv/bin/python", "venv/bin/python")
_NO_SCRIPT = frozenset({"-c", "-m", "-e", "--eval", "--print"})  # what follows is no script
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_NEEDS_SHELL = re.compile(
    r"""'[^']*'|\\.|"(?:[^"\\$`]|\\.)*"|(?P<syntax>&&|\|\||\$\(|\$\w*|>>|[;|&<>`()*?\[\n]|(?<!\S)[#~])""", re.DOTALL
)
_IN_QUOTES = re.compile(r'"(?:[^"\\$`]|\\.)*(?P<syntax>\$\(|\$\w*|`)', re.DOTALL)
_WINDOWS_PATH = re.compile(r"[A-Za-z]:[\\/][\w.\\/ -]*|[\w.-]*(?:\\[\w. -]+)+")
_WINDOWS_PROGRAM = re.compile(r".*\.(?:exe|bat|cmd|com|ps1)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CommandLine:
    argv: tuple[str, ...]  # argv[0] is an absolute path
    files: tuple[str, ...] = ()  # what it names inside the folder, relative to it


@dataclass(frozen=True, slots=True)
class CommandProblem:
    message: str
    fix: str


class Programs:
    """The interpreters of this machine. A path that was found is remembered while it exists."""

    def __init__(self, search: str, *, python: str | None = None) -> None:
        """``search`` is the PATH of children, ``python`` the interpreter that the owner chose for plugins."""
        self._search, self._chosen = search, python
        self._found: dict[str, str] = {}

    def with_our_python(self) -> "Programs":
        """Return a copy that takes the interpreter that runs Toolyard as Python, for shipped plugins."""
        return Programs(self._search, python=sys.executable)

    def with_python(self, python: Path) -> "Programs":
        """Return a copy that takes this interpreter as Python, if it is there."""
        return Programs(self._search, python=str(python)) if os.access(python, os.X_OK) else self

    def find(self, name: str) -> str | None:
        known = self._found.get(name)
        if known is None or not os.access(known, os.X_OK):
            known = next(_search_path(name, self._search), None)
            if known:
                self._found[name] = known
        return known

    def find_python(self, folder: str) -> str:
        """Return the path of Python. Links are not resolved: a virtual environment is known by its path."""
        for own in OWN_PYTHON:
            path = f"{folder}/{own}"
            if os.access(path, os.X_OK):
                return os.path.abspath(path)
        if self._chosen:
            return self._chosen
        candidates = (self.find(name) for name in ("python", "python3"))
        return next((path for path in candidates if path and not _is_python_2(path)), sys.executable)


def resolve_command(command: str, folder: Path, *, shell: bool, programs: Programs) -> CommandLine | CommandProblem:
    """Return the argv for ``command`` in ``folder``, or the problem with it."""
    if "\0" in command or not command.strip():
        return CommandProblem(Message("the command is empty or holds a NUL"), Message('write it as "python main.py"'))
    if windows := _find_windows_path(command, only_first=shell):
        return _windows_problem(windows)
    if shell:
        return CommandLine(("/bin/sh", "-c", command), _named_files(_split_words(command), folder))
    syntax = _find_shell_syntax(command)
    if syntax:
        return _shell_problem(Message("'{syntax}' in the command needs a shell", syntax=syntax))
    try:
        words = shlex.split(command)
    except ValueError:
        return CommandProblem(
            Message("a quote in the command is never closed: {command}", command=command), Message("close it")
        )
    if _ASSIGNMENT.match(words[0]):
        return _shell_problem(Message("setting a variable in the command, '{words}', needs a shell", words=words[0]))
    program = _resolve_program(words[0], folder, programs)
    if isinstance(program, CommandProblem):
        return program
    problem = _find_script_problem(words, folder)
    return problem or CommandLine((program, *words[1:]), _named_files([program, *words[1:]], folder))


def _shell_problem(message: str) -> CommandProblem:
    return CommandProblem(message, Message('write it without, or say "shell": true in entryPoint'))


def _find_windows_path(command: str, *, only_first: bool) -> str | None:
    """Return the first Windows path: one with a drive, or with backslashes and a file name."""
    for words in (command.split(), _split_words(command)):  # as they are written, and without their quotes
        for number, word in enumerate(words[:1] if only_first else words):
            is_file = number == 0 or "." in word.rpartition("\\")[2] or word[1:2] == ":"
            if is_file and _WINDOWS_PATH.fullmatch(word):
                return word
    return None


def _windows_problem(path: str) -> CommandProblem:
    message = Message("the command has a path as Windows writes it, '{path}'", path=path)
    if _WINDOWS_PROGRAM.fullmatch(path):
        return CommandProblem(message, Message("name a program that this machine can run, with '/' in its path"))
    if path[1:2] == ":":
        return CommandProblem(message, Message("name a file of the plugin's folder, with '/' in its path"))
    return CommandProblem(message, Message('write "{chr}"', chr=path.replace(chr(92), "/")))


def _find_shell_syntax(command: str) -> str | None:
    """Return the first part of the command that only a shell would understand."""
    at = 0
    while at < len(command):
        match = _NEEDS_SHELL.match(command, at) or _IN_QUOTES.match(command, at)
        if match and match.groupdict().get("syntax"):
            return match["syntax"].replace("\n", Message("a new line"))
        at = match.end() if match else at + 1
    return None


def _split_words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def _resolve_program(word: str, folder: Path, programs: Programs) -> str | CommandProblem:
    if word in _PYTHON:
        return programs.find_python(str(folder))
    if "/" in word:
        return _resolve_path(word, folder)
    if not _INTERPRETERS.fullmatch(word):
        own = os.path.isfile(folder / word)
        fix = (
            Message('write "./{word}"', word=word)
            if own
            else Message('put the program into the plugin\'s folder and write "./{word}"', word=word)
        )
        return CommandProblem(
            Message("'{word}' is neither a file named by its path nor a known interpreter", word=word), fix
        )
    return programs.find(word) or CommandProblem(
        Message("'{word}' is not installed: it is nowhere on PATH", word=word), Message("install {word}", word=word)
    )


def _resolve_path(word: str, folder: Path) -> str | CommandProblem:
    path = folder / word  # an absolute word stays absolute
    if not os.path.isfile(path):
        return CommandProblem(
            Message("the program '{word}' does not exist", word=word), Message("correct the path, or build the program")
        )
    if not os.access(path, os.X_OK):
        return CommandProblem(
            Message("the program '{word}' is not executable", word=word),
            Message("chmod +x {word}", word=shlex.quote(word)),
        )
    known = _INTERPRETERS.fullmatch(path.name) is not None
    if not known and not _is_inside(path, folder):
        return CommandProblem(
            Message("the program '{word}' is outside the plugin's folder and no known interpreter", word=word),
            Message("copy it into the folder"),
        )
    return os.path.abspath(path)


def _find_script_problem(words: list[str], folder: Path) -> CommandProblem | None:
    """Return the problem when an interpreter would run code that a review does not cover."""
    name = os.path.basename(words[0])
    if name not in _PYTHON and not _INTERPRETERS.fullmatch(name):
        return None
    for before, word in pairwise(words):
        if name in _SHELLS and re.fullmatch(r"-[A-Za-z]*c", word):
            return _shell_problem(Message("'{name} {word}' is a shell", name=name, word=word))
        if word in _NO_SCRIPT and name not in _SHELLS:
            return None
        if "://" in word:
            return CommandProblem(
                Message("'{word}' would run code from elsewhere", word=word), Message("copy it into the folder")
            )
        if os.path.isfile(folder / word) and not word.startswith("-"):
            inside = _is_inside(folder / word, folder)
            fault = CommandProblem(
                Message("the script '{word}' is outside the plugin's folder", word=word),
                Message("copy it into the folder"),
            )
            return None if inside else fault
        if not before.startswith("-") and not word.startswith("-") and not _HAS_SUBCOMMANDS.fullmatch(name):
            return CommandProblem(
                Message("the command names '{word}', which is not a file of the plugin", word=word),
                Message("correct its name"),
            )
    return None


def _is_python_2(path: str) -> bool:
    return os.path.basename(resolve_links(path)).startswith("python2")


def _search_path(name: str, search: str) -> Iterator[str]:
    for place in search.split(os.pathsep):
        if not os.path.isabs(place):
            continue  # the current folder, under any name, is not where interpreters are
        shim = os.path.basename(place) == "shims"
        path = _resolve_shim(place, name) if shim else os.path.join(place, name)
        if path and os.path.isfile(path) and os.access(path, os.X_OK):
            yield path


def _resolve_shim(place: str, name: str) -> str | None:
    """Return the program behind a shim of pyenv and the like: that of the global version."""
    root = Path(place).parent
    try:
        version = (root / "version").read_text(encoding="utf-8").split()[0]
    except (OSError, ValueError, IndexError):
        return None
    return str(root / "versions" / version / "bin" / name)


def _named_files(words: list[str], folder: Path) -> tuple[str, ...]:
    """Return the words that name files of the folder, relative to it."""
    base = os.path.abspath(folder)
    named = [os.path.abspath(os.path.join(base, word)) for word in words if not word.startswith("-")]
    inside = [path[len(base) + 1 :] for path in named if path.startswith(base + os.sep) and os.path.isfile(path)]
    return tuple(dict.fromkeys(inside))


def _is_inside(path: Path, folder: Path) -> bool:
    return is_inside(resolve_links(str(path)), resolve_links(str(folder)))
