"""Namespaces: a network with nothing but chosen ports, and a view of the files: read-only, without covered folders.

Both need the right to administer the machine, or user namespaces, which not every system gives to everybody.
"""

import contextlib
import fcntl
import os
import socket
import stat
import struct
from collections.abc import Iterable

from toolyard.confinement import linux

NEW_MOUNTS, NEW_NETWORK, NEW_USERS, NEW_PROCESSES = 0x00020000, 0x40000000, 0x10000000, 0x20000000
_SET_FLAGS, _UP_AND_RUNNING = 0x8914, 0x41
_SLAVE, _BIND, _CHANGE = 1 << 19 | 1 << 14, 1 << 12, 1 << 5
_READ_ONLY, _NO_PROGRAMS = 1, 2 | 4 | 8  # without set-id bits, devices and programs


def enter_network(ports: Iterable[int]) -> list[socket.socket]:
    """Move the calling thread into a network of its own. Return sockets that listen on its loopback ports.

    They work for whoever holds them, in whatever network that is. Raises OSError.
    """
    linux.unshare(NEW_NETWORK)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SET_FLAGS, struct.pack("16sH14x", b"lo", _UP_AND_RUNNING))
    listeners: list[socket.socket] = []
    try:
        for port in ports:
            listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            listeners.append(listener)
            listener.bind(("127.0.0.1", port))
            listener.listen()
            listener.setblocking(False)
    except OSError:
        for listener in listeners:
            listener.close()
        raise
    return listeners


def enter_mounts() -> None:
    """Give the calling thread a view of the files of its own, in which the host still unmounts. Raises OSError."""
    linux.unshare(NEW_MOUNTS)
    linux.mount("none", "/", "", _SLAVE)


def make_read_only(writable: Iterable[str]) -> bool:
    """Make all files read-only for the thread after ``enter_mounts``, except for the trees ``writable``.

    So their mode, owner and times cannot be changed either, which Landlock does not guard. Return False, and change
    nothing, where the kernel (before 5.12) or the container does not offer it. Raises OSError.
    """
    copies: dict[str, int] = {}
    try:
        try:
            for path in _list_outermost(writable):
                copies[path] = linux.copy_mounts(path)
            linux.make_mounts_read_only("/")
        except OSError:
            return False
        for path, copy in copies.items():
            linux.attach_mounts(copy, path)
    finally:
        for copy in copies.values():
            os.close(copy)
    return True


def _list_outermost(paths: Iterable[str]) -> list[str]:
    """Return where existing paths really lead, without those inside of others."""
    outermost: list[str] = []
    for path in sorted({os.path.realpath(path) for path in paths if os.path.exists(path)}):
        if not any(path.startswith(f"{outer}/") for outer in outermost):
            outermost.append(path)
    return outermost


def cover_folders(folders: Iterable[str], kept: Iterable[str]) -> None:
    """Show the thread empty folders in place of ``folders``, after ``enter_mounts``; nobody can write them. ``kept``
    are files and folders that it still sees there.

    Raises OSError.
    """
    for folder in folders:
        _cover_folder(folder, [path for path in dict.fromkeys(kept) if path.startswith(folder + "/")])


def _cover_folder(folder: str, kept: Iterable[str]) -> None:
    opened: dict[str, int] = {}
    try:
        for path in kept:
            with contextlib.suppress(FileNotFoundError):
                opened[path] = os.open(path, os.O_PATH | os.O_CLOEXEC)
        linux.mount("none", folder, "tmpfs", _NO_PROGRAMS, "mode=0755,size=64k")
        for path in sorted(opened):  # a folder before what is in it, which then is there already
            if not os.path.exists(path):
                _show_again(path, opened[path])
        linux.mount("none", folder, "", _CHANGE | _READ_ONLY | _NO_PROGRAMS)
    finally:
        for number in opened.values():
            os.close(number)


def _show_again(path: str, opened: int) -> None:
    if stat.S_ISDIR(os.fstat(opened).st_mode):
        os.makedirs(path)
    else:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_CLOEXEC, 0o600))
    linux.mount(f"/proc/self/fd/{opened}", path, "", _BIND)
