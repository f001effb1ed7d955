"""The contract for starting a child, and for a started child, however it was started."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from toolyard.confinement.profile import Profile
from toolyard.protocol.json import JsonObject
from toolyard.protocol.manifests.manifest import Limits


class PortServer(Protocol):
    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one accepted connection to its end, and close it."""
        ...

    def to_json(self) -> JsonObject:
        """Return what another process needs to serve the same: see ``network_services.build_port_server``."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """The way to start a program: equal Launches give equal children."""

    argv: tuple[str, ...]  # argv[0] is an absolute path
    cwd: Path
    environment: Mapping[str, str]  # the child's whole environment
    profile: Profile | None  # what it may reach; None: everything, by its owner's decision
    services: Mapping[int, PortServer] = field(default_factory=dict, compare=False)  # by port of the profile
    limits: Limits = field(default_factory=Limits)
    warm: bool = False  # it may be started ahead of its call, or by fork
    version: str = ""  # changes with the code and the configuration behind it


class ChildProcess(Protocol):
    """A process in a session of its own, bound to one call. Its three pipes belong to its holder."""

    @property
    def pid(self) -> int: ...

    @property
    def stdin(self) -> int:
        """The descriptor to write to; non-blocking, as the others."""
        ...

    @property
    def stdout(self) -> int: ...

    @property
    def stderr(self) -> int: ...

    async def wait(self) -> int:
        """Wait until it has ended. Return its exit code, or minus the number of the signal that ended it."""
        ...


class Starter(Protocol):
    """Starts children: cold, by fork, or ahead of time."""

    async def spawn(self, launch: Launch, per_call: Mapping[str, str]) -> ChildProcess:
        """Start a child for one call; ``per_call`` is added to the environment. Raises Failure(START_FAILED)."""
        ...

    async def close(self) -> None:
        """End what was started ahead and has no call."""
        ...
