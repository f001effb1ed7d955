"""Services of launchd, the service manager of macOS: an agent of a user, or a daemon of the machine."""

import os
import plistlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from toolyard.cli.service_definition import MARK, STOP_S, ServiceDefinition, ServiceState, run_command
from toolyard.errors import ToolyardError

LOG_FILE: Final = "service.log"
_SYSTEM_FOLDER: Final = Path("/Library/LaunchDaemons")
_USER_FOLDER: Final = "Library/LaunchAgents"


class Launchd:
    """The launchd of the machine, or that of a user."""

    name = "launchd"

    def __init__(self, *, is_system: bool, user_home: Path) -> None:
        self._folder = _SYSTEM_FOLDER if is_system else user_home / _USER_FOLDER
        self._domain = "system" if is_system else f"gui/{os.getuid()}"

    def render_files(self, service: ServiceDefinition) -> Mapping[Path, str]:
        return {self._get_file(service.name): render_property_list(service)}

    def find_files(self, name: str) -> list[Path]:
        return [file for file in (self._get_file(name),) if file.exists()]

    def read_command(self, name: str) -> list[str]:
        words = plistlib.loads(self._get_file(name).read_bytes()).get("ProgramArguments", [])
        return [str(word) for word in words]

    def start(self, name: str, *, moved: bool) -> None:
        if self.read_state(name).active != "inactive":
            run_command(["launchctl", "bootout", f"{self._domain}/{name}"])
        run_command(["launchctl", "enable", f"{self._domain}/{name}"])
        run_command(["launchctl", "bootstrap", self._domain, str(self._get_file(name))])

    def stop(self, name: str) -> None:
        if self.read_state(name).active != "inactive":
            run_command(["launchctl", "bootout", f"{self._domain}/{name}"])

    def forget(self, name: str) -> None:
        """Do nothing: launchd knows only what it was given."""

    def read_state(self, name: str) -> ServiceState:
        try:
            shown = run_command(["launchctl", "print", f"{self._domain}/{name}"])
        except ToolyardError as error:
            missing = "Could not find service" in str(error)
            return ServiceState(active="inactive" if missing else "unknown", problem="" if missing else str(error))
        state = re.search(r"^\s*state = (.+)$", shown, re.MULTILINE)
        pid = re.search(r"^\s*pid = (\d+)$", shown, re.MULTILINE)
        running = state is not None and state[1] == "running"
        return ServiceState(active="active" if running else "failed", pid=int(pid[1]) if pid else None, enabled=True)

    def list_hints(self, name: str) -> list[str]:
        return [f"Restart, for example after an upgrade: launchctl kickstart -k {self._domain}/{name}"]

    def _get_file(self, name: str) -> Path:
        return self._folder / f"{name}.plist"


def render_property_list(service: ServiceDefinition) -> str:
    """Return the property list of a server."""
    log = str(service.home / LOG_FILE)
    values: dict[str, Any] = {
        "Label": service.name,
        "ProgramArguments": list(service.command),
        "WorkingDirectory": str(service.project),
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 5,
        "ExitTimeOut": STOP_S,
        "AbandonProcessGroup": True,  # work of asynchronous plugins goes on while the server restarts
        "Umask": 0o077,
        "StandardOutPath": log,
        "StandardErrorPath": log,
    }
    if service.search_path:
        values["EnvironmentVariables"] = {"PATH": service.search_path}
    if service.is_system:
        values["UserName"] = service.user
    text = plistlib.dumps(values, sort_keys=False).decode()
    head, mark, rest = text.partition("<plist ")
    return f"{head}<!-- {MARK} -->\n{mark}{rest}"
