"""Opening a Yard for one machine or for many, as the settings say."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from toolyard.config import Config
from toolyard.engine.clock import Clock
from toolyard.yard.plugin_source import HostOptions
from toolyard.yard.yard import Yard


@asynccontextmanager
async def open_yard(
    config: Config,
    database: str | None = None,
    *,
    outside: HostOptions = HostOptions(),  # noqa: B008 it is frozen
    clock: Clock | None = None,
    serves: bool = True,
) -> AsyncIterator[Yard]:
    """Open a Yard on a shared database: the given one, else the one of the settings, else on this machine alone.

    Without ``serves`` it only sends calls: what a command needs that ends soon.
    """
    url = database or config.settings.database
    if not url:
        async with Yard(config, clock=clock, outside=outside) as yard:
            yield yard
        return
    from toolyard.hosts.host import join_hosts

    host = await join_hosts(config, url, outside=outside, clock=clock, serves=serves)
    try:
        yield host.yard
    finally:
        await host.close()
