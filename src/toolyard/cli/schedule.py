"""``toolyard schedule``: calls that run later."""

import json
import sys

import click

from toolyard.app import Yard
from toolyard.cli.call import from_pairs, request_of
from toolyard.cli.options import Common, Verbs, common_options
from toolyard.cli.output import print_json
from toolyard.cli.records import Wanted, ago, ask, list_options, print_page, say, unknown
from toolyard.cli.table import Row, state_cell
from toolyard.engine.clock import SystemClock
from toolyard.engine.ownership import is_owned
from toolyard.engine.schedule_conditions import BLOCKED, LATE, LATE_TEXTS, LateReason
from toolyard.engine.schedules import KIND, ScheduleState
from toolyard.engine.typed_time import normalize_time
from toolyard.errors import ToolyardError, UsageError
from toolyard.protocol.json import JsonObject
from toolyard.protocol.manifests.safe_text import escape_hidden

_HEADS = ("ID", "STATE", "TOOL", "TIME", "IN", "WHAT")


@click.group("schedule", cls=Verbs, short_help="List, add, allow, cancel or run scheduled calls.")
@common_options
def command(common: Common) -> None:
    """Calls that run later, once or again and again."""


@command.command("list")
@list_options(ScheduleState)
@common_options
def list_(common: Common, wanted: Wanted) -> None:
    """The schedules, newest first."""
    print_page(common, wanted, _HEADS, ask(common, lambda yard: _page(yard, wanted)))


@command.command("add")
@click.argument("tool")
@click.argument("pairs", metavar="[KEY=VALUE]...", nargs=-1)
@click.option("--at", metavar="TIME", default="", help="Once: YYYY-MM-DD-HH:mm, or as you say it: 'tomorrow 9:00'.")
@click.option("--cron", metavar="EXPR", default="", help="Again and again: minute hour day month weekday.")
@common_options
def add(common: Common, tool: str, pairs: tuple[str, ...], at: str, cron: str) -> None:
    """Run a tool at a time, or at every time that a cron expression names.

    \b
    toolyard schedule add LS path=src --at 2037-03-05-14:00
    toolyard schedule add LS path=src --cron '30 8 * * 1-5'
    """
    if bool(at) == bool(cron):
        raise UsageError("say when: either --at TIME or --cron EXPR")

    async def work(yard: Yard) -> JsonObject:
        call = request_of(yard, tool, from_pairs(yard, tool, pairs))
        when = normalize_time(at, yard.config.zone, SystemClock().now())
        told = yard.schedules.to_json(await yard.schedules.submit(call, at=when, cron=cron))
        return {**told, "server": is_owned(yard.config.home)}

    told = ask(common, work)
    if common.json:
        print_json(told)
    else:
        click.echo(f"{told['id']}: {tool} runs at {told['scheduled_for']}{', then again and again' if cron else ''}.")
    if not told["server"]:
        say(common, "No server runs on this home now: start one, or run what is due with 'toolyard schedule run'.")


@command.command("allow")
@click.argument("id_", metavar="ID")
@common_options
def allow(common: Common, id_: str) -> None:
    """Let a schedule run without asking, such as one that was imported."""

    async def work(yard: Yard) -> JsonObject | None:
        record = await yard.schedules.get(id_)
        if record is None:
            raise unknown("schedule", id_)
        return yard.schedules.to_json(record) if await yard.schedules.allow(id_) else None

    told = ask(common, work)
    if told is None:
        raise ToolyardError(f"{id_} runs now or has ended: 'toolyard schedule list' tells which")
    if common.json:
        print_json({"allowed": id_})
    else:
        what = json.dumps(told["arguments"], ensure_ascii=False)
        click.echo(f"{id_}: {told['tool']} with {escape_hidden(what)} may run at {told['scheduled_for']}.")


@command.command("cancel")
@click.argument("id_", metavar="ID")
@common_options
def cancel(common: Common, id_: str) -> None:
    """Let a schedule never run (again)."""

    async def work(yard: Yard) -> bool:
        if await yard.schedules.get(id_) is None:
            raise unknown("schedule", id_)
        return await yard.schedules.cancel(id_)

    if not ask(common, work):
        raise ToolyardError(f"{id_} runs now or has ended: 'toolyard schedule list' tells which")
    if common.json:
        print_json({"cancelled": id_})
    else:
        click.echo(f"{id_} is cancelled.")


@command.command("run")
@click.argument("id_", metavar="[ID]", required=False)
@common_options
def run(common: Common, id_: str | None) -> None:
    """Run what is due now and wait for it; with ID that one, due or not."""
    ran = ask(common, lambda yard: _run(yard, id_))
    if common.json:
        print_json(ran)
    elif not ran:
        say(common, "Nothing is due.")
    else:
        for one in ran:
            click.echo(f"{one['id']}: {one['tool']} {one['state']}: {one['text']}")
    sys.exit(any(one["state"] not in (ScheduleState.DONE, ScheduleState.RUNNING) for one in ran))


async def _page(yard: Yard, wanted: Wanted) -> list[tuple[JsonObject, Row]]:
    records = await wanted.page(yard, KIND)
    told = await yard.schedules.list_json(
        records, is_served=is_owned(yard.config.home) or bool(yard.config.settings.database)
    )
    return [(one, _row(one)) for one in told]


def _row(one: JsonObject) -> Row:
    repeats = f"({one['cron']}) " if one["cron"] else ""
    when, due = str(one["scheduled_for"]), one["due"]
    left = ago(due) if isinstance(due, int | float) else ""
    return str(one["id"]), state_cell(str(one["condition"])), str(one["tool"]), when, left, f"{repeats}{_what(one)}"


def _what(one: JsonObject) -> str:
    """What holds it up, how it ended, or what it will be called with."""
    runs = one["runs"]
    if one["condition"] == LATE:
        return LATE_TEXTS[LateReason(str(one["late_because"]))]
    if one["condition"] == BLOCKED:
        return f"waits for {one['approval']}: 'toolyard approval allow' lets it run"
    if one["due"] is None and isinstance(runs, list) and runs and isinstance(runs[-1], dict):
        return str(runs[-1]["text"])
    return json.dumps(one["arguments"], ensure_ascii=False)


async def _run(yard: Yard, id_: str | None) -> list[JsonObject]:
    await yard.recover()
    if id_ is None:
        claimed = await yard.schedules.run_due()
    elif await yard.schedules.get(id_) is None:
        raise unknown("schedule", id_)
    else:
        claimed = [id_] if await yard.schedules.run_by_hand(id_) else []
        if not claimed:
            raise ToolyardError(f"{id_} runs now or has ended: 'toolyard schedule list' tells which")
    await yard.schedules.drain()
    return [await _came_to(yard, one) for one in claimed]


async def _came_to(yard: Yard, id_: str) -> JsonObject:
    record = await yard.schedules.get(id_)
    runs = record.body["runs"] if record else None
    if record is None or not isinstance(runs, list) or not runs or not isinstance(runs[-1], dict):
        raise unknown("schedule", id_)
    return {"id": id_, "tool": record.tool, **runs[-1]}
