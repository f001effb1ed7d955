"""Services of systemd: a socket unit, which keeps the port open while the server restarts, and the server's unit.

The hardening leaves plugins what their confinement needs: user, mount and network namespaces, Landlock and a /proc that
bubblewrap can mount again. A service of a user gets what its manager can do without privileges.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from toolyard.cli.service_definition import MARK, STOP_S, ServiceDefinition, ServiceState, run_command
from toolyard.errors import ToolyardError, UsageError

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
