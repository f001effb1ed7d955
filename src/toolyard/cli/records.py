"""What the commands that look at records share: their filters, their times, and a Yard to ask."""

import asyncio
import functools
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

import click

from toolyard.app import Yard
from toolyard.cli.options import Common
from toolyard.cli.output import print_json
from toolyard.cli.table import Row, print_rows, visible
from toolyard.engine.clock import SystemClock
from toolyard.errors import ToolyardError, UsageError
from toolyard.hosts.yard import open_yard
from toolyard.protocol.failure import Failure
from toolyard.protocol.json import JsonObject
from toolyard.protocol.store import PageCursor, Query, Record

T = TypeVar("T")
MOST = 1000
_SPAN = re.compile(r"(\d{1,9})\s*([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_STEPS = (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1))


def ask(common: Common, work: Callable[[Yard], Awaitable[T]]) -> T:
    """What ``work`` finds in the state of this home. What a tool would be told is told to a person."""

    async def run() -> T:
        async with open_yard(common.config(), serves=False) as yard:
            try:
                return await work(yard)
            except Failure as failure:
                raise ToolyardError(f"{failure.message} {failure.hint}".strip()) from failure

    return asyncio.run(run())


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which records, as the options of a list say."""

    tool: str | None
    state: tuple[str, ...]
    caller: str | None
    search: str
    since: str | None
    limit: int
    before: str | None

    async def page(self, yard: Yard, kind: str) -> list[Record]:
        """The newest of them, after what processes that are gone left behind was settled."""
        if not yard.config.settings.database:  # where many hosts share it they settle that themselves
            await yard.recover()
        after = None
        if self.before:
            last = await yard.store.get(kind, self.before)
            if last is None:
                raise UsageError(f"--before: there is no {kind} '{self.before}'")
            after = PageCursor(created=last.created, id=last.id)
        since = moment_of(self.since, yard.config.zone) if self.since else None
        query = Query(states=self.state, tool=self.tool, caller=self.caller, text=self.search, since=since)
        return await yard.store.find(kind, query, limit=self.limit, after=after)


def list_options(states: Iterable[str]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The filters of a list; the command gets them as one ``wanted``."""
    options = (
        click.option("--tool", metavar="NAME", help="Only those of this tool."),
        click.option(
            "--state",
            type=click.Choice([str(state) for state in states]),
            multiple=True,
            help="Only in this state; repeatable.",
        ),
        click.option("--caller", metavar="NAME", help="Only those that this caller asked for."),
        click.option("--search", metavar="WORDS", default="", help="Only those that say all these words."),
        click.option("--since", metavar="2h|TIME", help="Only those begun since then: 30m, 2h, 7d, or ISO 8601."),
        click.option("--limit", type=click.IntRange(1, MOST), default=20, show_default=True, help="At most so many."),
        click.option("--before", metavar="ID", help="Only older than this one: the next page."),
    )

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def with_wanted(*args: Any, **kwargs: Any) -> Any:
            said = {field.name: kwargs.pop(field.name) for field in fields(Wanted)}
            return command(*args, wanted=Wanted(**said), **kwargs)

        return functools.reduce(lambda inner, option: option(inner), reversed(options), with_wanted)

    return decorate


def print_page(common: Common, wanted: Wanted, heads: Sequence[str], found: Sequence[tuple[JsonObject, Row]]) -> None:
    """A page of records: as JSON, or as a table with how to get the next one."""
    if common.json:
        print_json([told for told, _ in found])
        return
    if not found:
        say(common, "There is none.")
        return
    print_rows(heads, [row for _, row in found])
    if len(found) == wanted.limit:
        say(common, f"Older ones: --before {found[-1][0]['id']}")


def print_one(common: Common, told: JsonObject) -> None:
    """One record: as JSON, or a line for each of its fields."""
    if common.json:
        print_json(told)
        return
    for name, value in told.items():
        if value not in (None, "", [], {}):
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
            click.echo(f"{click.style(f'{name}:', bold=True)} {visible(text)}")


def say(common: Common, text: str) -> None:
    """A remark beside the result."""
    if not common.quiet:
        click.echo(text, err=True)


def ago(stamp: float | None, now: float | None = None) -> str:
    """A moment as people say it: ``3 min ago``, ``in 2 h``."""
    if stamp is None:
        return ""
    away = stamp - (SystemClock().now().timestamp() if now is None else now)
    unit, seconds = next((step for step in _STEPS if abs(away) >= step[1]), ("s", 1))
    count = int(abs(away) // seconds)
    if not count:
        return "now"
    return f"in {count} {unit}" if away > 0 else f"{count} {unit} ago"


def moment_of(text: str, zone: ZoneInfo, now: float | None = None) -> float:
    """The moment that ``--since`` means."""
    span = _SPAN.fullmatch(text.strip())
    if span:
        now = SystemClock().now().timestamp() if now is None else now
        return now - int(span[1]) * _SECONDS[span[2]]
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise UsageError(f"--since: '{text}' is no time: write 30m, 2h, 7d, or 2027-03-05T14:00") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC).timestamp()


def unknown(kind: str, id_: str, command: str = "") -> ToolyardError:
    return ToolyardError(f"there is no {kind} '{id_}': 'toolyard {command or kind} list' shows them")
