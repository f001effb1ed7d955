"""A Yard for one machine or for many, as the settings say."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from toolyard.app import Yard
from toolyard.config import Config
from toolyard.engine.clock import Clock
from toolyard.plugin_source import Outside


@asynccontextmanager
async def open_yard(
    config: Config,
    database: str | None = None,
    *,
    outside: Outside = Outside(),  # noqa: B008 it is frozen
    clock: Clock | None = None,
    serves: bool = True,
) -> AsyncIterator[Yard]:
    """A Yard on the database of many hosts: the one that is named here, else the one of the settings, else none.

    Without ``serves`` it only sends calls: what a command needs that ends soon.
    """
    url = database or config.settings.database
    if not url:
        async with Yard(config, clock=clock, outside=outside) as yard:
            yield yard
        return
    from toolyard.hosts.host import join

    host = await join(config, url, outside=outside, clock=clock, serves=serves)
    try:
        yield host.yard
    finally:
        await host.close()
