"""``toolyard plugin new``, ``lint``, ``test`` and ``run``: for plugin authors.

``run`` runs a plugin once and shows all its output; ``test`` runs its examples and cases in the same way.
"""

import asyncio
import shlex
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from toolyard.cli.commands.call import StopSignals, parse_json_arguments
from toolyard.cli.common_options import Command, CommonOptions, common_options, complete_folders, json_text, print_json
from toolyard.cli.completion import complete_plugin_folders
from toolyard.cli.local_call import list_task_ids, parse_tool_pairs, wait_for_tasks
from toolyard.cli.plugin_targets import find_plugin, format_problem, is_folder, load_config_with_plugins
from toolyard.engine.clock import SystemClock
from toolyard.errors import ToolyardError
from toolyard.plugins.authoring.cases import Case, collect_cases
from toolyard.plugins.authoring.lint import lint_plugin
from toolyard.plugins.authoring.output_recorder import RecordedChild, RecordingStarter, record_output
from toolyard.plugins.authoring.scaffold import Language, TextLanguage, build_files, write_files
from toolyard.plugins.long_work.static_plugins import StaticValues
from toolyard.plugins.package.plugin import Plugin, PluginProblem
from toolyard.plugins.package.review import problems_to_json
from toolyard.protocol.envelope import Envelope, Failure
from toolyard.protocol.json import JsonObject
from toolyard.protocol.manifests.manifest import Manifest, PluginType
from toolyard.protocol.manifests.safe_text import escape_unprintable
from toolyard.protocol.tool import Origin, Risk
from toolyard.storage.memory_store import MemoryStore
from toolyard.yard.yard import Yard

_MARKS = {"passed": ("✓", "green"), "skipped": ("-", "yellow"), "failed": ("✗", "red")}


@click.command("new", cls=Command)
@click.argument("name")
@click.option("--language", type=click.Choice([own.value for own in Language]), default="python", show_default=True,
              help="Programming language.")  # fmt: skip
@click.option(
    "--async",
    "asynchronous",
    is_flag=True,
    help="An asynchronous plugin, which works in the background and calls back.",
)
@click.option("--lang", type=click.Choice([own.value for own in TextLanguage]), default="en", show_default=True,
              help="Language of its texts.")  # fmt: skip
@click.option(
    "--folder", metavar="DIR", default=".", shell_complete=complete_folders, help="Parent folder.  [default: .]"
)
@common_options
def new(common: CommonOptions, name: str, language: str, asynchronous: bool, lang: str, folder: str) -> None:
    """Create a small working plugin, with examples and test cases."""
    files = build_files(name, language=Language(language), asynchronous=asynchronous, tongue=TextLanguage(lang))
    place = Path(folder) / name
    write_files(place, files)
    if common.json:
        print_json({"name": name, "folder": str(place), "files": list(files)})
    elif not common.quiet:
        click.echo(f"Created {place} with {', '.join(files)}.")
        click.echo(f"Next: {common.own_command.format('plugin test', str(place))}")


@click.command("lint", cls=Command)
@click.argument("targets", metavar="FOLDER|NAME...", nargs=-1, required=True, shell_complete=complete_plugin_folders)
@common_options
def lint_(common: CommonOptions, targets: tuple[str, ...]) -> None:
    """Check plugins without running them. Exits with 1 on errors, not on warnings."""
    results = asyncio.run(_lint(common, targets))
    errors = sum(not problem.warning for _, problems in results for problem in problems)
    if common.json:
        print_json(
            [
                {"name": p.name, "folder": str(p.folder), "problems": problems_to_json(problems)}
                for p, problems in results
            ]
        )
    else:
        for plugin, problems in results:
            for problem in problems:
                kind = click.style("warning", fg="yellow") if problem.warning else click.style("error", fg="red")
                click.echo(f"{kind}: {escape_unprintable(format_problem(problem, plugin.folder))}")
            if not problems and not common.quiet:
                click.echo(f"{plugin.name}: no problems.")
    sys.exit(1 if errors else 0)


@click.command("test", cls=Command)
@click.argument("target", metavar="FOLDER|NAME", shell_complete=complete_plugin_folders)
@click.option("--network", is_flag=True, help="Also run a plugin with the risk 'network'.")
@common_options
def test(common: CommonOptions, target: str, network: bool) -> None:
    """Run the examples in a plugin's manifest and its cases.json. Exits with 1 if one fails.

    A plugin given by its folder needs no review: testing your own plugin is consent.
    """
    results = asyncio.run(_test(common, target, network=network))
    if common.json:
        print_json([result.to_json() for result in results])
    elif not common.quiet:
        counted = ", ".join(f"{sum(r.outcome == outcome for r in results)} {outcome}" for outcome in _MARKS)
        click.echo(counted)
    sys.exit(1 if any(result.outcome == "failed" for result in results) else 0)


@dataclass(frozen=True, slots=True)
class _CaseResult:
    name: str
    outcome: str  # passed, skipped or failed
    why: str = ""

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "outcome": self.outcome, "why": self.why}

    def print(self, common: CommonOptions) -> "_CaseResult":
        if not common.json and (self.outcome == "failed" or not common.quiet):
            mark, colour = _MARKS[self.outcome]
            why = f"\n    {escape_unprintable(self.why)}" if self.why else ""
            click.echo(f"{click.style(mark, fg=colour)} {escape_unprintable(self.name)}{why}")
        return self


async def _lint(common: CommonOptions, targets: tuple[str, ...]) -> list[tuple[Plugin, tuple[PluginProblem, ...]]]:
    async with Yard(load_config_with_plugins(common, targets)) as yard:
        plugins = [find_plugin(yard.plugins, target) for target in targets]
        own_command = yard.config.own_command
        return [
            (plugin, lint_plugin(plugin, yard.plugins.host.list_remarks(plugin), own_command)) for plugin in plugins
        ]


async def _test(common: CommonOptions, target: str, *, network: bool) -> list[_CaseResult]:
    config = load_config_with_plugins(common, [target], trusts=is_folder(target))
    async with Yard(config, store=MemoryStore()) as yard:  # a test is no call: it is in no journal and no statistics
        plugin, manifest = require_ready(yard, target)
        if manifest.risk is Risk.NETWORK and not network:
            why = "its risk is network: pass --network to run it"
            return [_CaseResult(manifest.name, "skipped", why).print(common)]
        return [result.print(common) async for result in _run_cases(yard, plugin, manifest)]


async def _run_cases(yard: Yard, plugin: Plugin, manifest: Manifest) -> AsyncIterator[_CaseResult]:
    if manifest.type is PluginType.STATIC:
        made = await run_plugin(yard, manifest, {}, quiet=True)
        yield _CaseResult(f"{manifest.name}: value", "failed" if made.is_failure else "passed", made.failure)
        return
    cases, problems = collect_cases(manifest, plugin.folder)
    for problem in problems:
        yield _CaseResult(str(problem), "failed")
    if not cases:
        raise ToolyardError(f"{manifest.name} has no tests: add an example to a command, or write cases.json")
    for case in cases:
        yield await _run_case(yard, manifest, case)


async def _run_case(yard: Yard, manifest: Manifest, case: Case) -> _CaseResult:
    if case.skipped:
        return _CaseResult(case.name, "skipped", case.skipped)
    made = await run_plugin(yard, manifest, case.arguments, quiet=True)
    why = case.find_failure(made.envelope) if made.envelope else made.failure
    return _CaseResult(case.name, "failed" if why else "passed", why)


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
    call = yard.calls.request(manifest.name, arguments, caller="cli:plugin", origin=Origin.CLI)
    outcome = await yard.calls.settle(call)
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
