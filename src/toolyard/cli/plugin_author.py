"""``toolyard plugin new``, ``lint`` and ``test``: for plugin authors."""

import asyncio
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from toolyard.cli.common_options import Command, CommonOptions, common_options
from toolyard.cli.completers import complete_folders, complete_plugin_folders
from toolyard.cli.output import print_json
from toolyard.cli.plugin_run import require_ready, run_plugin
from toolyard.cli.plugin_targets import find_plugin, format_problem, is_folder, load_config_with_plugins
from toolyard.errors import ToolyardError
from toolyard.plugins.archive_entries import escape_unprintable
from toolyard.plugins.cases import Case, collect_cases
from toolyard.plugins.lint import lint_plugin
from toolyard.plugins.plugin import Plugin, PluginProblem
from toolyard.plugins.review import problems_to_json
from toolyard.plugins.scaffold import Language, TextLanguage, build_files, write_files
from toolyard.protocol.manifest import Manifest, PluginType
from toolyard.protocol.tool import Risk
from toolyard.storage.memory import MemoryStore
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
        return [(plugin, lint_plugin(plugin, _list_remarks(yard, plugin), own_command)) for plugin in plugins]


def _list_remarks(yard: Yard, plugin: Plugin) -> tuple[str, ...]:
    return yard.plugins.host.list_remarks(plugin, plugin.manifest) if plugin.manifest else ()


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
