"""``toolyard plugin``: list, review, install and remove plugins."""

import asyncio
import sys
from typing import NamedTuple

import click

from toolyard.cli.audit_record import record_action
from toolyard.cli.common_options import CommandGroup, CommonOptions, common_options
from toolyard.cli.completers import complete_files, complete_plugins
from toolyard.cli.output import print_json
from toolyard.cli.plugin_author import lint_, new, test
from toolyard.cli.plugin_review import print_review
from toolyard.cli.plugin_run import run
from toolyard.cli.plugin_targets import find_plugin, format_problem
from toolyard.cli.table import print_table
from toolyard.errors import ToolyardError, UsageError
from toolyard.plugins.archive_entries import escape_unprintable
from toolyard.plugins.environment import DATA_FOLDER
from toolyard.plugins.install import install_plugin
from toolyard.plugins.plugin import Origin, Plugin, PluginState
from toolyard.plugins.review import PluginReview, describe_status, plugin_to_json, plugin_type
from toolyard.protocol.access import AccessChoice
from toolyard.yard.plugin_source import PluginSource
from toolyard.yard.yard import Yard


@click.group(
    "plugin", cls=CommandGroup, invoke_without_command=True, short_help="Write, review, install and list plugins."
)
@common_options
def command(common: CommonOptions) -> None:
    """Write, review, install and list plugins."""
    if click.get_current_context().invoked_subcommand is None:
        asyncio.run(_list(common))


for author_command in (new, lint_, test, run):
    command.add_command(author_command)


@command.command("list")
@common_options
def list_(common: CommonOptions) -> None:
    """List plugins: name, type, origin, state and problems."""
    asyncio.run(_list(common))


@command.command("allow")
@click.argument("names", metavar="NAME...", nargs=-1, required=True, shell_complete=complete_plugins)
@click.option("--yes", is_flag=True, help="Approve without asking, for scripts.")
@click.option("--detached/--no-detached", default=None, help="Whether it may keep working after its answer, as a task.")
@click.option("--confirm-read", is_flag=True, help="Trust its claim to be read-only: models run it without asking.")
@click.option(
    "--access",
    type=click.Choice([choice.value for choice in AccessChoice]),
    help="What it may reach; by default what it declares.",
)
@common_options
def allow(
    common: CommonOptions,
    names: tuple[str, ...],
    yes: bool,
    detached: bool | None,
    confirm_read: bool,
    access: str | None,
) -> None:
    """Review plugins and approve these exact versions.

    Any later change needs another review.
    """
    decision = _Decision(
        yes=yes,
        detached=detached,
        confirm_read=confirm_read,
        access=None if access is None else AccessChoice(access),
    )
    asyncio.run(_allow(common, names, decision))


@command.command("enable")
@click.argument("name", shell_complete=complete_plugins)
@common_options
def enable(common: CommonOptions, name: str) -> None:
    """Enable a disabled plugin."""
    asyncio.run(_set_enabled(common, name, on=True))


@command.command("disable")
@click.argument("name", shell_complete=complete_plugins)
@common_options
def disable(common: CommonOptions, name: str) -> None:
    """Disable a plugin; its files are not touched."""
    asyncio.run(_set_enabled(common, name, on=False))


@command.command("install")
@click.argument("source", shell_complete=complete_files)
@click.option(
    "--host", "hosts", metavar="HOST", multiple=True, help="Additional host that git URLs may use; repeatable."
)
@common_options
def install(common: CommonOptions, source: str, hosts: tuple[str, ...]) -> None:
    """Install a plugin from a folder, a zip or tar archive, or https://HOST/OWNER/NAME[#COMMIT].

    Nothing of it is run. It must be reviewed before it can run.
    """
    asyncio.run(_install(common, source, hosts))


@command.command("remove")
@click.argument("name", shell_complete=complete_plugins)
@common_options
def remove(common: CommonOptions, name: str) -> None:
    """Uninstall a plugin; its files are moved aside, and its data is kept."""
    asyncio.run(_remove(common, name))


async def _list(common: CommonOptions) -> None:
    async with Yard(common.config()) as yard:
        plugins = sorted(
            yard.plugins.plugins.all, key=lambda plugin: plugin.name.lower()
        )  # stable: those in use come first
    if common.json:
        print_json([plugin_to_json(plugin) for plugin in plugins])
        return
    print_table(
        [
            (
                escape_unprintable(p.name),
                plugin_type(p),
                p.origin.value,
                p.state.value,
                escape_unprintable(describe_status(p)),
            )
            for p in plugins
        ]
    )
    for plugin in plugins:
        for problem in plugin.problems:
            if plugin.state is not PluginState.READY or not problem.warning:
                kind = "warning" if problem.warning else "error"
                click.echo(f"{kind}: {escape_unprintable(format_problem(problem, plugin.folder))}")


class _Decision(NamedTuple):
    """The decisions that the options of ``allow`` state; None: nothing beyond the review."""

    yes: bool
    detached: bool | None
    confirm_read: bool
    access: AccessChoice | None

    @property
    def is_empty(self) -> bool:
        return not self.yes and self.detached is None and self.access is None and not self.confirm_read


