"""The files that a program needs to run at all: itself, its interpreter, and the installation that they belong to."""

import os
from collections.abc import Iterator
from pathlib import Path

_MAX_LINKS = 16
_FIRST_LINE = 256
_TOO_WIDE = frozenset({"/", "/usr", "/usr/local", "/home", "/root"})


def list_program_trees(program: str) -> tuple[str, ...]:
    """Return the trees and files to read for starting ``program``, an absolute path.

    A program in a folder ``bin`` belongs to the folder above it, as Python and Node do wherever they are installed,
    unless that is a person's home or holds several programs (``~/.local``). A virtual environment names its base.
    """
    return tuple(dict.fromkeys(_find_trees(program, depth=0)))


def _find_trees(program: str, depth: int) -> Iterator[str]:
    for link in _follow_links(program):
        yield link
        installation = _find_installation(Path(link))
        if installation is not None:
            yield str(installation)
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


def _find_installation(program: Path) -> Path | None:
    folder = program.parent
    if folder.name not in {"bin", "Scripts"}:
        return None
    installation = folder.parent
    if str(installation) in _TOO_WIDE or installation.name == ".local" or installation == Path.home():
        return None
    return installation


def _find_base(installation: Path) -> Iterator[str]:
    """Yield the installation that a virtual environment was made from."""
    try:
        lines = (installation / "pyvenv.cfg").read_text(errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        key, _, value = line.partition("=")
        if key.strip() == "home":
            base = Path(value.strip())
            yield str(base)
            if (found := _find_installation(base / "python")) is not None:
                yield str(found)


def _read_interpreter(program: str) -> str:
    """Return the interpreter that a script's first line names; empty when it names none."""
    try:
        with open(program, "rb") as file:
            first = file.readline(_FIRST_LINE)
    except OSError:
        return ""
    words = first.removeprefix(b"#!").split() if first.startswith(b"#!") else []
    return os.fsdecode(words[0]) if words and os.path.isabs(words[0]) else ""
