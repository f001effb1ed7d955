"""What it takes to start a child, and what a started child is, however it was started."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from toolyard.protocol.manifest import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One way to start a program: the same Launch gives an equal child every time."""

    argv: tuple[str, ...]  # argv[0] is an absolute path
    cwd: Path
    environment: Mapping[str, str]  # the child's whole environment
    limits: Limits = field(default_factory=Limits)
    warm: bool = False  # it may be started ahead of its call, or by fork
    version: str = ""  # changes with the code and the configuration behind it


class ChildProcess(Protocol):
    """A process in a session of its own, bound to one call. Its three pipes belong to whoever holds it."""

    @property
    def pid(self) -> int: ...

    @property
    def stdin(self) -> int:
        """The end to write to; a non-blocking descriptor, as the others."""
        ...

    @property
    def stdout(self) -> int: ...

    @property
    def stderr(self) -> int: ...

    async def wait(self) -> int:
        """Until it has ended: its exit code, or minus the number of the signal that ended it."""
        ...


class Starter(Protocol):
    """Starts children: cold, by fork, or ahead of time."""

    async def spawn(self, launch: Launch, per_call: Mapping[str, str]) -> ChildProcess:
        """A child for one call; ``per_call`` is added to the environment. Raises Failure(START_FAILED)."""
        ...

    async def close(self) -> None:
        """End what was started ahead and has no call."""
        ...
