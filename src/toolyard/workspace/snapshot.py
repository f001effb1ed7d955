"""One version of a file that may be written while it is read (R96)."""

import os
from collections.abc import Callable
from typing import TypeVar

from toolyard.message import Message
from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure
from toolyard.workspace.workspace import OpenHandle

T = TypeVar("T")


def read_exactly(fd: int, offset: int, count: int) -> bytes:
    pieces = []
    while count > 0:
        piece = os.pread(fd, count, offset)
        if not piece:
            raise Failure(
                ErrorCode.CONFLICT,
                Message("file.shortened_while_read", "The file became shorter while it was read."),
                hint=Message("hint.read_again", "Read it again."),
            )
        pieces.append(piece)
        offset += len(piece)
        count -= len(piece)
    return b"".join(pieces)


def read_consistently(file: OpenHandle, read: Callable[[OpenHandle], T]) -> T:
    """Return the value of ``read``, never half of one version and half of another.

    A file that was touched meanwhile is read again as it is then. One that is touched even then is still being written:
    it must read alike twice, as one does that only grows.
    """
    value = read(file)
    now = file._replace(stat=os.fstat(file.fd))
    if _version(now) == _version(file):
        return value
    value = read(now)
    if _version(now) != _version(file._replace(stat=os.fstat(file.fd))) and read(now) != value:
        raise Failure(
            ErrorCode.CONFLICT,
            Message("file.changed_while_read", "'{path}' changed while it was read.", path=file.path),
            hint=Message("hint.read_again", "Read it again."),
        )
    return value


def _version(file: OpenHandle) -> tuple[int, int, int]:
    return file.stat.st_size, file.stat.st_mtime_ns, file.stat.st_ctime_ns
