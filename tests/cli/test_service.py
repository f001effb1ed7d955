"""``toolyard service``: its files, judged by systemd's own checker, and its conversation with the service manager."""

import json
import os
import plistlib
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from toolyard.cli.service_managers import (
    MARK,
    Launchd,
    ServiceDefinition,
    Systemd,
    render_property_list,
    render_service_unit,
    render_socket_unit,
)

WITH_ANALYZE = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="systemd is for Linux")
FAKE_SYSTEMCTL = """#!/bin/sh
echo "$@" >> "$CALLS"
[ -n "$FAILS" ] && echo "Failed to connect to bus" >&2 && exit 1
case "$*" in
*show*) printf 'ActiveState=%s\\nMainPID=4711\\nUnitFileState=enabled\\nResult=success\\n' "${STATE:-active}" ;;
esac
"""


def run(place: Path, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    project = place / "my project"
    project.mkdir(exist_ok=True)
    programs = place / "bin"
    programs.mkdir(exist_ok=True)
    (programs / "systemctl").write_text(FAKE_SYSTEMCTL)
    (programs / "systemctl").chmod(0o755)
    known = {name: value for name, value in os.environ.items() if name != "SUDO_USER"}
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [sys.executable, "-m", "toolyard", "service", *words, "--home", str(place / "home")],
        cwd=project,
        env={**known, "PATH": path, "HOME": str(place), "CALLS": str(place / "calls"), **environ},
        capture_output=True,
        text=True,
        check=False,
    )


def define(place: Path, *, is_system: bool = False) -> ServiceDefinition:
    return ServiceDefinition(
        name="toolyard",
        command=(sys.executable, "-P", "-m", "toolyard", "serve", "--home", f'{place}/a "b" 50% $HOME'),
        programs=(Path("/opt/toolyard"),),
        home=place / "home",
        project=place,
        listen="127.0.0.1:6005",
        is_system=is_system,
        user="root" if is_system else "",
        search_path="" if is_system else "/opt/my programs/bin:/usr/bin",
    )


def write_units(service: ServiceDefinition, folder: Path) -> list[str]:
    folder.mkdir(exist_ok=True)
    (folder / "toolyard.service").write_text(render_service_unit(service))
    (folder / "toolyard.socket").write_text(render_socket_unit(service))
    return [str(folder / "toolyard.service"), str(folder / "toolyard.socket")]


@ON_LINUX
@WITH_ANALYZE
@pytest.mark.requirement("service:units")
@pytest.mark.parametrize("is_system", [True, False])
def test_systemd_accepts_the_units(tmp_path: Path, is_system: bool) -> None:
    units = write_units(define(tmp_path, is_system=is_system), tmp_path / "units")
    scope = "--system" if is_system else "--user"
    environ = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}
    done = subprocess.run(
        ["systemd-analyze", "verify", scope, "--man=no", *units],
        capture_output=True,
        text=True,
        env=environ,
        check=False,
    )
    ours = [line for line in (done.stdout + done.stderr).splitlines() if "toolyard" in line]
    assert (done.returncode, ours) == (0, [])


@ON_LINUX
@WITH_ANALYZE
@pytest.mark.requirement("service:hardening")
def test_the_system_unit_is_rated_as_protected(tmp_path: Path) -> None:
    units = write_units(define(Path("/srv/yard"), is_system=True), tmp_path / "units")
    words = ["systemd-analyze", "security", "--offline=yes", "--threshold=40", units[0]]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if "unrecognized option" in done.stderr:
        pytest.skip("this systemd-analyze rates running services only")
    assert done.returncode == 0, done.stdout


@pytest.mark.requirement("service:hardening")
@pytest.mark.parametrize("is_system", [True, False])
def test_no_unit_takes_away_what_confines_plugins(tmp_path: Path, is_system: bool) -> None:
    unit = render_service_unit(define(tmp_path, is_system=is_system))
    options = {line.partition("=")[0] for line in unit.splitlines() if not line.startswith("#")}
    assert not options & {
        *("RestrictNamespaces", "PrivateUsers", "ProtectKernelTunables", "ProtectProc", "ProcSubset"),
        *("MemoryDenyWriteExecute", "PrivateDevices"),
    }
    assert "KillMode=process" in unit  # asynchronous plugins go on while the server restarts
    denied = re.search(r"^SystemCallFilter=~(.*)$", unit, re.MULTILINE)
    assert denied is not None
    assert not set(denied[1].split()) & {"@mount", "@process", "@sandbox", "@privileged"}


