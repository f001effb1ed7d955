"""A command of FileOperator: its request, its required parameters, its operation, and the facts of a file in VCP's
words."""

import os
import stat
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from inspect import iscoroutinefunction
from typing import Any

from toolyard.message import Message
from toolyard.protocol.envelope import ErrorCode, Failure
from toolyard.protocol.json import JsonObject
from toolyard.protocol.tool import Checkpoint, Result, ToolCall
from toolyard.tools.worker_thread import in_thread
from toolyard.workspace.changes.protected_paths import WriteAccess

MAX_NAME_BYTES = 200  # of a file name that a caller or a server chose; it may still get a number
CANONICAL = {
    "filePath": "path",
    "directoryPath": "path",
    "searchPath": "path",
    "sourcePath": "source",
    "destinationPath": "destination",
}


@dataclass(frozen=True, slots=True)
class Request:
    call: ToolCall
    checkpoint: Checkpoint

    def __getitem__(self, name: str) -> Any:
        return self.call.arguments[name]

    def get(self, name: str) -> Any:
        return self.call.arguments.get(name)

    @property
    def access(self) -> WriteAccess:
        return WriteAccess.from_call(self.call)

    def require(self, *words: str) -> None:
        """Require the parameters of a command, each named by the word that its callers know."""
        missing = [word for word in words if CANONICAL.get(word, word) not in self.call.arguments]
        if missing:
            command, names = self["command"], " and ".join(f"'{word}'" for word in missing)
            message = Message("{command} needs the missing parameter {names}.", command=command, names=names)
            if len(missing) > 1:
                message = Message("{command} needs the missing parameters {names}.", command=command, names=names)
            raise Failure(ErrorCode.INVALID_PARAM, message, hint=Message("Add what is missing and call again."))


@dataclass(frozen=True, slots=True)
class Command:
    operation: Callable[[Request], Result | Awaitable[Result]]  # one that is no coroutine blocks
    needs: tuple[str, ...] = ()
    reads: bool = False  # its content is the answer; the others only have a message

    async def run(self, request: Request) -> Result:
        result = (
            self.operation(request) if iscoroutinefunction(self.operation) else await in_thread(self.operation, request)
        )
        return result if isinstance(result, Result) else await result


def require_plain_name(name: str, parameter: str) -> str:
    """A name that is no path."""
    if "/" in name or "\\" in name or name in (".", "..") or not name.strip() or len(name.encode()) > MAX_NAME_BYTES:
        raise Failure(
            ErrorCode.INVALID_PARAM,
            Message(
                "'{parameter}' must be the name of a file, without folders and of at most {max_name_bytes} bytes.",
                parameter=parameter,
                max_name_bytes=MAX_NAME_BYTES,
            ),
            hint=Message("Give a name such as notes.md."),
        )
    return name


def format_size(size: int) -> str:
    """``12 Bytes``, ``1.2 KB``."""
    number, unit = float(size), "Bytes"
    for larger in ("KB", "MB", "GB", "TB"):
        if number < 1024:
            break
        number, unit = number / 1024, larger
    return f"{round(number, 2):g} {unit}"


def format_time(seconds: float | None) -> str | None:
    """A time as ISO 8601 with its offset."""
    if seconds is not None:
        with suppress(ValueError, OverflowError, OSError):  # some file systems keep times that no calendar has
            return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    return None


def file_type(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "directory"
    if stat.S_ISLNK(mode):
        return "link"
    return "file" if stat.S_ISREG(mode) else "special"


def build_facts(path: str, info: os.stat_result) -> JsonObject:
    """Build the facts that every command reports of a file; ``path`` is relative to the root."""
    size = info.st_size if stat.S_ISREG(info.st_mode) else None
    return {
        "name": path.rpartition("/")[2],
        "path": path,
        "type": file_type(info.st_mode),
        "size": size,
        "sizeFormatted": None if size is None else format_size(size),
        "lastModified": format_time(info.st_mtime),
    }
