"""Copying and removing whole trees by descriptors, for what cannot be renamed from one file system to another.

A link is copied as a link and never followed. A copy has the mode and times of the original, its owner and extended
attributes where the system allows it, and is on disk when the call returns. Devices, pipes and sockets are not copied:
the call fails before anything else is given up.
"""

import os
import shutil
import stat
from contextlib import suppress

from toolyard.message import Message
from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure
from toolyard.workspace.file_draft import copy_attributes
from toolyard.workspace.names import to_text

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def copy_tree(source: int, name: bytes, folder: int, new: bytes) -> None:
    """Copy what stands at ``name`` in one open folder to ``new``, which must be free, in another."""
    info = os.stat(name, dir_fd=source, follow_symlinks=False)
    if stat.S_ISLNK(info.st_mode):
        os.symlink(os.readlink(name, dir_fd=source), new, dir_fd=folder)
        with suppress(PermissionError):
            os.chown(new, info.st_uid, info.st_gid, dir_fd=folder, follow_symlinks=False)
        return
    if stat.S_ISDIR(info.st_mode):
        _copy_folder(source, name, folder, new)
    elif stat.S_ISREG(info.st_mode):
        _copy_file(source, name, folder, new)
    else:
        raise Failure(
            ErrorCode.INVALID_PARAM,
            Message(
                "file.cannot_cross_filesystems",
                "'{name}' is no regular file and cannot be taken to another file system.",
                name=to_text(name),
            ),
            hint=Message("hint.remove_with_program", "Remove it with a program made for such files."),
        )


def remove_tree(folder: int, name: bytes) -> None:
    """Remove what stands at ``name``, if anything does."""
    with suppress(FileNotFoundError):
        if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            shutil.rmtree(name, dir_fd=folder)  # by descriptors itself
        else:
            os.unlink(name, dir_fd=folder)


def _copy_folder(source: int, name: bytes, folder: int, new: bytes) -> None:
    os.mkdir(new, 0o700, dir_fd=folder)
    old = os.open(name, _FOLDER, dir_fd=source)
    try:
        own = os.open(new, _FOLDER, dir_fd=folder)
        try:
            for entry in os.listdir(old):
                copy_tree(old, os.fsencode(entry), own, os.fsencode(entry))
            _copy_metadata(own, old)
        finally:
            os.close(own)
    finally:
        os.close(old)


def _copy_file(source: int, name: bytes, folder: int, new: bytes) -> None:
    with (
        os.fdopen(os.open(name, _READ, dir_fd=source), "rb") as old,
        os.fdopen(os.open(new, _NEW, 0o600, dir_fd=folder), "wb") as own,
    ):
        shutil.copyfileobj(old, own)
        own.flush()
        _copy_metadata(own.fileno(), old.fileno())


def _copy_metadata(fd: int, old: int) -> None:
    info, mode = os.fstat(old), stat.S_IMODE(os.fstat(old).st_mode)
    try:
        os.fchown(fd, info.st_uid, info.st_gid)
    except PermissionError:
        mode &= 0o1777  # what ran with the rights of its owner must not run with ours
    with suppress(OSError):  # a file system that has no such attributes
        copy_attributes(old, fd)
    os.fchmod(fd, mode)
    os.utime(fd, ns=(info.st_atime_ns, info.st_mtime_ns))
    os.fsync(fd)
