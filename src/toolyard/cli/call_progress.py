"""The progress of a running call at a terminal: what it reports, as it comes."""

import click

from toolyard.cli.table import escape_unprintable
from toolyard.config import Config
from toolyard.engine.journal import CALL_PROGRESS
from toolyard.hosts.open_yard import open_yard
from toolyard.protocol.json import JsonObject
from toolyard.yard.plugin_source import HostOptions
from toolyard.yard.yard import Yard

_EARLIER_EVENTS = 200  # among which the call's own first ones may be


async def show_server_progress(config: Config, call_id: str) -> None:
    """Show what a call of the running server reports, until cancelled."""
    async with open_yard(config, outside=HostOptions(warm=False), serves=False) as yard:
        await show_progress(yard, call_id)


async def show_progress(yard: Yard, call_id: str) -> None:
    """Show on stderr what a call reports and has reported, until cancelled."""
    seen = max(0, (await yard.store.event_span())[1] - _EARLIER_EVENTS)
    while True:
        for event in await yard.store.events(seen, limit=_EARLIER_EVENTS):
            seen = event.seq
            if event.type == CALL_PROGRESS and event.data.get("id") == call_id:
                _print_progress(event.data)
        await yard.store.next_event(seen)


def _print_progress(progress: JsonObject) -> None:
    done = progress.get("done")
    start = f"{done:4.0%}  " if isinstance(done, int | float) else ""
    for line in str(progress.get("text", "")).split("\n"):
        click.echo(start + escape_unprintable(line), err=True)
