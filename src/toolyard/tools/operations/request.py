"""A command of FileOperator: its request, its required parameters, its operation."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from toolyard.message import Message
from toolyard.protocol.call import ToolCall
from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure
from toolyard.protocol.outcome import Result
from toolyard.protocol.tool import Checkpoint
from toolyard.tools.thread import in_thread
from toolyard.workspace.protected_paths import WriteAccess

MAX_NAME_BYTES = 200  # of a file name that a caller or a server chose; it may still get a number


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
            message = Message(
                "file.missing_parameter", "{command} needs the missing parameter {names}.", command=command, names=names
            )
            if len(missing) > 1:
                message = Message(
                    "file.missing_parameters",
                    "{command} needs the missing parameters {names}.",
                    command=command,
                    names=names,
                )
            raise Failure(
                ErrorCode.INVALID_PARAM,
                message,
                hint=Message("hint.add_missing", "Add what is missing and call again."),
            )


CANONICAL = {
    "filePath": "path",
    "directoryPath": "path",
    "searchPath": "path",
    "sourcePath": "source",
    "destinationPath": "destination",
}

Operation: TypeAlias = Callable[[Request], Awaitable[Result]]


@dataclass(frozen=True, slots=True)
class Command:
    run: Operation
    needs: tuple[str, ...] = ()
    reads: bool = False  # its content is the answer; the others only have a message


def run_in_thread(work: Callable[[Request], Result]) -> Operation:
    async def run(request: Request) -> Result:
        return await in_thread(lambda: work(request))

    return run


def require_plain_name(name: str, parameter: str) -> str:
    """A name that is no path."""
    if "/" in name or "\\" in name or name in (".", "..") or not name.strip() or len(name.encode()) > MAX_NAME_BYTES:
        raise Failure(
            ErrorCode.INVALID_PARAM,
            Message(
                "file.invalid_name",
                "'{parameter}' must be the name of a file, without folders and of at most {max_name_bytes} bytes.",
                parameter=parameter,
                max_name_bytes=MAX_NAME_BYTES,
            ),
            hint=Message("hint.give_file_name", "Give a name such as notes.md."),
        )
    return name
