"""``toolyard serve``: the server of a home.

``--example`` serves the example project, a small shop with files worth asking about, for those who have no project at
hand.
"""

import asyncio
import logging
import os
import shlex
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolyard import __version__
from toolyard.cli.commands.login import print_qr_code
from toolyard.cli.common_options import Command, CommonOptions, common_options, complete_folders
from toolyard.cli.plugin_targets import warn_about_broken
from toolyard.cli.server_options import ServeOptions, database_option, serve_options
from toolyard.config import Config, find_home
from toolyard.errors import ToolyardError, UsageError
from toolyard.process_memory import protect_memory
from toolyard.protocol.mask import Mask
from toolyard.shipped_files import find_shipped_folder

if TYPE_CHECKING:
    from toolyard.web.server.lifecycle import Server, ServerOptions

_EXAMPLE = "example"


@click.command("serve", cls=Command, short_help="Run the server.")
@serve_options
@click.option("--qr", "shows_qr", is_flag=True, help="Show a login link for a phone as a QR code.")
@database_option("PostgreSQL database shared by several hosts.  [default: the setting 'database']")
@click.option("--vcp", metavar="DIR", shell_complete=complete_folders, help="VCPToolBox installation to use in place.")
@click.option("--beside", is_flag=True, help="VCPToolBox runs on that installation too: leave its timers to it.")
@click.option("--example", is_flag=True, help="Serve a small example project, created beside the home.")
@common_options
def command(
    common: CommonOptions,
    serve: ServeOptions,
    shows_qr: bool,
    database: str | None,
    vcp: str | None,
    beside: bool,
    example: bool,
) -> None:
    """Run the server: HTTP and WebSocket on one port, until SIGTERM, SIGHUP or Ctrl-C.

    On shutdown, running work has up to 20 s to finish; a second signal stops it at once.

    \b
    toolyard serve
    toolyard serve --port 7000 --project my-project
    toolyard serve --vcp /path/to/VCPToolBox
    toolyard serve --example
    toolyard serve --host 0.0.0.0 --allow-remote --tls-self-signed --qr
    """
    protect_memory()
    common = common._replace(vcp=vcp or common.vcp, beside=beside)
    if example:
        common = _use_example_project(common)
    import uvloop

    from toolyard.web.server.certificate import TlsOptions
    from toolyard.web.server.lifecycle import ServerOptions
    from toolyard.web.server.systemd import take_activated_socket

    config = common.serving_config()
    listening = take_activated_socket(config.environ)
    host, port = listening.getsockname()[:2] if listening else (serve.host, serve.port)
    options = ServerOptions(
        version=__version__,
        host=host,
        port=port,
        allow_remote=serve.allow_remote,
        database=database,
        safe=serve.safe,
        tls=TlsOptions(certificate=serve.tls_cert, key=serve.tls_key, self_signed=serve.tls_self_signed),
        listening=listening,
    )
    if shows_qr:
        _require_reachable(config, options)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(common, config, options, shows_qr=shows_qr))


def _use_example_project(common: CommonOptions) -> CommonOptions:
    """Return the options with the example project, which is created if it is not there yet."""

    if common.project:
        raise UsageError("--example and --project name two projects: choose one")
    folder = find_example_folder(find_home(common.home))
    if create_example_project(folder) and not common.quiet:
        click.echo(f"Created an example project in {folder}", err=True)
    return common._replace(project=str(folder))


def _require_reachable(config: Config, options: "ServerOptions") -> None:
    """Refuse a QR code that no phone could use. Raises UsageError."""
    from toolyard.web.server.listener import is_loopback

    if is_loopback(options.host) and not config.settings.public_url:
        raise UsageError(
            "--qr is for a phone, which cannot reach this server: add --host 0.0.0.0 --allow-remote and, to encrypt, "
            "--tls-self-signed; or set public_url"
        )


async def _serve(common: CommonOptions, config: Config, options: "ServerOptions", *, shows_qr: bool) -> None:
    from toolyard.web.server.lifecycle import Server
    from toolyard.web.server.logs import JsonFormatter, QueuedLog
    from toolyard.web.server.systemd import ServiceNotifier

    server = Server(config, options)
    log = QueuedLog(sys.stderr, JsonFormatter(Mask([*server.config.secrets, server.key]).text))
    logging.basicConfig(handlers=[log], level=logging.WARNING, force=True)
    plain = common.quiet or sys.stderr.isatty()  # a line per request would scroll the login link away
    level = logging.DEBUG if common.verbose else logging.WARNING if plain else logging.INFO
    logging.getLogger("toolyard").setLevel(level)
    stop, hurry = asyncio.Event(), asyncio.Event()

    def stopped() -> None:
        (hurry if stop.is_set() else stop).set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stopped)
    try:
        await server.start()
        log.setFormatter(JsonFormatter(server.yard.mask.log_text))  # it also knows secrets added by a reload
        _print_start(common, server, shows_qr=shows_qr)
        notifier = ServiceNotifier(config.environ)
        notifier.send("READY=1")
        watchdog = asyncio.create_task(notifier.feed_watchdog())
        await stop.wait()
        notifier.send("STOPPING=1")
        if not common.quiet:
            click.echo("Shutting down: waiting for running work. Repeat to stop at once.", err=True)
        await server.stop(hurry)
        watchdog.cancel()
    finally:
        logging.getLogger().removeHandler(log)
        log.close()


