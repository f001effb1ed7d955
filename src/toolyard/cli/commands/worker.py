"""``toolyard worker``: a host that runs calls, tasks and schedules for others."""

import asyncio
import logging
import signal
import sys
from collections.abc import Awaitable, Callable

import click

from toolyard.cli.common_options import Command, CommonOptions, common_options
from toolyard.cli.server_options import database_option
from toolyard.config import Config
from toolyard.errors import StorageError, UsageError
from toolyard.process_memory import protect_memory
from toolyard.yard.yard import Yard

_log = logging.getLogger(__name__)
_SWEEP_S = 3600.0
_PAUSE_S = 1.0


@click.command("worker", cls=Command, short_help="Run calls for other hosts on a shared PostgreSQL database.")
@database_option("Shared PostgreSQL database.  [default: the setting 'database']")
@common_options
def command(common: CommonOptions, database: str | None) -> None:
    """Run calls, tasks and schedules for other hosts on a shared PostgreSQL database.

    Runs until SIGTERM, SIGHUP or Ctrl-C; running calls then have 20 s to finish. A second signal stops it at once.

    \b
    toolyard worker --database postgresql://toolyard@db.example/toolyard
    """
    protect_memory()
    config = common.serving_config()
    url = database or config.settings.database
    if not url:
        raise UsageError("a worker needs a database: pass --database postgresql://user@host/name")
    import uvloop

    try:
        uvloop.run(_run_worker(config, url, quiet=common.quiet))
    except asyncio.CancelledError:
        sys.exit(1)  # asked twice


async def _run_worker(config: Config, database: str, *, quiet: bool) -> None:
    from toolyard.hosts.open_yard import open_yard
    from toolyard.threads import use_started_pool

    use_started_pool()
    stopping = asyncio.Event()
    main = asyncio.current_task()
    for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(
            name, lambda: main.cancel() if stopping.is_set() and main else stopping.set()
        )
    async with open_yard(config, database) as yard:
        upkeep = [
            asyncio.create_task(work)
            for work in (_run_repeatedly(yard.state.schedules.serve), _run_repeatedly(lambda: _sweep(yard)))
        ]
        try:
            if not quiet:
                tools = ", ".join(sorted(tool.spec.name for tool in yard.plugins.all())) or "none yet"
                click.echo(f"Worker {yard.boot.name}, tools: {tools}.", err=True)
            await stopping.wait()
        finally:
            for task in upkeep:
                task.cancel()
            await asyncio.wait(upkeep)
            await yard.state.schedules.drain()


async def _sweep(yard: Yard) -> None:
    while True:
        await yard.state.sweep()
        await asyncio.sleep(_SWEEP_S)


async def _run_repeatedly(work: Callable[[], Awaitable[None]]) -> None:
    """Run ``work`` until cancelled, also while the database is unavailable."""
    while True:
        try:
            await work()
        except StorageError as error:
            _log.warning("%s", error)
        await asyncio.sleep(_PAUSE_S)
