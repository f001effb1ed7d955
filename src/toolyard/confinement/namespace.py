"""Namespaces: a network with nothing but chosen ports, and a view of the files without covered folders.

Both need the right to administer the machine, or user namespaces, which not every system gives to everybody.
"""

import fcntl
import os
import socket
import struct
from collections.abc import Iterable, Sequence

from toolyard.confinement import linux

NEW_MOUNTS, NEW_NETWORK, NEW_USERS = 0x00020000, 0x40000000, 0x10000000
_SET_FLAGS, _UP_AND_RUNNING = 0x8914, 0x41
_PRIVATE, _BIND = 1 << 18 | 1 << 14, 1 << 12
_NO_PROGRAMS = 2 | 4 | 8  # without set-id bits, devices and programs


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


def cover_folders(folders: Iterable[str], kept: Sequence[str]) -> None:
    """Show the calling thread empty folders in place of ``folders``; ``kept`` are folders that it still sees there.

    Raises OSError.
    """
    linux.unshare(NEW_MOUNTS)
    linux.mount("none", "/", "", _PRIVATE)
    for folder in folders:
        opened = _open_folders(path for path in kept if path.startswith(folder + "/"))
        try:
            linux.mount("none", folder, "tmpfs", _NO_PROGRAMS, "mode=0700,size=64k")
            for path, number in opened.items():
                os.makedirs(path, exist_ok=True)
                linux.mount(f"/proc/self/fd/{number}", path, "", _BIND)
        finally:
            for number in opened.values():
                os.close(number)


def _open_folders(paths: Iterable[str]) -> dict[str, int]:
    return {path: os.open(path, os.O_PATH | os.O_CLOEXEC) for path in paths if os.path.isdir(path)}
