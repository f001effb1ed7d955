"""``toolyard schedule``: calls that run later."""

import json
import sys

import click

from toolyard.cli.commands.audit import cli_actor
from toolyard.cli.common_options import CommandGroup, CommonOptions, common_options, print_json
from toolyard.cli.completion import complete_tools
from toolyard.cli.local_call import make_call, parse_tool_pairs
from toolyard.cli.records import (
    RecordFilter,
    filter_options,
    format_age,
    print_note,
    print_page,
    run_in_yard,
    unknown_record,
)
from toolyard.cli.table import Row, state_cell
from toolyard.engine.background.schedule_time import normalize_time
from toolyard.engine.background.schedules import BLOCKED, LATE, LATE_TEXTS, PROPOSED
from toolyard.engine.clock import SystemClock
from toolyard.engine.ownership import is_owned
from toolyard.errors import ToolyardError, UsageError
from toolyard.own_command import OwnCommand
from toolyard.protocol.json import JsonObject
from toolyard.protocol.manifests.safe_text import escape_hidden
from toolyard.protocol.records.schedule_record import SCHEDULE, LateReason, Schedule, ScheduleState
from toolyard.yard.yard import Yard

_HEADS = ("ID", "STATE", "TOOL", "TIME", "IN", "WHAT")


@click.group("schedule", cls=CommandGroup, short_help="List, add, approve, cancel and run scheduled calls.")
@common_options
def command(common: CommonOptions) -> None:
    """List, add, approve, cancel and run scheduled calls."""


@command.command("list")
@filter_options(ScheduleState)
@common_options
def list_(common: CommonOptions, filter_: RecordFilter) -> None:
    """List schedules, newest first."""
    print_page(common, filter_, _HEADS, run_in_yard(common, lambda yard: _page(yard, filter_)))


@command.command("add")
@click.argument("tool", shell_complete=complete_tools)
@click.argument("pairs", metavar="[KEY=VALUE]...", nargs=-1)
@click.option("--at", metavar="TIME", default="", help="Run once: YYYY-MM-DD-HH:mm, or a phrase like 'tomorrow 9:00'.")
@click.option("--cron", metavar="EXPR", default="", help="Run repeatedly: minute hour day month weekday.")
@common_options
def add(common: CommonOptions, tool: str, pairs: tuple[str, ...], at: str, cron: str) -> None:
    """Schedule a call, once or repeatedly.

    \b
    toolyard schedule add LS path=src --at 2037-03-05-14:00
    toolyard schedule add LS path=src --cron '30 8 * * 1-5'
    """
    if bool(at) == bool(cron):
        raise UsageError("one of --at TIME and --cron EXPR is required")

    async def work(yard: Yard) -> JsonObject:
        call = make_call(yard, tool, parse_tool_pairs(yard, tool, pairs))
        when = normalize_time(at, yard.config.zone, SystemClock().now())
        submitted = await yard.state.schedules.submit(call, at=when, cron=cron)
        detail: JsonObject = {"at": when, "cron": cron}
        await yard.state.audit.record(
            "schedule.created", cli_actor(yard.config), tool=tool, target=submitted.id, detail=detail
        )
        schedule = yard.state.schedules.to_json(submitted)
        return {**schedule, "server": is_owned(yard.config.home)}

    schedule = run_in_yard(common, work)
    if common.json:
        print_json(schedule)
    else:
        click.echo(
            f"{schedule['id']}: {tool} runs at {schedule['scheduled_for']}{', then repeatedly' if cron else ''}."
        )
    if not schedule["server"]:
        print_note(
            common,
            "No server is running on this home: start one, or run due schedules with "
            f"'{common.own_command.format('schedule run')}'.",
        )


@command.command("allow")
@click.argument("id_", metavar="ID")
@common_options
def allow(common: CommonOptions, id_: str) -> None:
    """Approve a schedule to run without asking, such as an imported one."""

    async def work(yard: Yard) -> JsonObject | None:
        record = await yard.state.schedules.get(id_)
        if record is None:
            raise unknown_record(yard.config.own_command, "schedule", id_)
        if not await yard.state.schedules.allow(id_):
            return None
        await yard.state.audit.record("schedule.allowed", cli_actor(yard.config), tool=record.tool, target=id_)
        return yard.state.schedules.to_json(record)

    schedule = run_in_yard(common, work)
    if schedule is None:
        raise _ended(common.own_command, id_)
    if common.json:
        print_json({"allowed": id_})
    else:
        what = json.dumps(schedule["arguments"], ensure_ascii=False)
        click.echo(f"{id_}: {schedule['tool']} with {escape_hidden(what)} is approved for {schedule['scheduled_for']}.")


