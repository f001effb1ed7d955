"""Process numbers: which call a process belongs to. A process and all its descendants carry the number.

The number is the RLIMIT_LOCKS of the child: Linux has enforced nothing by it since 2.6, but it goes through fork, exec,
setsid and a second fork, and nobody but root can raise it again. ``/proc/<pid>/limits`` shows it of any process. The
high bits are the host's, so that several hosts on one machine never take each other's processes; the low ones count
calls. Where the kernel offers none of this (macOS) ``AVAILABLE`` is False and children are known by their group only.
It finds what hides by accident or habit. A program that lowers its own limit on purpose is lost: this is no sandbox.

A child is to have its number before its first instruction, so the host takes it on itself (as soft limit) while it
starts the child. Another thread's child may inherit it in that moment: it has the host's session and no hard limit of
that number, and so it is not counted as a member.

The guardian runs this file without the rest of Toolyard: it imports the standard library only, and little of it.

Whether one process still runs is known by its pid and its start time: a pid alone may be reused.
"""

import contextlib
import os
import re
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

AVAILABLE = sys.platform == "linux" and hasattr(resource, "prlimit") and os.path.exists("/proc/self/limits")
ROUNDS = 100
_PAUSE_S = 0.01
_LOCKS = 10  # RLIMIT_LOCKS, which Python does not name
_COUNT_BITS = 32
_LOCKS_LINE = re.compile(rb"^Max file locks +(\w+) +(\w+)", re.M)


class NumberedProcess(NamedTuple):
    """A process that belongs to a call. A zombie is dead already and only waits for its parent."""

    pid: int
    number: int
    zombie: bool


class NumberSequence:
    """The numbers of one host: ``prefix`` is common to them all."""

    def __init__(self) -> None:
        self.prefix = (int.from_bytes(os.urandom(4), "big") >> 2 | 1) << _COUNT_BITS
        self._count = 0

    def next(self) -> int:
        self._count += 1
        return self.prefix | self._count


@contextlib.contextmanager
def inherit_number(number: int) -> Iterator[None]:
    """Give the number to processes started in this block. Raises OSError or ValueError when not permitted."""
    soft, hard = resource.getrlimit(_LOCKS)
    resource.setrlimit(_LOCKS, (number, hard))
    try:
        yield
    finally:
        resource.setrlimit(_LOCKS, (soft, hard))


def is_number(value: int) -> bool:
    """Return whether a value is a number, and not the pid of a process that has none."""
    return value >> _COUNT_BITS != 0


def set_number(pid: int, number: int) -> None:
    """Number a process. Raises OSError when the process is gone or may not be numbered."""
    resource.prlimit(pid, _LOCKS, (number, number))


def find_processes(prefix: int) -> Iterator[NumberedProcess]:
    """Yield every process on this machine, of any group or session, that carries a number of the host ``prefix``.

    Any number of that host will do in place of its prefix.
    """
    ours = os.getsid(0)
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/limits", "rb", buffering=0) as file:
                    match = _LOCKS_LINE.search(file.read(4096))
            except OSError:
                continue  # it ended, or it is somebody else's
            if not match or not match[1].isdigit() or int(match[1]) >> _COUNT_BITS != prefix >> _COUNT_BITS:
                continue
            state, session = _read_stat(name)
            if match[1] == match[2] or session != ours:
                yield NumberedProcess(int(name), int(match[1]), state in "ZX")


def list_own_children() -> list[int] | None:
    """Return the pids of this process's children; None when the kernel does not tell."""
    pid = os.getpid()
    try:
        with open(f"/proc/{pid}/task/{pid}/children", "rb", buffering=0) as file:
            return [int(one) for one in file.read(1 << 16).split()]
    except (OSError, ValueError):
        return None


def has_number(pid: int, number: int) -> bool:
    """Return whether a process is alive and carries this number."""
    try:
        soft, hard = resource.prlimit(pid, _LOCKS)
    except (OSError, ValueError):
        return False
    if soft != number:
        return False
    state, session = _read_stat(str(pid))
    return state not in "ZX" and (hard == number or session != os.getsid(0))


def kill_all(find: Callable[[], Iterable[NumberedProcess]]) -> set[int]:
    """Freeze, so that nothing is forked any more, then kill; repeat until none is found. Return the pids."""
    seen: set[int] = set()
    for _ in range(ROUNDS):
        frozen: set[int] = set()
        for _ in range(ROUNDS):
            new = {member.pid for member in find() if not member.zombie} - frozen
            if not new:
                break
            send_signal(new, signal.SIGSTOP)
            frozen |= new
        if not frozen:
            break
        send_signal(frozen, signal.SIGKILL)
        seen |= frozen
        time.sleep(_PAUSE_S)  # the kernel takes a moment to end them
    return seen


def send_signal(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:
            continue


def _read_stat(pid: str) -> tuple[str, int]:
    """Return the state of a process (Z is a zombie) and its session."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            fields = file.read(512).rpartition(b") ")[2].split()
    except OSError:
        return "X", 0
    return fields[0].decode(), int(fields[3])


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
