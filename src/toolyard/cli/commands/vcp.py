"""``toolyard vcp``: a VCPToolBox installation that is used in place: what of it works here, and the one decision on it.

The decision covers every plugin as it is now, by its fingerprint, with the access ``installation``. Decisions on single
plugins, such as ``toolyard plugin allow NAME --access strict``, stay as they are.
"""

import asyncio
import sys
from collections import Counter
from collections.abc import Sequence

import click

from toolyard.cli.commands.audit import record_action
from toolyard.cli.common_options import CommandGroup, CommonOptions, common_options, complete_folders, print_json
from toolyard.cli.records import format_age
from toolyard.cli.table import print_rows, print_table
from toolyard.config import Config
from toolyard.errors import ServerUnreachable, ToolyardError, UsageError
from toolyard.plugins.package.plugin import Origin
from toolyard.protocol.manifests.safe_text import escape_unprintable
from toolyard.vcp.check import Finding, Part, Verdict
from toolyard.vcp.dependencies import install_needs
from toolyard.vcp.installation import read_installation
from toolyard.web.server.running_server import find_home_server
from toolyard.yard.vcp_review import InstallationReview, allow_installation, review_installation
from toolyard.yard.yard import Yard


@click.group("vcp", cls=CommandGroup, short_help="Use a VCPToolBox installation in place.")
@common_options
def command(common: CommonOptions) -> None:
    """Use a VCPToolBox installation in place: 'toolyard serve --vcp DIR' serves it."""


@command.command("allow")
@click.argument("folder", metavar="DIR", required=False, shell_complete=complete_folders)
@click.option("--yes", is_flag=True, help="Approve without asking, for scripts.")
@common_options
def allow(common: CommonOptions, folder: str | None, yes: bool) -> None:
    """Review the plugins of an installation together and approve these exact versions.

    A plugin that changes needs another review. 'toolyard plugin allow NAME --access' gives one of them less or more.
    """
    asyncio.run(_allow(common, folder, yes=yes))


@command.command("check")
@click.argument("folder", metavar="DIR", required=False, shell_complete=complete_folders)
@common_options
def check(common: CommonOptions, folder: str | None) -> None:
    """Show what of an installation is taken, adapted, left, or needs something. Nothing of it is run."""
    asyncio.run(_check(common, folder))


@command.command("install")
@click.argument("folder", metavar="DIR", required=False, shell_complete=complete_folders)
@click.option("--yes", is_flag=True, help="Install without asking, for scripts.")
@common_options
def install(common: CommonOptions, folder: str | None, yes: bool) -> None:
    """Install the npm and Python packages that plugins need and do not find, in the home.

    Nothing is written into the installation. Their installers may run code of the packages.
    """
    asyncio.run(_install(common, folder, yes=yes))


@command.command("nodes")
@click.option("--allow", "allowed", metavar="NAME", help="First allow the tools of this node as they are now.")
@common_options
def nodes(common: CommonOptions, allowed: str | None) -> None:
    """List the nodes that are connected to the running server, with their tools.

    With the setting node_review, a node waits until it is allowed; one whose tools change waits again.
    """
    server = find_home_server(common.config())
    if server is None:
        raise ServerUnreachable(f"no server runs on this home: start one with '{common.own_command.format('serve')}'")
    listed = server.list_nodes()
    if allowed is not None:
        node = next((one for one in listed["data"] if allowed in (one["name"], one["id"])), None)
        if node is None:
            names = ", ".join(one["name"] for one in listed["data"]) or "none"
            raise UsageError(f"no node '{allowed}' is connected; connected: {names}")
        server.allow_node(node["id"])
        listed = server.list_nodes()
    if common.json:
        print_json(listed)
    elif not listed["is_open"]:
        click.echo("Nodes cannot connect: set vcp, or vcp_channels = true, in config.toml.")
    elif not listed["data"]:
        click.echo("No node is connected.")
    else:
        rows = [
            (
                escape_unprintable(one["name"]),
                "allowed" if one["allowed"] else "waiting",
                one["address"],
                format_age(one["connected"]),
                escape_unprintable(", ".join(one["tools"])),
            )
            for one in listed["data"]
        ]
        print_rows(("NODE", "STATE", "ADDRESS", "SINCE", "TOOLS"), rows)


def load_installation_config(common: CommonOptions, folder: str | None) -> Config:
    """Load the settings with an installation: the given one, else that of the server or the setting.

    Raises UsageError.
    """
    config = common._replace(vcp=folder or common.vcp).config()
    if config.vcp is None:
        raise UsageError("name the folder of the installation, or set 'vcp' in config.toml")
    read_installation(config.vcp)
    return config


async def _review(yard: Yard) -> InstallationReview:
    review = await asyncio.to_thread(review_installation, yard)
    if review is None:
        raise UsageError("no installation is used in place")
    return review


