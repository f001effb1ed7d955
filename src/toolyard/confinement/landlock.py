"""Landlock: the kernel's allow-list of files for a thread and everything that it starts.

What a kernel knows depends on its version of the interface: 1 files (Linux 5.13), 2 moves between folders (5.19),
3 truncation (6.2), 4 TCP ports (6.7), 5 device ioctls (6.10), 6 signals and abstract sockets (6.12). Whatever a kernel
does not know is left out here and made up for elsewhere, or named by ``level``. A confined process can also never
trace, or read the memory and environment of, a process outside its own confinement, nor mount anything.
"""

import ctypes
import functools
import os
import stat
from collections.abc import Iterable

from toolyard.confinement import linux

VERSION_REFER, VERSION_TRUNCATE, VERSION_TCP, VERSION_SCOPES = 2, 3, 4, 6

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 1 << 1, 1 << 2, 1 << 3
_REMOVE_DIR, _REMOVE_FILE = 1 << 4, 1 << 5
_MAKE_CHAR, _MAKE_DIR, _MAKE_REG, _MAKE_SOCK, _MAKE_FIFO, _MAKE_BLOCK, _MAKE_SYM = (1 << bit for bit in range(6, 13))
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_HANDLED = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
_CONNECT_TCP, _BIND_TCP = 1 << 1, 1
_SCOPE_ABSTRACT_SOCKETS, _SCOPE_SIGNALS = 1, 1 << 1

READ = _EXECUTE | _READ_FILE | _READ_DIR
WRITE = (
    READ | _WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG | _MAKE_SOCK | _MAKE_FIFO | _MAKE_SYM
    | _REFER | _TRUNCATE | _IOCTL_DEV
)  # fmt: skip
LIST = _READ_DIR
DEVICE = _READ_FILE | _WRITE_FILE | _IOCTL_DEV
_OF_A_FILE = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV

_PATH_BENEATH, _NET_PORT = 1, 2
_GET_VERSION = 1


class _RulesetAttributes(ctypes.Structure):
    _fields_ = [("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64)]


class _PathRule(ctypes.Structure):
    _layout_ = "ms"  # the one that Python packs; without bit fields it is the same as GCC's
    _pack_ = 1
    _fields_ = [("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32)]


class _PortRule(ctypes.Structure):
    _fields_ = [("allowed", ctypes.c_uint64), ("port", ctypes.c_uint64)]


@functools.cache
def interface_version() -> int:
    """Return the version of Landlock's interface that this kernel has; 0: it has none, or it is turned off."""
    try:
        return linux.syscall(linux.LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_GET_VERSION))
    except OSError:
        return 0


def restrict_thread(trees: Iterable[tuple[int, int]], *, tcp_ports: Iterable[int] | None = None) -> None:
    """Confine the calling thread to ``trees``: descriptors of files and folders with READ, WRITE, LIST or DEVICE.

    ``tcp_ports`` are the only ports it may connect to, where the kernel knows that; None: any. The thread must not be
    able to gain privileges (``thread.forbid_new_privileges``). Raises OSError.
    """
    version = interface_version()
    handled = _HANDLED[min(version, max(_HANDLED))]
    network = _CONNECT_TCP if tcp_ports is not None and version >= VERSION_TCP else 0
    ruleset = _create_ruleset(handled, network)
    try:
        for opened, access in trees:
            allowed = access if stat.S_ISDIR(os.fstat(opened).st_mode) else access & _OF_A_FILE
            _add_rule(ruleset, _PATH_BENEATH, _PathRule(allowed & handled, opened))
        for port in tcp_ports or () if network else ():
            _add_rule(ruleset, _NET_PORT, _PortRule(_CONNECT_TCP, port))
        linux.syscall(linux.LANDLOCK_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)


def create_layer() -> int | None:
    """Return a ruleset that takes no file from a process which adds it; None: this kernel has no Landlock.

    What the process starts is then in a confinement of its own: it can trace, or read the memory of, nobody outside,
    and with a newer kernel neither signal nor connect to them. Raises OSError.
    """
    version = interface_version()
    if not version:
        return None
    if version < VERSION_REFER:
        return _create_ruleset(_MAKE_BLOCK)  # which no profile allows
    ruleset = _create_ruleset(_REFER)  # every layer forbids it unless it says otherwise
    root = os.open("/", os.O_PATH | os.O_CLOEXEC)
    try:
        _add_rule(ruleset, _PATH_BENEATH, _PathRule(_REFER, root))
    finally:
        os.close(root)
    return ruleset


def _create_ruleset(files: int, network: int = 0) -> int:
    version = interface_version()
    scoped = _SCOPE_ABSTRACT_SOCKETS | _SCOPE_SIGNALS if version >= VERSION_SCOPES else 0
    attributes = _RulesetAttributes(files, network, scoped)
    size = 8 if version < VERSION_TCP else 16 if version < VERSION_SCOPES else 24
    return linux.syscall(
        linux.LANDLOCK_CREATE_RULESET, ctypes.byref(attributes), ctypes.c_size_t(size), ctypes.c_uint32(0)
    )


def _add_rule(ruleset: int, kind: int, rule: ctypes.Structure) -> None:
    linux.syscall(
        linux.LANDLOCK_ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(kind), ctypes.byref(rule), ctypes.c_uint32(0)
    )
