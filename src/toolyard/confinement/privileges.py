"""Privileges of a thread: which it has as root, and that neither it nor its children ever get others."""

import ctypes
import os

from toolyard.confinement import linux

_SET_NO_NEW_PRIVILEGES, _DROP_BOUND, _AMBIENT, _AMBIENT_CLEAR_ALL = 38, 24, 47, 4
_VERSION_3 = 0x20080522
# root's files stay usable: change owner, ignore modes, act as owner, keep set-id bits
_KEPT = frozenset({0, 1, 3, 4})
_COUNT = 64


def forbid_new() -> None:
    """Make sure that no program started from here gains privileges, by a set-id bit or otherwise. Raises OSError."""
    linux.prctl(_SET_NO_NEW_PRIVILEGES, ctypes.c_ulong(1))


def drop_capabilities() -> None:
    """Give up what root can do beyond files, for this thread and what it starts. Raises OSError.

    Another user gives up whatever it was given: a service may have a capability, which programs would inherit.
    """
    permitted = _read_permitted()
    kept_ones = _KEPT if os.geteuid() == 0 else frozenset[int]()
    if not permitted and not kept_ones:
        return
    for capability in range(_COUNT):
        if capability not in kept_ones:
            try:
                linux.prctl(_DROP_BOUND, ctypes.c_ulong(capability))
            except OSError:  # EINVAL: there are no more; EPERM: the bound cannot be changed, and capset decides
                break
    linux.prctl(_AMBIENT, ctypes.c_ulong(_AMBIENT_CLEAR_ALL))
    header = (ctypes.c_uint32 * 2)(_VERSION_3, 0)
    kept = sum(1 << capability for capability in kept_ones) & permitted
    linux.capset(header, (ctypes.c_uint32 * 6)(kept, kept, 0, 0, 0, 0))


def _read_permitted() -> int:
    with open("/proc/thread-self/status", "rb", buffering=0) as file:
        for line in file.read().splitlines():
            if line.startswith(b"CapPrm:"):
                return int(line.split()[1], 16)
    return 0
