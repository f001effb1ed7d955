"""``toolyard journal``: every call and every event."""

import asyncio
import json
import signal
from dataclasses import replace

import click

from toolyard.cli.common_options import CommandGroup, CommonOptions, common_options, print_json
from toolyard.cli.records import (
    RecordFilter,
    filter_options,
    format_age,
    print_page,
    print_record,
    run_in_yard,
    unknown_record,
)
from toolyard.cli.table import Row, state_cell, to_one_line
from toolyard.engine.clock import SystemClock
from toolyard.engine.history.stored_events import read_feed
from toolyard.protocol.access import ApprovalState
from toolyard.protocol.envelope import ErrorCode, Reason, list_causes
from toolyard.protocol.json import JsonObject
from toolyard.protocol.records.call_record import CALL, CallRecord, CallState
from toolyard.protocol.store import Event
from toolyard.web.server.running_server import cli_caller
from toolyard.yard.yard import Yard

_HEADS = ("ID", "STATE", "TOOL", "CALLER", "STARTED", "MS", "TEXT")
_LAST = 10  # events that a tail starts with


@click.group("journal", cls=CommandGroup, short_help="Browse calls and events; undo file changes.")
@common_options
def command(common: CommonOptions) -> None:
    """Browse the journal of calls and events, and undo file changes."""


@command.command("list")
@filter_options(CallState, by_project=True)
@click.option(
    "--code",
    "codes",
    type=click.Choice([one.value for one in (*ErrorCode, *Reason)]),
    multiple=True,
    metavar="CODE",
    help="Filter by the code or the reason of an error; repeatable.",
)
@common_options
def list_(common: CommonOptions, filter_: RecordFilter, codes: tuple[str, ...]) -> None:
    """List the calls of the project, newest first."""
    filter_ = replace(filter_, code=tuple(cause for code in codes for cause in list_causes(code)))

    async def work(yard: Yard) -> list[tuple[CallRecord, str]]:
        calls = [CallRecord.from_record(record) for record in await filter_.find(yard, CALL)]
        return [(call, await _describe_state(yard, call.id, call.state, call.caller)) for call in calls]

    calls = run_in_yard(common, work)
    print_page(common, filter_, _HEADS, [(call.to_json(), _row(call, state)) for call, state in calls])


@command.command("show")
@click.argument("call_id", metavar="CALL")
@common_options
def show(common: CommonOptions, call_id: str) -> None:
    """Show a call with its arguments and full result; secrets are masked."""

    async def work(yard: Yard) -> JsonObject:
        await yard.state.recover()
        call = await yard.state.journal.get(call_id)
        if call is None:
            raise unknown_record(yard.config.own_command, "call", call_id, "journal")
        state = str(call["state"])
        return (
            call if common.json else call | {"state": await _describe_state(yard, call_id, state, str(call["caller"]))}
        )

    print_record(common, run_in_yard(common, work))


@command.command("tail")
@click.option("--follow/--no-follow", default=True, help="Follow new events until Ctrl-C.  [default: follow]")
@click.option("--from", "cursor", metavar="CURSOR", type=click.IntRange(0), help="Start after this event.")
@common_options
def tail(common: CommonOptions, follow: bool, cursor: int | None) -> None:
    """Print events as they occur; with --json one object per line, as on the WebSocket."""
    run_in_yard(common, lambda yard: _tail(common, yard, follow=follow, cursor=cursor))


@command.command("undo")
@click.argument("call_id", metavar="CALL")
@common_options
def undo(common: CommonOptions, call_id: str) -> None:
    """Restore the files that a call overwrote or deleted, and delete those that it created, unless changed since."""
    project = common.config().project.resolve()
    undone = run_in_yard(common, lambda yard: yard.calls.undo(call_id, by=cli_caller(yard.config)))
    if common.json:
        paths = {"restored": undone.restored, "deleted": undone.deleted}
        print_json({"call_id": call_id, "project": str(project), **paths})
        return
    for path in undone.restored:
        click.echo(f"Restored {path} in {project}.")
    for path in undone.deleted:
        click.echo(f"Deleted {path} in {project}, which the call had created.")


async def _tail(common: CommonOptions, yard: Yard, *, follow: bool, cursor: int | None) -> None:
    this = asyncio.current_task()
    if this is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, this.cancel)
    try:
        if cursor is None:
            cursor = max(0, (await yard.state.store.event_span())[1] - _LAST)
        async for event in read_feed(yard.state.store, SystemClock(), cursor, follow=follow):
            _print_event(common, event)
    except asyncio.CancelledError:
        if this is not None:
            this.uncancel()


def _print_event(common: CommonOptions, event: Event) -> None:
    if common.json:
        message = {"seq": event.seq, "type": event.type, "at": event.at, "data": event.data}
        click.echo(json.dumps(message, ensure_ascii=False))
        return
    data = {key: value for key, value in event.data.items() if value not in (None, "", [], {})}
    kind = click.style(event.type, fg="yellow" if event.type == "gap" else "cyan")
    click.echo(
        f"{event.seq:>6}  {format_age(event.at):>10}  {kind}  {to_one_line(json.dumps(data, ensure_ascii=False))}"
    )


async def _describe_state(yard: Yard, call_id: str, state: str, caller: str) -> str:
    """Return the state of a call for people: one that waits for approval has not begun, though its record runs."""
    approval = await yard.state.approvals.find_for_call(call_id, caller) if state == CallState.RUNNING else None
    return "waits" if approval is not None and approval.state is ApprovalState.PENDING else state


def _row(call: CallRecord, state: str) -> Row:
    text = call.text or json.dumps(call.arguments, ensure_ascii=False)
    ms = "" if call.time_ms is None else f"{call.time_ms:.0f}"
    return call.id, state_cell(state), call.tool, call.caller, format_age(call.started), ms, text
