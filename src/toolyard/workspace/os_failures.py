"""Errors of the operating system as Failures."""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from toolyard.message import Message
from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure

INSPECT_HINT = Message("hint.check_path_or_ls", "Check the path, or list its folder with LS.")


def to_failure(error: OSError, path: str) -> Failure:
    """The one mapping from errno to error code."""
    match error.errno:
        case errno.ENOENT | errno.ENOTDIR:
            return Failure(
                ErrorCode.NOT_FOUND, Message("file.not_found", "'{path}' does not exist.", path=path), hint=INSPECT_HINT
            )
        case errno.ELOOP:  # we follow links ourselves: the system sees one only where it was put in the meantime
            return Failure(
                ErrorCode.CONFLICT,
                Message("file.became_link", "'{path}' became a link while it was opened.", path=path),
                hint=Message("hint.try_again", "Try again."),
            )
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return Failure(
                ErrorCode.PERMISSION_DENIED,
                Message(
                    "file.access_denied",
                    "The operating system refuses access to '{path}': {errno}.",
                    path=path,
                    errno=os.strerror(error.errno),
                ),
                hint=Message(
                    "hint.change_permissions", "Change the file's permissions, or run Toolyard as a user who may."
                ),
            )
        case errno.ENAMETOOLONG:
            return Failure(
                ErrorCode.INVALID_PARAM,
                Message(
                    "file.path_too_long",
                    "The path is longer than this system allows: '{path}...'.",
                    path=path[:100],
                ),
                hint=INSPECT_HINT,
            )
        case errno.EISDIR:
            return Failure(
                ErrorCode.IS_DIRECTORY,
                Message("file.is_folder", "'{path}' is a folder.", path=path),
                hint=Message("hint.list_with_ls", "List it with LS."),
            )
        case errno.ENOSPC | errno.EDQUOT:
            return Failure(
                ErrorCode.EXECUTION_ERROR,
                Message("file.disk_full", "The disk is full: '{path}' was not written.", path=path),
                hint=Message("hint.free_space", "Free some space."),
            )
        case _:
            return Failure(
                ErrorCode.EXECUTION_ERROR,
                Message("file.os_error", "'{path}': {error}.", path=path, error=error.strerror or error),
                hint=Message("hint.look_at_disk", "Try again; if it stays, look at the disk or file system."),
            )


@contextmanager
def map_os_errors(path: str) -> Iterator[None]:
    """Errors of the system about ``path`` as Failures."""
    try:
        yield
    except OSError as error:
        raise to_failure(error, path) from error


@contextmanager
def locate_failures(place: Callable[[], str]) -> Iterator[None]:
    """Add the path ``place``, relative to the root, to Failures of the block, unless it is empty."""
    try:
        yield
    except Failure as failure:
        if where := place():
            failure.context.setdefault("path_resolved", where)
        raise