async def _check(common: CommonOptions, folder: str | None) -> None:
    async with Yard(load_installation_config(common, folder)) as yard:
        review = await _review(yard)
        root, command = str(review.root), yard.config.own_command.for_home
    if common.json:
        print_json({"installation": root, "findings": [one.to_json() for one in review.findings]})
        return
    for part in Part:
        own = [one for one in review.findings if one.part is part]
        if own:
            counts = Counter(one.verdict for one in own)
            click.echo(
                f"\n{part} ({', '.join(f'{counts[verdict]} {verdict}' for verdict in Verdict if counts[verdict])})"
            )
            print_table(_group_rows(own), indent="  ")
    if waiting := len(review.waiting):
        click.echo(f"\n{waiting} plugins wait for your decision: {command.format('vcp allow', root)}")
    if review.needs:
        click.echo(f"To install what can be installed: {command.format('vcp install', root)}")


def _group_rows(findings: Sequence[Finding]) -> list[tuple[str, str]]:
    """Return a row for each verdict and reason, with all names."""
    names: dict[tuple[Verdict, str], list[str]] = {}
    for one in sorted(findings, key=lambda one: list(Verdict).index(one.verdict)):
        names.setdefault((one.verdict, str(one.why)), []).append(one.name)
    return [
        (verdict.value, escape_unprintable(f"{', '.join(named)}{': ' if why else ''}{why}"))
        for (verdict, why), named in names.items()
    ]


async def _install(common: CommonOptions, folder: str | None, *, yes: bool) -> None:
    async with Yard(load_installation_config(common, folder)) as yard:
        needs = (await _review(yard)).needs
        if needs and not common.quiet and not common.json:
            listed = ", ".join(f"{need.package} ({need.kind})" for need in needs)
            click.echo(f"To install in {yard.config.home}: {listed}")
        if needs and not yes:
            if not sys.stdin.isatty() or common.json:
                raise UsageError("nothing is installed: no terminal to ask on. Pass --yes to install what is shown")
            if not click.confirm("Install them?", err=True):
                raise ToolyardError("nothing was installed")
        problems = await asyncio.to_thread(install_needs, needs, yard.config.home, yard.plugins.find_python())
        left = (await _review(yard)).needs
    done = len(needs) - len(left)
    if common.json:
        print_json({"installed": done, "left": [need.package for need in left], "problems": list(problems)})
    else:
        for problem in problems:
            click.echo(escape_unprintable(problem), err=True)
        click.echo(f"Installed {done} of {len(needs)} packages.")
    if left:
        raise ToolyardError(f"not installed: {', '.join(need.package for need in left)}")


async def _allow(common: CommonOptions, folder: str | None, *, yes: bool) -> None:
    async with Yard(load_installation_config(common, folder)) as yard:
        review = await _review(yard)
        asks, total = sys.stdin.isatty() and not common.json, len(review.waiting)
        if review.waiting and not common.json and (not common.quiet or asks):
            _print_review(review, yard.config.own_command.format("plugin allow NAME"))
        if review.waiting and not yes and not asks:
            raise UsageError("nothing is approved: no terminal to ask on. Pass --yes to approve it as shown")
        if review.waiting and not yes and not click.confirm(f"\nApprove these {total} plugins?", err=True):
            raise ToolyardError("nothing was approved")
        await asyncio.to_thread(allow_installation, yard, review)
        for one in review.waiting:
            detail = {"fingerprint": one.review.digest, "folder": str(one.review.folder), "access": one.review.access}
            await record_action(yard, "plugin.allowed", plugin=one.review.name, target=one.review.name, detail=detail)
        after = [plugin for plugin in yard.plugins.plugins.all if plugin.origin is Origin.VCP]
    if common.json:
        states = {plugin.name: plugin.state.value for plugin in after}
        print_json({"allowed": [one.review.name for one in review.waiting], "states": states})
    elif not common.quiet:
        ready = sum(plugin.may_run for plugin in after)
        click.echo(f"Approved {total} plugins; {ready} of {len(after)} may run.")


def _print_review(review: InstallationReview, command: str) -> None:
    """Print what the plugins that wait for a decision may reach together, and what each has of it."""
    total = len(review.waiting)
    click.echo(f"{total} of {len(review.plugins)} plugins wait for your decision. Together they may reach:\n")
    print_table([(_describe_names(names, total), escape_unprintable(line)) for line, names in review.reach.items()])
    click.echo("\nSettings of the installation that each gets:\n")
    rows = [(one.review.name, ", ".join(one.from_host)) for one in review.waiting if one.from_host]
    if review.process_secrets:
        rows.append(("VCPToolBox's process", ", ".join(review.process_secrets)))
    print_table([(escape_unprintable(name), escape_unprintable(keys)) for name, keys in rows])
    changed = [(one.review.name, "; ".join(one.review.changed)) for one in review.waiting if one.review.changed]
    if changed:
        click.echo("\nChanged since they were approved:\n")
        print_table([(escape_unprintable(name), escape_unprintable(lines)) for name, lines in changed])
    click.echo(f"\nTo see one of them in full: {command}")


def _describe_names(names: Sequence[str], total: int) -> str:
    if len(names) == total:
        return "all"
    return escape_unprintable(", ".join(names)) if len(names) <= 3 else f"{len(names)} plugins"
