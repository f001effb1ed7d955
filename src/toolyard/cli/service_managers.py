"""A server as a service of the operating system: the facts about it, and the managers that run it.

systemd gets a socket unit, which keeps the port open while the server restarts, and the server's unit. The hardening
leaves plugins what their confinement needs: user, mount and network namespaces, Landlock and a /proc that bubblewrap
can mount again. A service of a user gets what its manager can do without privileges. launchd, the service manager of
macOS, gets an agent of a user or a daemon of the machine."""

import os
import plistlib
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from toolyard.errors import ToolyardError, UsageError

MARK: Final = "Written by 'toolyard service install', which replaces changes; 'toolyard service remove' deletes it."
STOP_S: Final = 45  # the server needs at most its grace period of 20 s and some seconds to cancel the rest
_COMMAND_S = 120.0
_SYSTEM_FOLDER: Final = Path("/etc/systemd/system")
_USER_FOLDER: Final = ".config/systemd/user"
_HOMES: Final = ("/home", "/root", "/run/user")  # what ProtectHome hides
_TEMPORARY: Final = ("/tmp", "/var/tmp")  # noqa: S108 what PrivateTmp hides
_ORDINARY = re.compile(r"[A-Za-z0-9_./:=,@+-]+")
# A process that an option keeps from something gets EPERM for it and can go on.
_HARDENING = """\
NoNewPrivileges=yes
LockPersonality=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
SystemCallArchitectures=native
SystemCallFilter=~@clock @cpu-emulation @module @obsolete @raw-io @reboot @swap
SystemCallErrorNumber=EPERM
UMask=0077
"""
_SYSTEM_HARDENING = """\
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
ProtectHome={protect_home}
ReadWritePaths={writable}
PrivateTmp={private_tmp}
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
"""
_LEFT_OUT = """\
# Left out on purpose, because plugins could not be confined or would not run: RestrictNamespaces (they get namespaces
# of their own); ProcSubset, ProtectProc and ProtectKernelTunables (bubblewrap mounts /proc again, which a kernel may
# refuse then); MemoryDenyWriteExecute (Node compiles at run time); PrivateDevices (some use a GPU or a camera).
"""
_SERVICE = """\
# {mark}
[Unit]
Description=Toolyard, a tool host and gateway ({home})
Requires={name}.socket
After={name}.socket{after}

[Service]
Type=notify
NotifyAccess=main
ExecStart={command}
WorkingDirectory={project}
{identity}# Work of asynchronous plugins goes on while the server restarts; it ends its other processes itself.
KillMode=process
TimeoutStartSec=300
TimeoutStopSec={stop_s}
WatchdogSec=120
Restart=on-failure
RestartSec=5
# 2: the options are wrong, 3: another server runs on this home.
RestartPreventExitStatus=2 3
# What one plugin takes is limited by its own limits; this is for all together. A plugin that runs out of memory ends
# alone.
MemoryMax=80%
TasksMax=4096
OOMPolicy=continue

{hardening}{left_out}
[Install]
WantedBy={target}
Also={name}.socket
"""
_SOCKET = """\
# {mark}
[Unit]
Description=Socket of Toolyard: connections wait here while the server restarts

[Socket]
ListenStream={listen}
Backlog=2048
NoDelay=yes

[Install]
WantedBy=sockets.target
"""
LOG_FILE: Final = "service.log"
_DAEMONS_FOLDER: Final = Path("/Library/LaunchDaemons")
_AGENTS_FOLDER: Final = "Library/LaunchAgents"


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


