"""``toolyard plugin run``: run a plugin once and show all its output."""

import asyncio
import shlex
import sys
from dataclasses import dataclass, field
from typing import Any

import click

from toolyard.cli.call import parse_json_arguments
from toolyard.cli.common_options import Command, CommonOptions, common_options
from toolyard.cli.completers import complete_plugin_folders
from toolyard.cli.local_call import parse_tool_pairs
from toolyard.cli.output import json_text, print_json
from toolyard.cli.plugin_targets import find_plugin, load_config_with_plugins
from toolyard.cli.stop_signals import StopSignals
from toolyard.cli.task_ids import list_task_ids
from toolyard.cli.task_wait import wait_for_tasks
from toolyard.engine.clock import SystemClock
from toolyard.errors import ToolyardError
from toolyard.plugins.archive_entries import escape_unprintable
from toolyard.plugins.output_recorder import RecordedChild, RecordingStarter, record_output
from toolyard.plugins.plugin import Plugin
from toolyard.plugins.static_plugins import StaticValues
from toolyard.protocol.call import Origin
from toolyard.protocol.envelope import Envelope
from toolyard.protocol.failure import Failure
from toolyard.protocol.json import JsonObject
from toolyard.protocol.manifest import Manifest, PluginType
from toolyard.storage.memory import MemoryStore
from toolyard.yard.yard import Yard


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginRun:
    """The result of one run of a plugin."""

    failure: str = ""  # why there is no value
    envelope: Envelope | None = None  # None for a static plugin
    value: str = ""  # of a static plugin
    children: tuple[RecordedChild, ...] = field(default=())

    @property
    def is_failure(self) -> bool:
        return bool(self.failure) or (self.envelope is not None and self.envelope.error is not None)

    def to_json(self) -> dict[str, Any]:
        child = self.children[-1] if self.children else None
        made: dict[str, Any] = {"envelope": self.envelope.to_dict()} if self.envelope else {"value": self.value}
        return {
            "argv": list(child.launch.argv) if child else [],
            "stdout": child.out.text if child else "",
            "stderr": child.err.text if child else "",
            "exit_code": child.code if child else None,
            **made,
            **({"failure": self.failure} if self.failure else {}),
        }


@click.command("run", cls=Command)
@click.argument("folder", shell_complete=complete_plugin_folders)
@click.argument("pairs", metavar="[KEY=VALUE]...", nargs=-1)
@click.option("--args", "source", metavar="JSON|@FILE|-", help="Arguments as a JSON object, from a file or from stdin.")
@common_options
def run(common: CommonOptions, folder: str, pairs: tuple[str, ...], source: str | None) -> None:
    """Run the plugin in FOLDER once and show its output and the resulting envelope.

    It needs no review: running your own plugin is consent. Its command line is printed on stderr. A negative exit code
    is the number of the signal that ended it.
    """
    written = parse_json_arguments(source) if source is not None else {}
    made = asyncio.run(_run(common, folder, written, pairs))
    if common.json:
        print_json(made.to_json())
    else:
        _print_run(made)
    sys.exit(1 if made.is_failure else 0)


async def _run(common: CommonOptions, folder: str, written: JsonObject, pairs: tuple[str, ...]) -> PluginRun:
    word = folder if "/" in folder else f"./{folder}"
    async with Yard(load_config_with_plugins(common, [word], trusts=True)) as yard:
        plugin, manifest = require_ready(yard, word)
        if not common.quiet and plugin.command is not None:
            click.echo(
                f"$ cd {shlex.quote(str(plugin.folder))} && {escape_unprintable(shlex.join(plugin.command.argv))}",
                err=True,
            )
        arguments = {**written, **parse_tool_pairs(yard, plugin.name, pairs)}
        return await run_plugin(yard, manifest, arguments, quiet=common.quiet)


def require_ready(yard: Yard, word: str) -> tuple[Plugin, Manifest]:
    """Return a plugin that can run. Raises ToolyardError with the reason when it cannot."""
    plugin = find_plugin(yard.plugins, word)
    if not plugin.may_run or plugin.manifest is None:
        raise ToolyardError(f"{plugin.name} cannot run: {plugin.reason}")
    return plugin, plugin.manifest


async def run_plugin(yard: Yard, manifest: Manifest, arguments: JsonObject, *, quiet: bool) -> PluginRun:
    """Run a plugin once, as a call would; an asynchronous one until its task has ended."""
    witness = record_output(yard.plugins.host)
    if manifest.type is PluginType.STATIC:
        return await _run_static(yard, manifest, witness)
    call = yard.request(manifest.name, arguments, caller="cli:plugin", origin=Origin.CLI)
    outcome = await yard.settle(call)
    tasks = list_task_ids(outcome.envelope)
    if tasks:
        outcome = await wait_for_tasks(yard, outcome, tasks, StopSignals(), quiet=quiet)
    return PluginRun(envelope=outcome.envelope, children=tuple(witness.children))


async def _run_static(yard: Yard, manifest: Manifest, witness: RecordingStarter) -> PluginRun:
    """Run a static plugin as the host would, without storing its value."""
    host = yard.plugins.host
    values = StaticValues(host, MemoryStore(), SystemClock().now)
    value, failure = "", ""
    try:
        value = await values.update(host.require_ready(manifest.name)[0], manifest)
    except Failure as error:
        failure = error.message
    return PluginRun(failure=failure, value=value, children=tuple(witness.children))


def _print_run(made: PluginRun) -> None:
    for child in made.children:
        _print_part("stdout", child.out.text, child.out.size)
        _print_part("stderr", child.err.text, child.err.size)
        click.echo(f"── exit code {'none (still running)' if child.code is None else child.code}")
    if made.envelope is not None:
        click.echo(f"── envelope\n{json_text(made.envelope.to_dict())}")
    elif made.failure:
        click.echo(f"── no value: {made.failure}")
    else:
        click.echo(f"── placeholder values\n{made.value}")


def _print_part(title: str, text: str, size: int) -> None:
    click.echo(f"── {title} ({size} bytes)")
    if text:
        click.echo("\n".join(escape_unprintable(line) for line in text.rstrip("\n").split("\n")))
