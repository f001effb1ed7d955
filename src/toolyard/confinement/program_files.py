"""The files that a program needs to run at all: itself, its interpreter, and the installation that they belong to."""

import os
from collections.abc import Iterator
from pathlib import Path

_MAX_LINKS = 16
_MAX_PARENTS = 3
_FIRST_LINE = 256
_PROGRAM_FOLDERS = ("bin", "Scripts")
_TOO_WIDE = frozenset({"/", "/usr", "/usr/local", "/home", "/root"})


def list_program_trees(program: str) -> tuple[str, ...]:
    """Return the trees and files to read for starting ``program``, an absolute path.

    A program in a folder ``bin`` belongs to the folder above it, as Python and Node do wherever they are installed,
    unless that is a person's home or holds several programs (``~/.local``): then only the programs beside it are
    readable, which it may start (``uvx`` starts ``uv``). A virtual environment names its base.
    """
    return tuple(dict.fromkeys(_find_trees(program, depth=0)))


def is_program(path: str) -> bool:
    """Return whether ``path`` is a file that can be run: a binary, or a script that names its interpreter."""
    return os.path.isfile(path) and os.access(path, os.X_OK) and _read_first_line(path).startswith((b"\x7fELF", b"#!"))


def list_packages(folder: Path) -> Iterator[str]:
    """Yield what Node reads for the packages of a program in ``folder``: there, and in the folders above it."""
    for place in (folder, *list(folder.parents)[:_MAX_PARENTS]):
        for name in ("node_modules", "package.json"):
            if (place / name).exists():
                yield str(place / name)


def list_editable_sources(program: str) -> Iterator[str]:
    """Yield the folders with code that is installed into the virtual environment of ``program`` but lives elsewhere.

    Whoever can write the environment decides on them.
    """
    environment = Path(program).parent.parent
    if (environment / "pyvenv.cfg").exists():
        for file in environment.glob("lib/*/site-packages/*.pth"):
            lines = file.read_text(errors="replace").splitlines()
            yield from (line for line in lines if os.path.isabs(line) and os.path.isdir(line))


def _find_trees(program: str, depth: int) -> Iterator[str]:
    for link in _follow_links(program):
        yield link
        folder = Path(link).parent
        if folder.name in _PROGRAM_FOLDERS:
            installation = folder.parent
            yield str(folder if _is_too_wide(installation) else installation)
            yield from _find_base(installation)
    interpreter = _read_interpreter(program)
    if interpreter and depth < _MAX_LINKS:
        yield from _find_trees(interpreter, depth + 1)


def _follow_links(path: str) -> Iterator[str]:
    for _ in range(_MAX_LINKS):
        yield path
        try:
            target = os.readlink(path)
        except OSError:
            break
        path = os.path.normpath(os.path.join(os.path.dirname(path), target))
    real = os.path.realpath(path)
    if real != path:
        yield real


def _is_too_wide(installation: Path) -> bool:
    """Return whether a folder is no installation of one program: ``~/.cargo`` also holds credentials."""
    if not (installation / "lib").is_dir():
        return True
    return str(installation) in _TOO_WIDE or installation.name == ".local" or installation == Path.home()


def _find_base(installation: Path) -> Iterator[str]:
    """Yield the installation that a virtual environment was made from.

    A program may have written the file that names it, so it is believed only where there really is a Python.
    """
    try:
        lines = (installation / "pyvenv.cfg").read_text(errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        key, _, value = line.partition("=")
        base = Path(value.strip())
        if key.strip() == "home" and is_program(str(base / "python3")):
            yield str(base)
            if base.name in _PROGRAM_FOLDERS and not _is_too_wide(base.parent):
                yield str(base.parent)


def _read_interpreter(program: str) -> str:
    """Return the interpreter that a script's first line names; empty when it names none."""
    first = _read_first_line(program)
    words = first.removeprefix(b"#!").split() if first.startswith(b"#!") else []
    return os.fsdecode(words[0]) if words and os.path.isabs(words[0]) else ""


def _read_first_line(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.readline(_FIRST_LINE)
    except OSError:
        return b""
