"""Namespaces: a network with nothing but chosen ports, and a view of the files: read-only, without covered folders.

Both need the right to administer the machine, or user namespaces, which not every system gives to everybody. Files are
given by descriptors that were opened after ``enter_mounts``: what stands at their paths by then does not matter.
"""

import contextlib
import fcntl
import os
import socket
import stat
import struct
from collections.abc import Iterable, Mapping

from toolyard.confinement import linux

NEW_MOUNTS, NEW_NETWORK, NEW_USERS, NEW_PROCESSES = 0x00020000, 0x40000000, 0x10000000, 0x20000000
_SET_FLAGS, _UP_AND_RUNNING = 0x8914, 0x41
_SLAVE = 1 << 19 | 1 << 14
HIDDEN = "HIDDEN-BY-TOOLYARD"  # the name of a file in a folder whose content a program does not see
_FOLDER = os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW


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


def make_read_only(writable: Iterable[int]) -> None:
    """Make all files read-only for the thread after ``enter_mounts``, except for the trees ``writable``.

    So their mode, owner and times cannot be changed either, which Landlock does not guard. Raises OSError.
    """
    copies: list[tuple[int, int]] = []
    try:
        for opened in writable:
            copies.append((linux.copy_mounts(opened), opened))  # noqa: PERF401 those that were made are closed
        root = os.open("/", _FOLDER)
        try:
            linux.make_mounts_read_only(root, and_below=True)
        finally:
            os.close(root)
        for copy, opened in copies:
            linux.attach_mounts(copy, opened)
    finally:
        for copy, _ in copies:
            os.close(copy)


def hold_in_place(folder: int) -> None:
    """Mount a folder where it is, after ``enter_mounts``, so that nobody who sees that can move it. Raises OSError."""
    copy = linux.copy_mounts(folder)
    try:
        linux.attach_mounts(copy, folder)
    finally:
        os.close(copy)


def cover_folder(folder: int, kept: Mapping[str, int]) -> dict[str, int]:
    """Show the thread a note in place of what is in ``folder``, after ``enter_mounts``; nobody can write it.

    A program that lists the folder learns so that it does not see what is there, which an empty one would hide.
    ``kept`` are files and folders that it still sees there, by their paths below ``folder``. Return descriptors of
    them as they are seen from now on. Raises OSError.
    """
    shown: dict[str, int] = {}
    empty = linux.make_empty_folder()
    try:
        linux.attach_mounts(empty, folder)
        os.close(os.open(HIDDEN, os.O_CREAT | os.O_CLOEXEC, 0o444, dir_fd=empty))
        for path in sorted(kept):  # a folder before what is in it, which then is there already
            outer = next((outer for outer in shown if path.startswith(f"{outer}/")), None)
            if outer is not None:
                shown[path] = linux.open_without_links(path.removeprefix(f"{outer}/"), shown[outer])
            else:
                shown[path] = _show_again(empty, path, kept[path])
        linux.make_mounts_read_only(empty, and_below=False)
    except BaseException:
        for opened in shown.values():
            os.close(opened)
        raise
    finally:
        os.close(empty)
    return shown


def show_in_place(shown: int, hidden: int) -> None:
    """Show the thread the file ``shown`` in place of ``hidden``, after ``enter_mounts``; nobody can write it.

    Raises OSError.
    """
    copy = linux.copy_mounts(shown)
    try:
        linux.make_mounts_read_only(copy, and_below=False)
        linux.attach_mounts(copy, hidden)
    finally:
        os.close(copy)


def _show_again(empty: int, path: str, opened: int) -> int:
    """Mount a copy of the file or folder ``opened`` at ``path`` below ``empty``. Return its descriptor."""
    *folders, name = path.split("/")
    is_folder = stat.S_ISDIR(os.fstat(opened).st_mode)
    with contextlib.ExitStack() as stack:
        place = empty
        for folder in (*folders, name) if is_folder else folders:
            with contextlib.suppress(FileExistsError):
                os.mkdir(folder, dir_fd=place)
            place = os.open(folder, _FOLDER, dir_fd=place)
            stack.callback(os.close, place)
        if not is_folder:
            place = os.open(name, os.O_CREAT | os.O_CLOEXEC, 0o600, dir_fd=place)
            stack.callback(os.close, place)
        copy = linux.copy_mounts(opened)
        try:
            linux.attach_mounts(copy, place)
        except OSError:
            os.close(copy)
            raise
        return copy
