"""Liveness of processes on this machine, by pid and start time: a pid alone may be reused."""

import os
from pathlib import Path


def is_process_alive(pid: int, began: int) -> bool:
    """Return whether this process still runs, and its pid was not reused."""
    return _process_exists(pid) and process_start_time(pid) == began


def has_ended(pid: int) -> bool:
    """Return whether a process that nobody has waited for yet is dead; False where the system does not tell."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] in "ZX"


def is_group_alive(group: int) -> bool:
    """Return whether a process group has any process, a zombie included, that this process may signal."""
    try:
        os.killpg(group, 0)
    except OSError:
        return False
    return True


def process_start_time(pid: int) -> int:
    """Return the start time of a process in kernel ticks; 0 when it is unknown or the process is a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    fields = stat.rpartition(")")[2].split()
    return 0 if fields[0] == "Z" else int(fields[19])


def _process_exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
