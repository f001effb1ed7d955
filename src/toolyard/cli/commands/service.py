"""``toolyard service``: the server as a service of systemd or launchd."""

import os
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolyard.cli.common_options import CommandGroup, CommonOptions, common_options, print_json
from toolyard.cli.server_options import ServeOptions, serve_options
from toolyard.cli.service_managers import MARK, ServiceDefinition, Supervisor
from toolyard.config import Config, load_config
from toolyard.errors import StorageUnwritable, ToolyardError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_HOME_WORD, _PROJECT_WORD = "--home", "--project"


def _scope_options(command: "Callable[..., None]") -> "Callable[..., None]":
    name = click.option("--name", default="toolyard", show_default=True, help="Name of the service.")
    scope = click.option(
        "--system/--user", "is_system", default=False, help="A service of the machine, or of your user (default)."
    )
    return name(scope(command))


@click.group("service", cls=CommandGroup, short_help="Run the server as a service of systemd or launchd.")
@common_options
def command(common: CommonOptions) -> None:
    """Run the server as a service of systemd or launchd."""


@command.command("install")
@_scope_options
@click.option("--run-as", metavar="USER", help="User of a --system service.  [default: the user of sudo]")
@click.option("--print", "only_prints", is_flag=True, help="Print the files of the service; install nothing.")
@serve_options
@common_options
def install(
    common: CommonOptions, serve: ServeOptions, name: str, is_system: bool, run_as: str | None, only_prints: bool
) -> None:
    """Install and start the server as a service, or change it and restart it.

    The service uses this home and this project, and starts with the machine (--system) or when you log in.

    \b
    toolyard service install --project my-project
    toolyard service install --print
    sudo "$(command -v toolyard)" service install --system --run-as alice --project /srv/project
    """
    supervisor = _open_supervisor(name, is_system=is_system)
    common.serving_config()
    config, user = _find_config(common, is_system=is_system, run_as=run_as)
    files = supervisor.render_files(_define(config, serve, name, user))
    if only_prints:
        _print_files(common, files)
        return
    _require_right_user(config, is_system=is_system)
    _require_startable(config, supervisor, name)
    before = {file: file.read_text(encoding="utf-8") for file in supervisor.find_files(name)}
    _require_ours(before)
    _make_home(config.home, user)
    for file, content in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
    moved = any(file.suffix == ".socket" and before[file] != files.get(file) for file in before)
    supervisor.start(name, moved=moved)
    if common.json:
        print_json({"name": name, "manager": supervisor.name, "files": [str(file) for file in files]})
    elif not common.quiet:
        click.echo(f"Installed and started: {', '.join(map(str, files))}")
        click.echo(f"Sign in: toolyard login {_HOME_WORD} {shlex.quote(str(config.home))}")
        for hint in supervisor.list_hints(name):
            click.echo(hint)


@command.command("status")
@_scope_options
@common_options
def status(common: CommonOptions, name: str, is_system: bool) -> None:
    """Show whether the service is installed and running. Exits with 1 if it is not running."""
    supervisor = _open_supervisor(name, is_system=is_system)
    files = supervisor.find_files(name)
    state = supervisor.read_state(name)
    value = {
        "name": name,
        "manager": supervisor.name,
        "scope": "system" if is_system else "user",
        "installed": bool(files),
        "files": [str(file) for file in files],
        "active": state.active,
        "enabled": state.enabled,
        "pid": state.pid,
        "url": _find_server_url(supervisor, name) if files else None,
        "problem": state.problem,
    }
    if common.json:
        print_json(value)
    elif not files:
        click.echo(f"There is no service '{name}': install it with '{common.own_command.format('service install')}'.")
    else:
        click.echo(f"{name}: {state.active}{f', process {state.pid}' if state.pid else ''}")
        for label, shown in (
            ("Server", value["url"]),
            ("Problem", state.problem),
            ("Files", ", ".join(map(str, files))),
        ):
            if shown:
                click.echo(f"{label}: {shown}")
        for hint in supervisor.list_hints(name):
            click.echo(hint)
    if not files or state.active != "active":
        raise SystemExit(1)


@command.command("remove")
@_scope_options
@common_options
def remove(common: CommonOptions, name: str, is_system: bool) -> None:
    """Stop the service and delete its files. The home stays as it is."""
    supervisor = _open_supervisor(name, is_system=is_system)
    files = supervisor.find_files(name)
    if not files:
        raise ToolyardError(f"there is no service '{name}'")
    _require_right_user(common.config(), is_system=is_system)
    _require_ours({file: file.read_text(encoding="utf-8") for file in files})
    supervisor.stop(name)
    for file in files:
        file.unlink()
    supervisor.forget(name)
    if common.json:
        print_json({"name": name, "files": [str(file) for file in files]})
    elif not common.quiet:
        click.echo(f"Stopped and removed: {', '.join(map(str, files))}")