class Systemd:
    """The systemd of the machine, or that of a user."""

    name = "systemd"

    def __init__(self, *, is_system: bool, user_home: Path) -> None:
        self._folder = _SYSTEM_FOLDER if is_system else user_home / _USER_FOLDER
        self._scope = [] if is_system else ["--user"]

    def render_files(self, service: ServiceDefinition) -> Mapping[Path, str]:
        return {
            self._folder / f"{service.name}.socket": render_socket_unit(service),
            self._folder / f"{service.name}.service": render_service_unit(service),
        }

    def find_files(self, name: str) -> list[Path]:
        files = (self._folder / f"{name}.socket", self._folder / f"{name}.service")
        return [file for file in files if file.exists()]

    def read_command(self, name: str) -> list[str]:
        return _read_command((self._folder / f"{name}.service").read_text(encoding="utf-8"))

    def start(self, name: str, *, moved: bool) -> None:
        self._run("daemon-reload")
        if moved:  # systemd opens the socket anew only while nothing uses it
            self._run("stop", f"{name}.socket", f"{name}.service")
        self._run("enable", f"{name}.socket", f"{name}.service")
        self._run("start", f"{name}.socket")
        self._run("restart", f"{name}.service")

    def stop(self, name: str) -> None:
        self._run("disable", "--now", f"{name}.socket", f"{name}.service")

    def forget(self, name: str) -> None:
        self._run("daemon-reload")
        self._run("reset-failed", f"{name}.socket", f"{name}.service", fails=False)

    def read_state(self, name: str) -> ServiceState:
        try:
            shown = self._run("show", f"{name}.service", "--property=ActiveState,MainPID,UnitFileState,Result")
        except ToolyardError as error:
            return ServiceState(active="unknown", problem=str(error))
        values = dict(line.split("=", 1) for line in shown.splitlines() if "=" in line)
        result = values.get("Result", "success")
        return ServiceState(
            active=values.get("ActiveState", "unknown"),
            pid=int(values.get("MainPID", "0") or "0") or None,
            enabled=values.get("UnitFileState") == "enabled",
            problem="" if result == "success" else result,
        )

    def list_hints(self, name: str) -> list[str]:
        systemctl, journalctl = " ".join(["systemctl", *self._scope]), " ".join(["journalctl", *self._scope])
        hints = [f"Restart, for example after an upgrade: {systemctl} restart {name}"]
        hints.append(f"Log: {journalctl} -u {name}")
        if self._scope:
            hints.append("Keep it running while you are not logged in: loginctl enable-linger")
        return hints

    def _run(self, *words: str, fails: bool = True) -> str:
        try:
            return run_command(["systemctl", *self._scope, *words])
        except ToolyardError:
            if fails:
                raise
            return ""


def render_service_unit(service: ServiceDefinition) -> str:
    """Return the unit of the server."""
    identity = f"User={service.user}\n" if service.is_system else ""
    identity += f"Environment={_quote('PATH=' + service.search_path)}\n" if service.search_path else ""
    hardening = _HARDENING
    if service.is_system:
        folders = (service.home, service.project)
        needed = (*folders, *service.programs)
        in_home = any(folder.is_relative_to(place) for folder in needed for place in _HOMES)
        in_tmp = any(folder.is_relative_to(place) for folder in needed for place in _TEMPORARY)
        hardening += _SYSTEM_HARDENING.format(
            protect_home="read-only" if in_home else "yes",
            private_tmp="no" if in_tmp else "yes",
            writable=" ".join(_quote(str(folder)) for folder in dict.fromkeys(folders)),
        )
    return _SERVICE.format(
        mark=MARK,
        name=service.name,
        home=str(service.home).replace("%", "%%"),
        after=" network-online.target\nWants=network-online.target" if service.is_system else "",
        command=" ".join(_quote(word).replace("$", "$$") for word in service.command),
        project=_escape(str(service.project)),
        identity=identity,
        stop_s=STOP_S,
        hardening=hardening,
        left_out=_LEFT_OUT,
        target="multi-user.target" if service.is_system else "default.target",
    )


def render_socket_unit(service: ServiceDefinition) -> str:
    """Return the unit of the socket."""
    return _SOCKET.format(mark=MARK, listen=service.listen)


def _escape(text: str) -> str:
    """Return a text for a unit file without its specifiers. Raises UsageError."""
    if any(not sign.isprintable() for sign in text):
        raise UsageError(f"{text!r} cannot be written into a unit file: it has a control character")
    return text.replace("%", "%%")


def _quote(word: str) -> str:
    """Return one word of a setting, quoted if necessary."""
    if _ORDINARY.fullmatch(word):
        return word
    escaped = _escape(word).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _read_command(unit: str) -> list[str]:
    """Return the words of ExecStart in a unit that ``render_service_unit`` wrote."""
    line = next((line for line in unit.splitlines() if line.startswith("ExecStart=")), "ExecStart=")
    pairs = re.findall(r'"((?:[^"\\]|\\.)*)"|(\S+)', line.removeprefix("ExecStart="))
    words = (re.sub(r"\\(.)", r"\1", quoted) if quoted else plain for quoted, plain in pairs)
    return [word.replace("$$", "$").replace("%%", "%") for word in words]


class Launchd:
    """The launchd of the machine, or that of a user."""

    name = "launchd"

    def __init__(self, *, is_system: bool, user_home: Path) -> None:
        self._folder = _DAEMONS_FOLDER if is_system else user_home / _AGENTS_FOLDER
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
