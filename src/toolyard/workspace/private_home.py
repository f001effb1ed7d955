"""Toolyard's own home is no place for tools, also when it stands inside the project.

It holds what makes writes safe and, in its settings, a key. No tool enters it: not by a path, a listing or a search.
"""

import os
from pathlib import Path

from toolyard.message import Message
from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure

_homes: set[str] = set()


def keep_private(home: Path, root: Path) -> None:
    """Close ``home`` to all tools, if it is inside ``root``; it need not exist yet."""
    real = os.path.realpath(home)
    if Path(real).is_relative_to(os.path.realpath(root)):
        _homes.add(real)


def is_private(folder: int) -> bool:
    """Return whether an open folder is such a home."""
    return bool(_homes) and any(_is_same_folder(home, folder) for home in tuple(_homes))  # another thread may add one


def private_home_failure(path: str) -> Failure:
    return Failure(
        ErrorCode.ACCESS_DENIED,
        Message("home.access_forbidden", "'{path}' is in Toolyard's own home, which no tool enters.", path=path),
        hint=Message("hint.use_command_line", "Use the command line to look at settings and state."),
    )


def _is_same_folder(home: str, folder: int) -> bool:
    try:
        return os.path.samestat(os.stat(home), os.fstat(folder))
    except FileNotFoundError:
        return False
