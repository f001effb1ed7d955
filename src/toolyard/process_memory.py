"""The memory of this process: closed to other processes of the same user, and how much of it is left.

A process that is not dumpable cannot be traced by its own user, its memory and environment under ``/proc`` belong to
root, and it leaves no core file. Programs that it starts are dumpable again. Linux only; root can always read it.

A process may have a limit of address space (``ulimit -v``). Near it, threads do not start, stacks do not grow and
libraries end the process for want of a few bytes, so that no work begins when less than ``RESERVE`` is left.
"""

import contextlib
import resource
import sys

RESERVE = 64 * 2**20
_PR_SET_DUMPABLE = 4
_M_ARENA_MAX, _ARENAS = -8, 2


def protect_memory() -> bool:
    """Close the memory of this process to others of its user; return whether the kernel has done it."""
    if sys.platform != "linux":
        return False
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        return bool(ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) == 0)
    return False


def save_address_space() -> None:
    """Keep each thread of a process whose address space is limited from reserving 64 MiB for what it allocates."""
    if count_free_bytes() is None:
        return
    import ctypes

    with contextlib.suppress(OSError, AttributeError):  # only the GNU library has it
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS)


def count_free_bytes() -> int | None:
    """Return how much address space this process may still take; None: no limit, or the system does not tell."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return None
    try:
        with open("/proc/self/statm", "rb", buffering=0) as file:
            return max(0, limit - int(file.read(64).split()[0]) * resource.getpagesize())
    except OSError:
        return None


def is_short_of_memory() -> bool:
    free = count_free_bytes()
    return free is not None and free < RESERVE
