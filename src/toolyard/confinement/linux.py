"""Linux system calls that Python does not offer, by ctypes. Every function raises OSError."""

import ctypes
import errno
import os
import platform
import sys

IS_LINUX = sys.platform == "linux" and sys.maxsize > 2**32
MACHINE = platform.machine() if IS_LINUX else ""
LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF = 444, 445, 446  # the same on every architecture

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