async def _allow(common: CommonOptions, names: tuple[str, ...], decision: _Decision) -> None:
    async with Yard(common.config()) as yard:
        reviews = [_review(yard, name, decision) for name in dict.fromkeys(names)]
        if common.json:
            shown = [{**review.to_json(), "allowed": decision.yes or plugin.may_run} for plugin, review in reviews]
            print_json(shown[0] if len(names) == 1 else shown)
        refused = [plugin.name for plugin, review in reviews if not await _ask(yard, common, plugin, review, decision)]
    if refused:
        raise ToolyardError(f"not approved: {', '.join(refused)}")


def _review(yard: Yard, name: str, decision: _Decision) -> tuple[Plugin, PluginReview]:
    """Return a plugin and its review with what was decided; raises ToolyardError before anything is approved."""
    plugin = find_plugin(yard.plugins, name, waits_as=(PluginState.NEEDS_REVIEW, PluginState.CHANGED))
    review = yard.plugins.review(plugin).with_detached(detached=decision.detached).with_access(decision.access)
    if decision.confirm_read and not review.review.claims_read:
        raise UsageError(f"{plugin.name} does not claim to be read-only: its risk is {review.manifest.risk}")
    return plugin, review


async def _ask(yard: Yard, common: CommonOptions, plugin: Plugin, reviewed: PluginReview, decision: _Decision) -> bool:
    """Show a review, ask unless it is decided, and approve; return False when the owner does not want it."""
    asks = sys.stdin.isatty() and not common.json
    if not common.json and (not common.quiet or asks):
        print_review(reviewed, plugin)
    is_shown = plugin.fingerprint is None or plugin.fingerprint.publish_keys == plugin.publish_keys
    if plugin.may_run and is_shown and decision.is_empty:
        click.echo(f"{plugin.name} is approved as it is.", err=True)
        return True
    if not decision.yes and not asks:
        raise UsageError(f"{plugin.name} is not approved: no terminal to ask on. Pass --yes to approve it as shown")
    if not decision.yes and not click.confirm(f"\nApprove this exact version of {plugin.name}?", err=True):
        return False
    confirm_read = decision.confirm_read
    if not decision.yes and not confirm_read and reviewed.review.claims_read:
        confirm_read = click.confirm("It claims to be read-only. Let models run it without asking?", err=True)
    source, review = yard.plugins, reviewed.review
    source.allow(reviewed, confirm_read=confirm_read)
    detail = {"fingerprint": review.digest, "folder": str(plugin.folder), "access": review.access.value}
    await record_action(yard, "plugin.allowed", plugin=plugin.name, target=plugin.name, detail=detail)
    source.plugins.refresh()
    if not common.json:
        _print_state(common, source, plugin)
    return True


async def _set_enabled(common: CommonOptions, name: str, *, on: bool) -> None:
    async with Yard(common.config()) as yard:
        plugins = yard.plugins.plugins
        plugin = find_plugin(yard.plugins, name, waits_as=(PluginState.DISABLED,) if on else ())
        (plugins.enable if on else plugins.disable)(plugin)
        action = "plugin.enabled" if on else "plugin.disabled"
        await record_action(yard, action, plugin=plugin.name, target=plugin.name)
        plugins.refresh()
        now = next((p for p in plugins.all if p.folder == plugin.folder), plugin)
        if on and now.state is PluginState.DISABLED:
            raise ToolyardError(f"{plugin.name} is still disabled: {now.reason}")
        _print_state(common, yard.plugins, plugin)


async def _install(common: CommonOptions, address: str, hosts: tuple[str, ...]) -> None:
    config = common.config()
    done = await asyncio.to_thread(
        install_plugin, address, config.home, config.environ, hosts=hosts, own_command=config.own_command
    )
    async with Yard(config) as yard:
        plugin = find_plugin(yard.plugins, str(done.folder))
        detail = {"source": done.source}
        await record_action(yard, "plugin.installed", plugin=plugin.name, target=plugin.name, detail=detail)
    if common.json:
        print_json(
            {**plugin_to_json(plugin), "source": done.source, "proof": done.proof, "left_out": list(done.left_out)}
        )
        return
    if not common.quiet:
        click.echo(f"Installed {done.name} in {done.folder}.")
        if done.proof:
            click.echo(f"Source: {done.proof}.")
        if done.left_out:
            click.echo(f"Dependencies were not copied; install them there: {', '.join(done.left_out)}.")
        click.echo(f"{plugin.state}: {plugin.reason or 'ready to run'}")


async def _remove(common: CommonOptions, name: str) -> None:
    config = common.config()
    async with Yard(config) as yard:
        source = yard.plugins
        plugin = next(
            (p for p in source.plugins.all if p.name == name and p.origin is Origin.HOME), None
        ) or find_plugin(source, name)
        moved_to = source.remove(plugin)
        await record_action(yard, "plugin.removed", plugin=plugin.name, target=plugin.name)
    if common.json:
        print_json({"name": plugin.name, "kept": str(moved_to) if moved_to else None})
    elif not common.quiet:
        where = f"Its files are in {moved_to}" if moved_to else f"Only the link to {plugin.folder} was removed"
        click.echo(f"Removed {plugin.name}. {where}; its data stays in {config.home / DATA_FOLDER}.")


def _print_state(common: CommonOptions, source: PluginSource, before: Plugin) -> None:
    plugin = next((p for p in source.plugins.all if p.folder == before.folder), before)
    if common.json:
        print_json(plugin_to_json(plugin))
    elif not common.quiet:
        click.echo(f"{plugin.name} is {plugin.state}{': ' + plugin.reason if plugin.reason else ''}")
