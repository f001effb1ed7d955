"""``toolyard journal``: every call and every event."""

import asyncio
import json
import signal

import click

from toolyard.app import Yard
from toolyard.cli.options import Common, Verbs, common_options
from toolyard.cli.output import print_json
from toolyard.cli.records import Wanted, ago, ask, list_options, print_one, print_page, unknown
from toolyard.cli.table import Row, one_line, state_cell
from toolyard.engine.clock import SystemClock
from toolyard.engine.feed import read_feed
from toolyard.engine.journal import CALL, ENDED, RUNNING, to_json
from toolyard.protocol.json import JsonObject
from toolyard.protocol.store import Event, Record

_HEADS = ("ID", "STATE", "TOOL", "CALLER", "STARTED", "MS", "TEXT")
_LAST = 10  # events that a tail begins with


@click.group("journal", cls=Verbs, short_help="Look at calls and events; undo what a call wrote.")
@common_options
def command(common: Common) -> None:
    """The journal: every call with its result, and every event."""


@command.command("list")
@list_options((RUNNING, *ENDED))
@common_options
def list_(common: Common, wanted: Wanted) -> None:
    """The calls, newest first."""
    found = ask(common, lambda yard: wanted.page(yard, CALL))
    print_page(common, wanted, _HEADS, [(to_json(record), _row(record)) for record in found])


@command.command("show")
@click.argument("call_id", metavar="CALL")
@common_options
def show(common: Common, call_id: str) -> None:
    """One call with its arguments and the whole of its result; secrets are masked."""

    async def work(yard: Yard) -> JsonObject:
        await yard.recover()
        found = await yard.journal.get(call_id)
        if found is None:
            raise unknown("call", call_id, "journal")
        return found

    print_one(common, ask(common, work))


@command.command("tail")
@click.option("--follow/--no-follow", default=True, help="Go on until Ctrl-C.  [default: follow]")
@click.option("--from", "cursor", metavar="CURSOR", type=click.IntRange(0), help="Begin after this event.")
@common_options
def tail(common: Common, follow: bool, cursor: int | None) -> None:
    """The events as they come: with --json one object a line, as the WebSocket sends them."""
    ask(common, lambda yard: _tail(common, yard, follow=follow, cursor=cursor))


@command.command("undo")
@click.argument("call_id", metavar="CALL")
@common_options
def undo(common: Common, call_id: str) -> None:
    """Put back what a call wrote over or deleted, if the files have not changed since."""
    restored = ask(common, lambda yard: yard.undo(call_id, by=f"cli:{yard.config.project.resolve()}"))
    if common.json:
        print_json({"call_id": call_id, "restored": restored})
    else:
        for path in restored:
            click.echo(f"{path} is as it was before {call_id}.")


async def _tail(common: Common, yard: Yard, *, follow: bool, cursor: int | None) -> None:
    this = asyncio.current_task()
    if this is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, this.cancel)
    try:
        if cursor is None:
            cursor = max(0, (await yard.store.event_span())[1] - _LAST)
        async for event in read_feed(yard.store, SystemClock(), cursor, follow=follow):
            _print_event(common, event)
    except asyncio.CancelledError:
        if this is not None:
            this.uncancel()


def _print_event(common: Common, event: Event) -> None:
    if common.json:
        told = {"seq": event.seq, "type": event.type, "at": event.at, "data": event.data}
        click.echo(json.dumps(told, ensure_ascii=False))
        return
    said = {key: value for key, value in event.data.items() if value not in (None, "", [], {})}
    kind = click.style(event.type, fg="yellow" if event.type == "gap" else "cyan")
    click.echo(f"{event.seq:>6}  {ago(event.at):>10}  {kind}  {one_line(json.dumps(said, ensure_ascii=False))}")


def _row(record: Record) -> Row:
    body = record.body
    text = body.get("text") or json.dumps(body.get("arguments"), ensure_ascii=False)
    taken = body.get("time_ms")
    ms = f"{taken:.0f}" if isinstance(taken, int | float) else ""
    return record.id, state_cell(record.state), record.tool, record.caller, ago(record.created), ms, str(text)
