"""A process that leaves nothing behind: with the block that started it, everything that it has started ends.

As root it is the first process of a namespace, with which the kernel ends all others. Otherwise its processes are found
by a number that they cannot change, which takes some milliseconds, unless it may not start any.
"""

import contextlib
import os
import resource
import signal
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from toolyard import process_numbers
from toolyard.confinement.profile import Profile
from toolyard.confinement.start import can_enter_directly, start_process


@contextlib.contextmanager
def contain_process(
    profile: Profile, argv: Sequence[str], *, starts_others: bool, **options: Any
) -> "Iterator[subprocess.Popen[Any]]":
    """Start ``argv`` under ``profile``, in a session of its own. Options are those of Popen.

    Raises OSError or ValueError.
    """
    started = start_process(replace(profile, is_contained=True), argv, start_new_session=True, **options)
    with started.process as process:
        number = 0 if can_enter_directly() else _mark_process(process.pid, starts_others=starts_others)
        try:
            yield process
        finally:
            if process.returncode is None:  # else its group may be another one by now
                with contextlib.suppress(OSError):
                    os.killpg(process.pid, signal.SIGKILL)
            if number:
                _kill_numbered(number)


def _mark_process(pid: int, *, starts_others: bool) -> int:
    """Keep a process from starting others, or give it a number by which they are found; 0: neither is needed."""
    if not process_numbers.AVAILABLE:
        return 0
    number = process_numbers.NumberSequence().next()
    with contextlib.suppress(OSError, ValueError):  # it has ended, or this is the child of another host
        if not starts_others and os.geteuid() != 0:  # root's processes are not limited
            resource.prlimit(pid, resource.RLIMIT_NPROC, (0, 0))
            return 0
        process_numbers.set_number(pid, number)
    return number


def _kill_numbered(number: int) -> None:
    for pid in process_numbers.kill_all(partial(_find_numbered, number)):
        with contextlib.suppress(OSError):  # only those whose parent is gone became children of this process
            os.waitpid(pid, os.WNOHANG)


def _find_numbered(number: int) -> list[process_numbers.NumberedProcess]:
    return [one for one in process_numbers.find_processes(number) if one.number == number]