@pytest.mark.requirement("service:hardening", "plugin:usual-limits")
@pytest.mark.parametrize("is_system", [True, False])
def test_every_unit_limits_the_memory_and_the_processes_of_all_plugins_together(
    tmp_path: Path, is_system: bool
) -> None:
    options = render_service_unit(define(tmp_path, is_system=is_system)).splitlines()
    assert {"MemoryMax=80%", "TasksMax=4096", "OOMPolicy=continue"} <= set(options)


@pytest.mark.requirement("service:hardening")
def test_homes_and_temporary_files_of_others_are_hidden_unless_the_service_needs_them() -> None:
    service = define(Path("/srv/yard"), is_system=True)
    assert "ProtectHome=yes" in render_service_unit(service)
    assert "PrivateTmp=yes" in render_service_unit(service)
    assert "PrivateTmp=no" in render_service_unit(replace(service, project=Path("/tmp/project")))
    in_home = replace(service, programs=(Path("/home/alice/.local/share/uv/tools/toolyard"),))
    assert "ProtectHome=read-only" in render_service_unit(in_home)


@pytest.mark.requirement("service:units")
def test_paths_with_blanks_quotes_and_signs_come_back_as_they_were(tmp_path: Path) -> None:
    manager = Systemd(is_system=False, user_home=tmp_path)
    service = define(tmp_path)
    for file, content in manager.render_files(service).items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    assert manager.read_command("toolyard") == list(service.command)


@ON_LINUX
@pytest.mark.requirement("service:install")
def test_print_shows_the_files_and_installs_nothing(tmp_path: Path) -> None:
    done = run(tmp_path, "install", "--print", "--port", "7000", "--tls-self-signed")
    assert done.returncode == 0, done.stderr
    assert "ListenStream=127.0.0.1:7000" in done.stdout
    assert f'--project "{tmp_path}/my project" --port 7000 --tls-self-signed' in done.stdout
    assert not (tmp_path / ".config").exists()
    assert not (tmp_path / "calls").exists()
    system = run(tmp_path, "install", "--print", "--system", "--run-as", "root", "--json")
    files = json.loads(system.stdout)
    unit = files["/etc/systemd/system/toolyard.service"]
    assert "User=root" in unit
    assert f'ReadWritePaths={tmp_path}/home "{tmp_path}/my project"' in unit


@ON_LINUX
@pytest.mark.requirement("service:install")
def test_a_service_is_installed_shown_changed_and_removed(tmp_path: Path) -> None:
    calls, units = tmp_path / "calls", tmp_path / ".config/systemd/user"
    assert run(tmp_path, "status").returncode == 1
    calls.unlink()
    done = run(tmp_path, "install", "--name", "yard")
    assert done.returncode == 0, done.stderr
    assert "loginctl enable-linger" in done.stdout
    assert sorted(file.name for file in units.iterdir()) == ["yard.service", "yard.socket"]
    assert calls.read_text().splitlines() == [
        "--user show yard.service --property=ActiveState,MainPID,UnitFileState,Result",
        "--user daemon-reload",
        "--user enable yard.socket yard.service",
        "--user start yard.socket",
        "--user restart yard.service",
    ]
    shown = json.loads(run(tmp_path, "status", "--name", "yard", "--json").stdout)
    assert (shown["installed"], shown["active"], shown["pid"], shown["url"]) == (True, "active", 4711, None)
    assert run(tmp_path, "status", "--name", "yard", STATE="failed").returncode == 1
    calls.unlink()
    assert run(tmp_path, "install", "--name", "yard", "--port", "7001").returncode == 0
    assert "--user stop yard.socket yard.service" in calls.read_text()  # it listens somewhere else
    assert run(tmp_path, "remove", "--name", "yard").returncode == 0
    assert "--user disable --now yard.socket yard.service" in calls.read_text()
    assert list(units.iterdir()) == []
    assert run(tmp_path, "remove", "--name", "yard").returncode == 1


