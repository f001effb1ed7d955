"""Files that plugins publish: opened below one folder, by a path that a stranger wrote.

Nothing outside that folder is reached, by ``..``, by a link or by a second name of somebody else's file; hidden names,
folders, devices and pipes are as good as missing. Reads, and never writes.
"""

import os
from dataclasses import dataclass

from toolyard.protocol.failure import Failure
from toolyard.workspace.open_flags import FILE, require_regular
from toolyard.workspace.os_failures import map_os_errors
from toolyard.workspace.path_walk import PathWalk


@dataclass(frozen=True, slots=True)
class PublishedFile:
    """An open file. ``fd`` is for its holder to close."""

    fd: int
    name: str
    size: int
    modified_ns: int


def open_published(folder: int, path: str) -> PublishedFile | None:
    """Open a regular file below an open folder; None when there is none to show."""
    steps = path.split("/")
    if any(not step or step.startswith(".") for step in steps) or "\0" in path or not _is_text(path):
        return None
    try:
        with map_os_errors(path):
            return _open(folder, path, steps[-1])
    except Failure:
        return None


def _is_text(path: str) -> bool:
    try:
        return bool(path.encode())
    except UnicodeEncodeError:
        return False


def _open(folder: int, path: str, name: str) -> PublishedFile:
    walk = PathWalk(os.dup(folder), (), path)
    try:
        last, mode = walk.walk_to_existing()
        require_regular(mode, path)
        fd = os.open(last, FILE, dir_fd=walk.fd)
    finally:
        walk.close()
    try:
        info = os.fstat(fd)
        require_regular(info.st_mode, path)
        if info.st_nlink > 1 and info.st_uid != os.fstat(folder).st_uid:
            raise PermissionError(f"{path} is a second name of a file of another user")
    except BaseException:
        os.close(fd)
        raise
    return PublishedFile(fd, name, info.st_size, info.st_mtime_ns)
