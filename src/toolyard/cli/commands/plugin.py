"""``toolyard plugin``: list, review, install and remove plugins.

The review shows everything that a plugin would run and a model would read, with nothing hidden.
"""

import asyncio
import shlex
import sys
from typing import NamedTuple

import click

from toolyard.cli.commands.audit import record_action
from toolyard.cli.commands.plugin_author import lint_, new, run, test
from toolyard.cli.common_options import CommandGroup, CommonOptions, common_options, json_text, print_json
from toolyard.cli.completion import complete_files, complete_plugins
from toolyard.cli.plugin_targets import find_plugin, format_problem
from toolyard.cli.table import print_table
from toolyard.dialects.tool_specs import to_function
from toolyard.errors import ToolyardError, UsageError
from toolyard.plugins.package.environment import DATA_FOLDER
from toolyard.plugins.package.install import install_plugin
from toolyard.plugins.package.plugin import Origin, Plugin, PluginState
from toolyard.plugins.package.review import PluginReview, describe_status, plugin_to_json, plugin_type
from toolyard.protocol.access import AccessChoice
from toolyard.protocol.manifests.manifest import PluginType
from toolyard.protocol.manifests.safe_text import escape_unprintable
from toolyard.protocol.manifests.spec import tool_spec
from toolyard.protocol.tool_text import write_plugin
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
        _print_review(reviewed, plugin)
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


def _print_review(reviewed: PluginReview, plugin: Plugin) -> None:
    review, manifest = reviewed.review, reviewed.manifest
    click.echo(f"{click.style(escape_unprintable(review.name), bold=True)}  ({review.state}, {plugin.origin})\n")
    _print_field("folder", str(review.folder))
    _print_field("runs", review.command_line)
    _print_field("as", shlex.join(review.argv))
    _print_field("in a shell", "YES: /bin/sh runs the whole line" if review.shell else "no")
    if manifest.type is PluginType.SYNCHRONOUS:
        _print_field("detached", _describe_detached(reviewed))
    _print_field("kind", f"{manifest.type}, risk {manifest.risk}, at most {manifest.timeout_s:g} s")
    if review.claims_read:
        standing = (
            "confirmed: models run it without asking" if review.read_confirmed else "not confirmed: models must ask"
        )
        _print_field("read-only", standing)
    _print_access(reviewed)
    print_table([("environment ", " ".join(map(escape_unprintable, review.environment)))])
    click.echo("\nApproved files, with their SHA-256:")
    for path, digest in sorted(review.files.items()):
        click.echo(f"  {escape_unprintable(digest)}  {escape_unprintable(path)}")
    click.echo(f"  {review.digest}  (all files, the manifest and the command)")
    _print_lines("Changed since the approval:", review.changed)
    _print_lines("Manifest, approved and current:", review.manifest_diff.splitlines())
    _print_lines("Description for models:", tool_spec(manifest).description.split("\n"))
    _print_lines("Parameters for models:", json_text(tool_spec(manifest).parameters).split("\n"))
    _print_lines("Function definition in a chat:", json_text(to_function(tool_spec(manifest))).split("\n"))
    _print_lines(f"{{{{VCP{review.name}}}}} in a prompt:", write_plugin(manifest).split("\n"))
    _print_lines("Warnings:", [format_problem(problem, review.folder) for problem in reviewed.problems])


def _describe_detached(reviewed: PluginReview) -> str:
    """Say whether the plugin may work on after its answer, and how long."""
    if not reviewed.review.detached:
        return "no: processes left after its answer are stopped"
    minutes = reviewed.manifest.detached_timeout_s / 60
    return f"YES: for at most {minutes:g} min after its answer, as a task that can be cancelled"


def _print_access(reviewed: PluginReview) -> None:
    """Print what it may reach as decided, and the other decisions."""
    others = []
    for option in reviewed.access:
        if option.choice is reviewed.review.access:
            _print_field("may reach", "; ".join(option.reach))
            missing = f" ({'; '.join(option.confinement.missing)})" if option.confinement.missing else ""
            _print_field("confinement", f"{option.confinement.level}{missing}")
        else:
            others.append(f"--access {option.choice}: {'; '.join(option.reach)}")
    for line in others:
        _print_field("or", line)


def _print_field(title: str, text: str) -> None:
    """Print a field, never truncated or wrapped."""
    click.echo(f"{title:<12}  {escape_unprintable(text)}")


def _print_lines(title: str, lines: "tuple[str, ...] | list[str]") -> None:
    if any(lines):
        click.echo(f"\n{title}")
        for line in lines:
            click.echo(f"  {escape_unprintable(line.replace(chr(9), '    '))}")
