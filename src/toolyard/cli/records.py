"""Helpers of commands that read records: filters, times and output."""

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

from toolyard.cli.common_options import CommonOptions, print_json
from toolyard.cli.completion import complete_tools
from toolyard.cli.table import Row, escape_unprintable, print_rows
from toolyard.engine.clock import SystemClock
from toolyard.errors import ToolyardError, UsageError
from toolyard.hosts.open_yard import open_yard
from toolyard.own_command import OwnCommand
from toolyard.protocol.envelope import Failure
from toolyard.protocol.json import JsonObject
from toolyard.protocol.store import PageCursor, Query, Record
from toolyard.yard.yard import Yard

T = TypeVar("T")
MAX_LIMIT = 1000
_SPAN = re.compile(r"(\d{1,9})\s*([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_STEPS = (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1))


def run_in_yard(common: CommonOptions, work: Callable[[Yard], Awaitable[T]]) -> T:
    """Run ``work`` with a Yard of this home and return its result; a Failure becomes a ToolyardError."""

    async def run() -> T:
        async with open_yard(common.config(), serves=False) as yard:
            try:
                return await work(yard)
            except Failure as failure:
                raise ToolyardError(f"{failure.message} {failure.hint}".strip()) from failure

    return asyncio.run(run())


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFilter:
    """The filter options of a list."""

    tool: str | None
    state: tuple[str, ...]
    caller: str | None
    search: str
    since: str | None
    limit: int
    before: str | None
    code: tuple[str, ...] = ()
    all_projects: bool = True  # False: only of the project of this command

    async def find(self, yard: Yard, kind: str) -> list[Record]:
        """Return the newest matching records, after recovering those of dead processes."""
        if not yard.config.settings.database:  # hosts that share a database recover it themselves
            await yard.state.recover()
        after = None
        if self.before:
            last = await yard.state.store.get(kind, self.before)
            if last is None:
                raise UsageError(f"--before: there is no {kind} '{self.before}'")
            after = PageCursor(at=last.created, id=last.id)
        since = parse_moment(self.since, yard.config.zone) if self.since else None
        query = Query(
            states=self.state, tool=self.tool, caller=self.caller, text=self.search, since=since, codes=self.code,
            project=None if self.all_projects else yard.project,
        )  # fmt: skip
        return await yard.state.store.find(kind, query, limit=self.limit, after=after)


def filter_options(
    states: Iterable[str], *, by_project: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the filter options of a list; the command gets them as ``filter_``. ``by_project``: of one unless told."""
    everywhere = click.option("--all-projects", is_flag=True, help="Also those of other projects.")
    options = (
        *([everywhere] if by_project else []),
        click.option("--tool", metavar="NAME", shell_complete=complete_tools, help="Filter by tool."),
        click.option(
            "--state",
            type=click.Choice([str(state) for state in states]),
            multiple=True,
            help="Filter by state; repeatable.",
        ),
        click.option("--caller", metavar="NAME", help="Filter by caller."),
        click.option("--search", metavar="WORDS", default="", help="Filter by words in the text; all must match."),
        click.option("--since", metavar="2h|TIME", help="Only since then: 30m, 2h, 7d, or ISO 8601."),
        click.option(
            "--limit", type=click.IntRange(1, MAX_LIMIT), default=20, show_default=True, help="Maximum number of rows."
        ),
        click.option("--before", metavar="ID", help="Only rows older than this one, for the next page."),
    )

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def with_wanted(*args: Any, **kwargs: Any) -> Any:
            values = {field.name: kwargs.pop(field.name) for field in fields(RecordFilter) if field.name in kwargs}
            return command(*args, filter_=RecordFilter(**values), **kwargs)

        return functools.reduce(lambda inner, option: option(inner), reversed(options), with_wanted)

    return decorate


def print_page(
    common: CommonOptions, filter_: RecordFilter, heads: Sequence[str], records: Sequence[tuple[JsonObject, Row]]
) -> None:
    """Print a page of records as JSON, or as a table with a hint for the next page.

    The table has the projects of records that have one, before the last column, unless they are all of one.
    """
    if common.json:
        print_json([record for record, _ in records])
        return
    if not filter_.all_projects and not common.quiet:
        click.echo(describe_project(common))
    if not records:
        print_note(common, "No matches." if filter_.all_projects else "No matches; --all-projects looks everywhere.")
        return
    rows = [row for _, row in records]
    if filter_.all_projects and all("project" in record for record, _ in records):
        heads = (*heads[:-1], "PROJECT", heads[-1])
        rows = [(*row[:-1], str(record["project"]), row[-1]) for record, row in records]
    print_rows(heads, rows)
    if len(records) == filter_.limit:
        print_note(common, f"Next page: --before {records[-1][0]['id']}")


def describe_project(common: CommonOptions) -> str:
    """Return the line that names the project which a command works on."""
    return f"Project: {common.config().project.resolve()}"


def require_project(yard: Yard, project: str, what: str, *words: str) -> None:
    """Raise ToolyardError when something belongs to another project; ``words`` are the command that works there."""
    if project not in ("", yard.project):
        command = yard.config.own_command.in_project(project).format(*words)
        raise ToolyardError(f"{what} belongs to the project {project}, not to {yard.project}: '{command}'")


def print_record(common: CommonOptions, record: JsonObject) -> None:
    """Print one record as JSON, or a line per field."""
    if common.json:
        print_json(record)
        return
    for name, value in record.items():
        if value not in (None, "", [], {}):
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
            click.echo(f"{click.style(f'{name}:', bold=True)} {escape_unprintable(text)}")


def print_note(common: CommonOptions, text: str) -> None:
    """Print a note on stderr, unless quiet."""
    if not common.quiet:
        click.echo(text, err=True)


def format_age(stamp: float | None, now: float | None = None) -> str:
    """Return a relative time, such as ``3 min ago`` or ``in 2 h``."""
    if stamp is None:
        return ""
    away = stamp - (SystemClock().now().timestamp() if now is None else now)
    unit, seconds = next((step for step in _STEPS if abs(away) >= step[1]), ("s", 1))
    count = int(abs(away) // seconds)
    if not count:
        return "now"
    return f"in {count} {unit}" if away > 0 else f"{count} {unit} ago"


def parse_moment(text: str, zone: ZoneInfo, now: float | None = None) -> float:
    """Return the timestamp that ``--since`` denotes."""
    span = _SPAN.fullmatch(text.strip())
    if span:
        now = SystemClock().now().timestamp() if now is None else now
        return now - int(span[1]) * _SECONDS[span[2]]
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise UsageError(f"--since: '{text}' is not a time: write 30m, 2h, 7d, or 2027-03-05T14:00") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC).timestamp()


def unknown_record(own_command: OwnCommand, kind: str, id_: str, command: str = "") -> ToolyardError:
    return ToolyardError(f"there is no {kind} '{id_}': see '{own_command.format(f'{command or kind} list')}'")
