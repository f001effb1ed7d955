"""Linux system calls that Python does not offer, by ctypes. Every function raises OSError."""

import ctypes
import errno
import os
import platform
import struct
import sys

IS_LINUX = sys.platform == "linux" and sys.maxsize > 2**32
MACHINE = platform.machine() if IS_LINUX else ""
# the same on every architecture
LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF = 444, 445, 446
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
_OPEN_TREE_CLONE, _AT_RECURSIVE, _MOVE_MOUNT_EMPTY_PATH, _MOUNT_READ_ONLY = 1, 0x8000, 4, 1
_AT_CWD = ctypes.c_int(-100)

_libc = ctypes.CDLL(None, use_errno=True) if IS_LINUX else None


def syscall(number: int, *arguments: object) -> int:
    return _check(_load().syscall(ctypes.c_long(number), *arguments))


def prctl(option: int, *arguments: object) -> int:
    return _check(_load().prctl(ctypes.c_int(option), *(*arguments, *[ctypes.c_ulong(0)] * 4)[:4]))


def unshare(flags: int) -> None:
    _check(_load().unshare(ctypes.c_int(flags)))


def mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    words = (os.fsencode(source), os.fsencode(target), kind.encode(), ctypes.c_ulong(flags), data.encode())
    _check(_load().mount(*words))


def copy_mounts(path: str) -> int:
    """Return a descriptor of a copy of what is mounted at and below ``path``, which is mounted nowhere."""
    flags = ctypes.c_uint(_OPEN_TREE_CLONE | os.O_CLOEXEC | _AT_RECURSIVE)
    return syscall(_OPEN_TREE, _AT_CWD, os.fsencode(path), flags)


def attach_mounts(copy: int, path: str) -> None:
    """Mount what ``copy_mounts`` returned at ``path``."""
    place = (_AT_CWD, os.fsencode(path), ctypes.c_uint(_MOVE_MOUNT_EMPTY_PATH))
    syscall(_MOVE_MOUNT, ctypes.c_int(copy), b"", *place)


def make_mounts_read_only(path: str) -> None:
    """Make everything that is mounted at and below ``path`` read-only."""
    attributes = struct.pack("4Q", _MOUNT_READ_ONLY, 0, 0, 0)
    size = ctypes.c_size_t(len(attributes))
    syscall(_MOUNT_SETATTR, _AT_CWD, os.fsencode(path), ctypes.c_uint(_AT_RECURSIVE), attributes, size)


def capset(header: ctypes.Array[ctypes.c_uint32], data: ctypes.Array[ctypes.c_uint32]) -> None:
    _check(_load().capset(header, data))


def _load() -> ctypes.CDLL:
    if _libc is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    return _libc


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
