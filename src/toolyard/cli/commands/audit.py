"""``toolyard audit``: who allowed or changed what, when and from where, and the confinement of each run.

Other commands record what they did there with ``record_action``.
"""

import json
import logging
from datetime import datetime
from typing import Any, Final

import click

from toolyard.cli.common_options import Command, CommonOptions, common_options, print_json
from toolyard.cli.completion import complete_plugins, complete_tools
from toolyard.cli.records import MAX_LIMIT, parse_moment, print_note, run_in_yard
from toolyard.cli.table import Row, escape_unprintable, print_rows
from toolyard.config import Config
from toolyard.engine.history.audit import AuditFilter
from toolyard.errors import StorageError, UsageError
from toolyard.hosts.open_yard import open_yard
from toolyard.protocol.records.audit_record import AUDIT, Actor, AuditEntry
from toolyard.protocol.records.call_record import CALL
from toolyard.protocol.store import PageCursor
from toolyard.yard.yard import Yard

_HEADS = ("TIME", "ACTION", "BY", "FROM", "WHAT", "DETAIL")
CLI: Final = "cli"


@click.command("audit", cls=Command, short_help="Show who allowed what, when and from where.")
@click.option("--tool", metavar="NAME", shell_complete=complete_tools, help="Only entries about this tool.")
@click.option(
    "--plugin", metavar="NAME", shell_complete=complete_plugins, help="Only entries about this plugin, and its runs."
)
@click.option("--by", metavar="NAME", help="Only what this caller did, such as key:owner or cli.")
@click.option("--action", metavar="NAME", help="Only this action, such as plugin.allowed, or those of plugin.")
@click.option("--text", metavar="TEXT", help="Only entries that contain this text, in any case.")
@click.option("--only", type=click.Choice(["decisions", "runs"]), help="Only decisions, or only runs.")
@click.option("--since", metavar="2h|TIME", help="Only since then: 30m, 2h, 7d, or ISO 8601.")
@click.option(
    "--limit", type=click.IntRange(1, MAX_LIMIT), default=20, show_default=True, help="Maximum number of rows."
)
@click.option("--before", metavar="ID", help="Only entries older than this one, for the next page.")
@common_options
def command(
    common: CommonOptions,
    tool: str | None,
    plugin: str | None,
    by: str | None,
    action: str | None,
    text: str | None,
    only: str | None,
    since: str | None,
    limit: int,
    before: str | None,
) -> None:
    """Show who allowed or changed what, when and from where, and how each run was confined, newest first.

    \b
    toolyard audit --since 7d
    toolyard audit --plugin Weather --only runs
    """

    async def work(yard: Yard) -> list[AuditEntry]:
        filter_ = AuditFilter(
            since=parse_moment(since, yard.config.zone) if since else None,
            tool=tool,
            plugin=plugin,
            by=by,
            action=action,
            text=text,
            decisions=only != "runs",
            runs=only != "decisions",
        )
        after = await _find_place(yard, before) if before else None
        return await yard.state.audit.page(filter_, limit=limit, after=after)

    entries = run_in_yard(common, work)
    if common.json:
        print_json([entry.to_json() for entry in entries])
        return
    if not entries:
        print_note(common, "No matches.")
        return
    zone = common.config().zone
    print_rows(_HEADS, [_row(entry, datetime.fromtimestamp(entry.at, zone)) for entry in entries])
    if len(entries) == limit:
        print_note(common, f"Next page: --before {entries[-1].id}")


async def _find_place(yard: Yard, id_: str) -> PageCursor:
    record = await yard.state.store.get(AUDIT, id_) or await yard.state.store.get(CALL, id_)
    if record is None:
        raise UsageError(f"--before: there is no entry '{id_}'")
    return PageCursor(at=record.created, id=record.id)


def _row(entry: AuditEntry, at: datetime) -> Row:
    by = f"{entry.by} ({entry.way})" if entry.way and entry.way != entry.by else entry.by
    what = entry.tool or entry.plugin or entry.target
    detail = {name: value for name, value in entry.detail.items() if value not in (None, "", [], {})}
    written = escape_unprintable(json.dumps(detail, ensure_ascii=False)) if detail else ""
    return f"{at:%Y-%m-%d %H:%M:%S}", entry.action, by, entry.address, what, written


_log = logging.getLogger(__name__)


def cli_actor(config: Config) -> Actor:
    """Return the person at this command line, with the address that they come from over SSH."""
    return Actor(name=CLI, way=CLI, address=config.environ.get("SSH_CONNECTION", "").partition(" ")[0])


async def record_action(yard: Yard, action: str, **what: Any) -> None:
    """Record an action of a command that works on this host alone, where all hosts can see it."""
    actor = cli_actor(yard.config)
    try:
        if not yard.config.settings.database:
            await yard.state.audit.record(action, actor, **what)
            return
        async with open_yard(yard.config, serves=False) as shared:
            await shared.state.audit.record(action, actor, **what)
    except StorageError as error:
        _log.warning("%s is not in the audit trail: %s", action, error)