@ON_LINUX
@pytest.mark.requirement("service:install")
def test_what_cannot_work_is_refused_with_what_to_do(tmp_path: Path) -> None:
    for words, code, sentence in (
        (("--host", "0.0.0.0"), 2, "--allow-remote"),
        (("--port", "0"), 2, "a service needs a port that stays the same"),
        (("--name", "../x"), 2, "is no name of a service"),
        (("--run-as", "root"), 2, "--run-as is for a --system service"),
        (("--system", "--print"), 2, "name the user of the service with --run-as"),
        (("--system", "--print", "--run-as", "nobody-here"), 2, "there is no user 'nobody-here'"),
    ):
        done = run(tmp_path, "install", *words)
        assert (done.returncode, sentence in done.stderr) == (code, True), done.stderr
    foreign = tmp_path / ".config/systemd/user/toolyard.service"
    foreign.parent.mkdir(parents=True)
    foreign.write_text("[Service]\nExecStart=/bin/true\n")
    for command in ("install", "remove"):
        done = run(tmp_path, command)
        assert (done.returncode, "was not written by Toolyard" in done.stderr) == (1, True), done.stderr
    assert foreign.read_text().endswith("/bin/true\n")


@ON_LINUX
@pytest.mark.requirement("service:install")
def test_nothing_is_written_where_a_service_could_not_start(tmp_path: Path) -> None:
    from toolyard.web.server.running_server import announce

    (tmp_path / "home").mkdir()
    announce(tmp_path / "home", "http://127.0.0.1:1", tmp_path)
    done = run(tmp_path, "install")
    assert (done.returncode, "a server already runs on" in done.stderr) == (1, True)
    (tmp_path / "home/server.json").unlink()
    done = run(tmp_path, "install", FAILS="1")
    assert (done.returncode, "Failed to connect to bus" in done.stderr) == (1, True)
    assert not (tmp_path / ".config").exists()


@pytest.mark.requirement("service:launchd")
def test_the_property_list_of_launchd_runs_the_same_command(tmp_path: Path) -> None:
    service = define(tmp_path)
    text = render_property_list(service)
    assert MARK in text
    values = plistlib.loads(text.encode())
    assert values["ProgramArguments"] == list(service.command)
    assert values["KeepAlive"] == {"SuccessfulExit": False}
    assert values["AbandonProcessGroup"] is True
    assert values["EnvironmentVariables"] == {"PATH": service.search_path}
    assert "UserName" not in values
    assert plistlib.loads(render_property_list(define(tmp_path, is_system=True)).encode())["UserName"] == "root"


@pytest.mark.requirement("service:launchd")
def test_launchd_is_asked_as_it_expects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = tmp_path / "calls"
    program = tmp_path / "launchctl"
    shown = r'printf "\tstate = running\n\tpid = 42\n"'
    program.write_text(
        f'#!/bin/sh\necho "$@" >> {calls}\n[ "$1" != print ] && exit 0\n'
        f'[ -e {tmp_path}/loaded ] && {shown} && exit 0\necho "Could not find service" >&2\nexit 113\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    manager = Launchd(is_system=False, user_home=tmp_path)
    (file,) = manager.render_files(define(tmp_path))
    assert manager.read_state("toolyard").active == "inactive"
    manager.start("toolyard", moved=False)
    (tmp_path / "loaded").touch()
    assert (manager.read_state("toolyard").active, manager.read_state("toolyard").pid) == ("active", 42)
    manager.stop("toolyard")
    domain = f"gui/{os.getuid()}"
    assert [line for line in calls.read_text().splitlines() if not line.startswith("print")] == [
        f"enable {domain}/toolyard",
        f"bootstrap {domain} {file}",
        f"bootout {domain}/toolyard",
    ]
