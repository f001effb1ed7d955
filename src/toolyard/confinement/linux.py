"""Linux system calls that Python does not offer, by ctypes. Every function raises OSError."""

import ctypes
import errno
import os
import platform
import stat
import struct
import sys
from functools import cache

IS_LINUX = sys.platform == "linux" and sys.maxsize > 2**32
MACHINE = platform.machine() if IS_LINUX else ""
# the same on every architecture
LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF = 444, 445, 446
_OPEN_TREE, _MOVE_MOUNT, _FSOPEN, _FSCONFIG, _FSMOUNT, _OPENAT2, _MOUNT_SETATTR = 428, 429, 430, 431, 432, 437, 442
_CLONE, _RECURSIVE, _EMPTY_PATH, _FROM_AND_TO_EMPTY_PATH = 1, 0x8000, 0x1000, 0x04 | 0x40
_FD_CLOEXEC, _SET_STRING, _CREATE = 1, 1, 6  # of fsopen and fsconfig
_READ_ONLY, _NO_PROGRAMS = 1, 2 | 4 | 8  # without set-id bits, devices and programs
_NO_LINKS = 0x02 | 0x04  # no symbolic ones, nor those of /proc
_AT_CWD = -100
_OPEN = os.O_CLOEXEC | getattr(os, "O_PATH", 0)

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


def open_without_links(path: str, at: int = _AT_CWD) -> int:
    """Open a file or folder without reading it, by an absolute path or one below ``at``, through no link at all.

    Raises OSError with ELOOP where there is one.
    """
    if not _has_openat2():
        return _walk_without_links(path, at)
    how = struct.pack("3Q", _OPEN, 0, _NO_LINKS)
    return syscall(_OPENAT2, ctypes.c_int(at), os.fsencode(path), how, ctypes.c_size_t(len(how)))


@cache
def _has_openat2() -> bool:
    how = struct.pack("3Q", _OPEN, 0, _NO_LINKS)
    try:
        os.close(syscall(_OPENAT2, ctypes.c_int(_AT_CWD), b"/", how, ctypes.c_size_t(len(how))))
    except OSError:  # some containers refuse what they do not know
        return False
    return True


def _walk_without_links(path: str, at: int) -> int:
    steps = [step for step in path.split("/") if step not in ("", ".")]
    current = os.open("/" if path.startswith("/") else ".", _OPEN, dir_fd=None if at == _AT_CWD else at)
    for step in steps:
        try:
            below = os.open(step, _OPEN | os.O_NOFOLLOW, dir_fd=current)
        finally:
            os.close(current)
        current = below
        if stat.S_ISLNK(os.fstat(current).st_mode):
            os.close(current)
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    return current


def make_empty_folder() -> int:
    """Return a descriptor of an empty file system for small folders, which is mounted nowhere."""
    context = syscall(_FSOPEN, b"tmpfs", ctypes.c_uint(_FD_CLOEXEC))
    try:
        for key, value in ((b"mode", b"0755"), (b"size", b"64k")):
            syscall(_FSCONFIG, ctypes.c_int(context), ctypes.c_uint(_SET_STRING), key, value, ctypes.c_int(0))
        syscall(_FSCONFIG, ctypes.c_int(context), ctypes.c_uint(_CREATE), None, None, ctypes.c_int(0))
        return syscall(_FSMOUNT, ctypes.c_int(context), ctypes.c_uint(_FD_CLOEXEC), ctypes.c_uint(_NO_PROGRAMS))
    finally:
        os.close(context)


def copy_mounts(opened: int) -> int:
    """Return a descriptor of a copy of what is mounted at and below ``opened``, which is mounted nowhere."""
    flags = ctypes.c_uint(_CLONE | os.O_CLOEXEC | _RECURSIVE | _EMPTY_PATH)
    return syscall(_OPEN_TREE, ctypes.c_int(opened), b"", flags)


def attach_mounts(copy: int, opened: int) -> None:
    """Mount what is mounted nowhere on the file or folder ``opened``. From then on ``copy`` is what is seen there."""
    syscall(_MOVE_MOUNT, ctypes.c_int(copy), b"", ctypes.c_int(opened), b"", ctypes.c_uint(_FROM_AND_TO_EMPTY_PATH))


def make_mounts_read_only(opened: int, *, and_below: bool) -> None:
    """Make what is mounted at ``opened`` read-only; with ``and_below``, also everything that is mounted below it."""
    attributes = struct.pack("4Q", _READ_ONLY, 0, 0, 0)
    flags = ctypes.c_uint(_EMPTY_PATH | (_RECURSIVE if and_below else 0))
    syscall(_MOUNT_SETATTR, ctypes.c_int(opened), b"", flags, attributes, ctypes.c_size_t(len(attributes)))


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
