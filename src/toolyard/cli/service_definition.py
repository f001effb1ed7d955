"""A server as a service of the operating system: the command that it runs, for whom, and where its files are."""

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from toolyard.errors import ToolyardError

MARK: Final = "Written by 'toolyard service install', which replaces changes; 'toolyard service remove' deletes it."
STOP_S: Final = 45  # the server needs at most its grace period of 20 s and some seconds to cancel the rest
_COMMAND_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceDefinition:
    """The facts from which the files of a service are written."""

    name: str
    command: tuple[str, ...]
    programs: tuple[Path, ...]  # folders that the command reads: Toolyard and its Python
    home: Path
    project: Path
    listen: str  # the address and port of its socket
    is_system: bool
    user: str = ""  # of a system service
    search_path: str = ""  # PATH, where plugins find their programs


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceState:
    """The state of an installed service, as its manager reports it."""

    active: str  # such as active, inactive or failed; unknown when the manager does not answer
    pid: int | None = None
    enabled: bool | None = None
    problem: str = ""


class Supervisor(Protocol):
    """A service manager: systemd or launchd."""

    name: str

    def render_files(self, service: ServiceDefinition) -> Mapping[Path, str]:
        """Return the files of a service, each with its content."""
        ...

    def find_files(self, name: str) -> list[Path]:
        """Return the files of a service that are installed."""
        ...

    def read_command(self, name: str) -> list[str]:
        """Return the command of an installed service."""
        ...

    def start(self, name: str, *, moved: bool) -> None:
        """Start an installed service, or restart it; ``moved``: it listens somewhere else. Raises ToolyardError."""
        ...

    def stop(self, name: str) -> None:
        """Stop a service and keep it from starting again. Raises ToolyardError."""
        ...

    def forget(self, name: str) -> None:
        """Notice that the files of a service are gone."""
        ...

    def read_state(self, name: str) -> ServiceState: ...

    def list_hints(self, name: str) -> list[str]:
        """Return what a person can do next: commands, each with its purpose."""
        ...


def run_command(words: Sequence[str]) -> str:
    """Run a command of a service manager and return its output. Raises ToolyardError with what it says."""
    try:
        done = subprocess.run(  # noqa: S603 a program of the system, with arguments of ours
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_COMMAND_S, check=False
        )
    except FileNotFoundError as error:
        raise ToolyardError(f"'{words[0]}' is not installed: this machine has another service manager") from error
    except subprocess.TimeoutExpired as error:
        raise ToolyardError(f"'{' '.join(words)}' did not answer within {_COMMAND_S:g} s") from error
    if done.returncode:
        problem = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}")[:2000]
        raise ToolyardError(f"'{' '.join(words)}' failed: {problem}")
    return done.stdout
