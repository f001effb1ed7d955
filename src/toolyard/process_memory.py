"""The memory of this process, closed to other processes of the same user.

A process that is not dumpable cannot be traced by its own user, its memory and environment under ``/proc`` belong to
root, and it leaves no core file. Programs that it starts are dumpable again. Linux only; root can always read it.
"""

import contextlib
import sys

_PR_SET_DUMPABLE = 4


def protect_memory() -> bool:
    """Close the memory of this process to others of its user; return whether the kernel has done it."""
    if sys.platform != "linux":
        return False
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        return bool(ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) == 0)
    return False
