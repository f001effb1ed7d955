"""The flags that files and folders are opened with: never through a link, and no device, pipe or socket."""

import os
import stat

from toolyard.message import Message
from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


def require_regular(mode: int, path: str) -> None:
    if not stat.S_ISREG(mode):
        raise Failure(
            ErrorCode.INVALID_PARAM,
            Message(
                "file.not_regular_file",
                "'{path}' is not a regular file: devices, pipes and sockets are not read.",
                path=path,
            ),
            hint=Message("hint.choose_regular_file", "Choose a regular file."),
        )