@command.command("cancel")
@click.argument("id_", metavar="ID")
@common_options
def cancel(common: CommonOptions, id_: str) -> None:
    """Cancel a schedule permanently."""

    async def work(yard: Yard) -> bool:
        if await yard.state.schedules.get(id_) is None:
            raise unknown_record(yard.config.own_command, "schedule", id_)
        return await yard.state.schedules.cancel(id_)

    if not run_in_yard(common, work):
        raise _ended(common.own_command, id_)
    if common.json:
        print_json({"cancelled": id_})
    else:
        click.echo(f"{id_} is cancelled.")


@command.command("run")
@click.argument("id_", metavar="[ID]", required=False)
@common_options
def run(common: CommonOptions, id_: str | None) -> None:
    """Run the due schedules and wait for them; with ID only that one, due or not."""
    ran = run_in_yard(common, lambda yard: _run(yard, id_))
    if common.json:
        print_json(ran)
    elif not ran:
        print_note(common, "Nothing is due.")
    else:
        for one in ran:
            click.echo(f"{one['id']}: {one['tool']} {one['state']}: {one['text']}")
    sys.exit(any(one["state"] not in (ScheduleState.DONE, ScheduleState.RUNNING) for one in ran))


async def _page(yard: Yard, filter_: RecordFilter) -> list[tuple[JsonObject, Row]]:
    stored = [Schedule.from_record(record) for record in await filter_.find(yard, SCHEDULE)]
    schedules = await yard.state.schedules.list_json(
        stored, is_served=is_owned(yard.config.home) or bool(yard.config.settings.database)
    )
    return [(one, _row(one, yard.config.own_command.for_home)) for one in schedules]


def _row(one: JsonObject, own_command: OwnCommand) -> Row:
    repeats = f"({one['cron']}) " if one["cron"] else ""
    when, due = str(one["scheduled_for"]), one["due"]
    left = format_age(due) if isinstance(due, int | float) else ""
    what = f"{repeats}{_describe(one, own_command)}"
    return str(one["id"]), state_cell(str(one["condition"])), str(one["tool"]), when, left, what


def _describe(one: JsonObject, own_command: OwnCommand) -> str:
    """Return why a schedule is late or blocked, its last result, or its arguments."""
    runs = one["runs"]
    if one["condition"] == LATE:
        return LATE_TEXTS[LateReason(str(one["late_because"]))]
    if one["condition"] == BLOCKED:
        return f"waiting for its approval: '{own_command.format('approval allow', str(one['approval']))}'"
    if one["due"] is None and isinstance(runs, list) and runs and isinstance(runs[-1], dict):
        return str(runs[-1]["text"])
    arguments = json.dumps(one["arguments"], ensure_ascii=False)
    if one["condition"] == PROPOSED:
        return f"not approved, see '{own_command.format('schedule allow', str(one['id']))}': {arguments}"
    return arguments


async def _run(yard: Yard, id_: str | None) -> list[JsonObject]:
    await yard.state.recover()
    if id_ is None:
        claimed = await yard.state.schedules.run_due()
    elif await yard.state.schedules.get(id_) is None:
        raise unknown_record(yard.config.own_command, "schedule", id_)
    else:
        claimed = [id_] if await yard.state.schedules.run_by_hand(id_) else []
        if not claimed:
            raise _ended(yard.config.own_command, id_)
    await yard.state.schedules.drain()
    return [await _read_last_run(yard, one) for one in claimed]


def _ended(own_command: OwnCommand, id_: str) -> ToolyardError:
    return ToolyardError(f"{id_} is running or has ended: see '{own_command.format('schedule list')}'")


async def _read_last_run(yard: Yard, id_: str) -> JsonObject:
    schedule = await yard.state.schedules.get(id_)
    if schedule is None or not schedule.runs:
        raise unknown_record(yard.config.own_command, "schedule", id_)
    return {"id": id_, "tool": schedule.tool, **schedule.runs[-1].to_body()}