def _print_start(common: CommonOptions, server: "Server", *, shows_qr: bool) -> None:
    """Print the URL, the login link, and at the first start the key."""
    from toolyard.web.security.owner_key import OWNER_KEY_FILE

    public_url = server.config.settings.public_url
    click.echo(f"Toolyard serves {server.config.project.resolve()} on {server.url}")
    if public_url:
        click.echo(f"People reach it at {public_url}")
    warn_about_broken(common, server.yard.plugins)
    if server.config.vcp:
        _print_waiting(server, server.config.vcp)
    _print_remote(server, public_url)
    if server.is_first_start and sys.stdout.isatty() and not common.quiet:
        click.echo(f"The key: {server.key}")
    elif server.is_first_start:  # output to a file or a log would keep the key
        click.echo(f"The key is in {server.config.home / OWNER_KEY_FILE}")
    if not common.quiet:
        click.echo(f"Open this link once to sign in: {server.make_login_link()}")
        click.echo(
            f"To print the key again: {_find_program()} config show --key{server.config.own_command.for_home.options}"
        )
    if shows_qr:
        print_qr_code(server.make_login_link(server.remote_url), "Scan this code once to sign in on a phone:")


def _print_waiting(server: "Server", installation: Path) -> None:
    """Say how many plugins of a VCPToolBox installation wait for a decision, and how it is taken."""
    waiting = sum(plugin.waits for plugin in server.yard.plugins.plugins.all if plugin.installation)
    if waiting:
        command = server.config.own_command.for_home.format("vcp allow", str(installation))
        click.echo(f"{waiting} plugins of the installation wait for your decision: {command}")


def _print_remote(server: "Server", public_url: str | None) -> None:
    """Print what other machines need to know: the URL, and the certificate that a browser will ask about."""
    if server.remote_url and not public_url:
        click.echo(f"Other machines in this network, such as a phone, open {server.remote_url}")
    if server.tls is not None and server.tls.is_self_signed:
        click.echo(f"The certificate is self-signed; its SHA-256 fingerprint: {server.tls.fingerprint}")
    elif server.tls is not None:
        click.echo(f"SHA-256 fingerprint of the certificate: {server.tls.fingerprint}")
    elif server.is_remote and not (public_url or "").startswith("https:"):
        click.echo(
            "Connections from other machines are not encrypted: put a TLS proxy in front, or add --tls-self-signed.",
            err=True,
        )


def _find_program() -> str:
    """Return the words that run this program in a shell: ``toolyard`` if it is on the PATH, else its own path."""
    started = sys.argv[0]
    if started.endswith("__main__.py"):
        return "python -m toolyard"
    found = shutil.which("toolyard")
    if found is not None and os.path.samefile(found, started):
        return "toolyard"
    return shlex.quote(os.path.abspath(started))


def find_example_folder(home: Path) -> Path:
    """Return the place of the example project: beside the home, because tools reach nothing inside it."""
    return home.with_name(f"{home.name}-{_EXAMPLE}")


def create_example_project(folder: Path) -> bool:
    """Create the example project, complete or not at all; False when the folder exists. Raises ToolyardError."""
    source = find_shipped_folder(_EXAMPLE)
    if source is None:
        raise ToolyardError("the example project is not part of this installation: name a project with --project")
    try:
        if folder.is_dir():
            return False
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as draft:
            made = Path(draft, folder.name)
            _copy_files(source, made)
            made.rename(folder)
    except OSError as error:
        raise ToolyardError(
            f"the example project cannot be created in {folder}: {error.strerror or error}; name another project with "
            "--project"
        ) from error
    return True


def _copy_files(source: Path, target: Path) -> None:
    """Copy the contents of the files, with the rights of new ones: an installation may be read-only."""
    for place, folders, names in os.walk(source):
        folders[:] = [name for name in folders if name != "__pycache__"]
        into = target / Path(place).relative_to(source)
        into.mkdir()
        for name in names:
            (into / name).write_bytes(Path(place, name).read_bytes())
