"""Bubblewrap: a program of the system that gives another one processes of its own, so that it sees no others."""

import shutil
import subprocess
from functools import cache
from typing import Final

_PROGRAM: Final = "bwrap"
_PROBE_S = 10.0


@cache
def can_use() -> bool:
    """Return whether it is installed and this system lets it work."""
    command = build_command()
    if command is None:
        return False
    try:
        done = subprocess.run(  # noqa: S603 a program of the system, with arguments of ours
            [*command, "true"], stdin=subprocess.DEVNULL, capture_output=True, timeout=_PROBE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def build_command() -> tuple[str, ...] | None:
    """Return the words before a command that give it processes of its own; None when it is not installed."""
    program = shutil.which(_PROGRAM)
    if program is None:
        return None
    return (program, "--dev-bind", "/", "/", "--unshare-pid", "--proc", "/proc", "--")
