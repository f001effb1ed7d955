"""``toolyard import``: import plugins and state from another tool host."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import click

from toolyard.cli.common_options import CommandGroup, CommonOptions, common_options, complete_folders, print_json
from toolyard.cli.table import print_table
from toolyard.hosts.open_yard import open_yard
from toolyard.importing import ImportReport, Item, VcpImport
from toolyard.protocol.manifests.safe_text import escape_unprintable
from toolyard.vcp.installation import Installation, read_installation


@click.group("import", cls=CommandGroup, short_help="Import plugins and state from another tool host.")
@common_options
def command(common: CommonOptions) -> None:
    """Import plugins and state from another tool host."""


@command.command("vcp")
@click.argument("folder", metavar="DIR", shell_complete=complete_folders)
@click.option("--dry-run", is_flag=True, help="Only show what would be imported.")
@common_options
def vcp(common: CommonOptions, folder: str, dry_run: bool) -> None:
    """Import a VCPToolBox installation. It is not modified, and nothing of it is run.

    Imports plugins, the variables they use, denials of the approval list, timed tasks and async results. Plugins need a
    review unless --trust is given.
    """
    report = asyncio.run(_import(common, read_installation(Path(folder).absolute()), dry=dry_run))
    if common.json:
        print_json({"source": str(Path(folder).absolute()), "dry_run": dry_run, **report.to_dict()})
    else:
        _print_report(report, dry=dry_run)


async def _import(common: CommonOptions, source: Installation, *, dry: bool) -> ImportReport:
    async with open_yard(common.config(), serves=False) as yard:
        return await VcpImport(yard, source, dry=dry, trust=common.trust).run()


def _print_report(report: ImportReport, *, dry: bool) -> None:
    for title, items in (("Would import" if dry else "Imported", report.took), ("Skipped", report.left)):
        click.echo(f"{title} {len(items)}:")
        print_table(_group_rows(items), indent="  ")
    if report.shared_keys:
        click.echo(
            "\nThese plugins use variables that their manifests do not declare. To share them, add to config.toml"
        )
        click.echo("[shared_keys]")
        for plugin, names in report.shared_keys.items():
            click.echo(f"{json.dumps(plugin, ensure_ascii=False)} = {json.dumps(names)}")


def _group_rows(items: Sequence[Item]) -> list[tuple[str, str]]:
    """Return a row per reason with all its items: an install has hundreds of variables."""
    names: dict[tuple[str, str], list[str]] = {}
    for item in items:
        names.setdefault((item.what.value, escape_unprintable(item.why)), []).append(escape_unprintable(item.name))
    return [(what, f"{', '.join(named)}{': ' if why else ''}{why}") for (what, why), named in names.items()]