def _open_supervisor(name: str, *, is_system: bool) -> Supervisor:
    from toolyard.cli.service_managers import Launchd, Systemd

    if not _NAME.fullmatch(name):
        raise UsageError(f"--name: '{name}' is no name of a service: use letters, digits, '.', '_' and '-'")
    kind = Launchd if sys.platform == "darwin" else Systemd
    return kind(is_system=is_system, user_home=Path.home())


def _find_config(common: CommonOptions, *, is_system: bool, run_as: str | None) -> tuple[Config, str]:
    """Return the settings of the home that the service will use, and its user; none for a service of a user."""
    if not is_system:
        if run_as:
            raise UsageError("--run-as is for a --system service: a service of your user runs as you")
        return common.config(), ""
    import pwd

    config = common.config()
    user = run_as or config.environ.get("SUDO_USER", "")
    if not user:
        raise UsageError("name the user of the service with --run-as")
    try:
        entry = pwd.getpwnam(user)
    except KeyError:
        raise UsageError(f"--run-as: there is no user '{user}' on this machine") from None
    if common.home is None and not config.environ.get("TOOLYARD_HOME"):  # that of root would be of no use
        config = load_config(common.project, Path(entry.pw_dir, ".local/share/toolyard"))
    return config, user


def _define(config: Config, serve: ServeOptions, name: str, user: str) -> ServiceDefinition:
    from toolyard.web.security.owner_key import read_owner_key
    from toolyard.web.server.listener import require_safe_address

    require_safe_address(serve.host, read_owner_key(config.home), allow_remote=serve.allow_remote)
    port = config.settings.port if serve.port is None else serve.port
    if not port:
        raise UsageError("--port 0: a service needs a port that stays the same")
    script = Path(sys.executable).with_name("toolyard")
    program = [str(script)] if script.exists() else [sys.executable, "-P", "-m", "toolyard"]
    project = config.project.resolve()
    words = ["serve", "--quiet", _HOME_WORD, str(config.home), _PROJECT_WORD, str(project), *serve.to_words()]
    return ServiceDefinition(
        name=name,
        command=(*program, *words),
        programs=(Path(sys.prefix), Path(sys.base_prefix)),
        home=config.home,
        project=project,
        listen=f"[{serve.host}]:{port}" if ":" in serve.host else f"{serve.host}:{port}",
        is_system=bool(user),
        user=user,
        search_path="" if user else config.environ.get("PATH", ""),
    )


def _make_home(home: Path, user: str) -> None:
    """Make the home if it is missing, for the user of the service: systemd makes only existing folders writable."""
    from toolyard.workspace.home_folder import make_private_folder

    if home.exists():
        return
    try:
        make_private_folder(home)
        if user:
            shutil.chown(home, user)
    except OSError as error:
        raise StorageUnwritable.from_os_error(home, error) from error


def _print_files(common: CommonOptions, files: "Mapping[Path, str]") -> None:
    if common.json:
        print_json({str(file): content for file, content in files.items()})
        return
    for file, content in files.items():
        click.echo(f"# {file}\n{content}")


def _require_right_user(config: Config, *, is_system: bool) -> None:
    if is_system and os.geteuid():
        words = [os.path.abspath(sys.argv[0]), *sys.argv[1:]]  # sudo does not search the PATH of the user
        raise UsageError(f"a --system service needs root: sudo {shlex.join(words)}")
    if not is_system and not os.geteuid() and config.environ.get("SUDO_USER"):
        raise UsageError("run this without sudo: it is a service of your own user; or add --system")


def _require_ours(files: "Mapping[Path, str]") -> None:
    """Refuse to touch files that somebody else wrote."""
    foreign = next((file for file, content in files.items() if MARK not in content), None)
    if foreign is not None:
        raise ToolyardError(f"{foreign} was not written by Toolyard: choose another --name, or remove it yourself")


def _require_startable(config: Config, supervisor: Supervisor, name: str) -> None:
    """Refuse to install a service that could not start: without its manager, or on a home that a server uses."""
    from toolyard.web.server.running_server import read_presence

    state, presence = supervisor.read_state(name), read_presence(config.home)
    if state.active == "unknown":
        command = config.own_command.format("service install --print")
        raise ToolyardError(f"{state.problem}; '{command}' shows the files for another machine")
    if presence is not None and presence.is_alive and presence.pid != state.pid:
        raise ToolyardError(
            f"a server already runs on {config.home} (process {presence.pid}): stop it before you install a service"
        )


def _find_server_url(supervisor: Supervisor, name: str) -> str | None:
    """Return the URL of the running server of a service, which is in the home that its command names."""
    from toolyard.web.server.running_server import read_presence

    words = supervisor.read_command(name)
    presence = read_presence(Path(words[words.index(_HOME_WORD) + 1])) if _HOME_WORD in words[:-1] else None
    return presence.url if presence is not None and presence.is_alive else None
