"""The warm form of a launch, derived from its command: a Python or Node interpreter and a plain script."""

import os
import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from toolyard.plugins.launch import Launch

FOLDER = str(Path(__file__).resolve().parent)
_PYTHON = re.compile(r"python[\d.]*")
_NODE = re.compile(r"node(?:js)?[\d.]*")
_FLAGS = re.compile(r"-[BEIOPSsu]+|-Xpycache_prefix=.+")
# variables by which an interpreter runs code before the script, or continues after it
_ODD = frozenset({"NODE_OPTIONS", "PYTHONINSPECT", "PYTHONVERBOSE", "PYTHONPROFILEIMPORTTIME"})


class Interpreter(StrEnum):
    PYTHON = "python"
    NODE = "node"


@dataclass(frozen=True, slots=True)
class WarmCommand:
    interpreter: Interpreter
    program: tuple[str, ...]  # the interpreter and its flags
    script: tuple[str, ...]  # the script as it is named, and its arguments

    def fork_server_argv(self, socket: int, layer: int | None) -> tuple[str, ...]:
        """Return the command of a fork server, with the descriptors of its socket and of its children's layer."""
        words = ("serve", str(socket), "-" if layer is None else str(layer))
        return (*self.program, os.path.join(FOLDER, "fork_main.py"), *words, *self.script)

    def standby_argv(self) -> tuple[str, ...]:
        """Return the command of an interpreter that waits before the script."""
        if self.interpreter is Interpreter.NODE:
            return (*self.program, "--require", os.path.join(FOLDER, "gate.js"), *self.script)
        return (*self.program, os.path.join(FOLDER, "fork_main.py"), "standby", "-", "-", *self.script)


def parse_warm_command(launch: Launch) -> WarmCommand | None:
    """Return the warm form of a launch; None when it can only be started cold."""
    if _ODD & launch.environment.keys():
        return None
    name = Path(launch.argv[0]).name
    at = 1
    if _PYTHON.fullmatch(name):
        kind = Interpreter.PYTHON
        while at < len(launch.argv) and _FLAGS.fullmatch(launch.argv[at]):
            at += 1
    elif _NODE.fullmatch(name):
        kind = Interpreter.NODE
    else:
        return None
    if at == len(launch.argv) or launch.argv[at].startswith("-") or not _is_script(launch.cwd, launch.argv[at]):
        return None
    return WarmCommand(kind, launch.argv[:at], launch.argv[at:])


def _is_script(folder: Path, word: str) -> bool:
    path = folder / word
    return path.is_file() and path.suffix in {".py", ".js", ".cjs", ".mjs"}
