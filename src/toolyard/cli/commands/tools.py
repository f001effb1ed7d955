"""``toolyard tools``: list, show and export tools."""

import asyncio
import json
import re
from typing import Any

import click

from toolyard.cli.common_options import Command, CommandGroup, CommonOptions, common_options, print_json
from toolyard.cli.completion import complete_tools
from toolyard.cli.plugin_targets import warn_about_broken
from toolyard.cli.table import print_table
from toolyard.dialects.tool_specs import Format, export
from toolyard.errors import ToolyardError
from toolyard.hosts.open_yard import open_yard
from toolyard.protocol.envelope import Failure
from toolyard.protocol.tool import ToolSpec, spec_to_json


@click.group("tools", cls=CommandGroup, invoke_without_command=True, short_help="List, show and export tools.")
@common_options
def command(common: CommonOptions) -> None:
    """List, show and export tools."""
    if click.get_current_context().invoked_subcommand is None:
        _print_list(common)


@click.command("export", cls=Command)
@click.argument("names", metavar="[NAME]...", nargs=-1, shell_complete=complete_tools)
@click.option(
    "--format",
    "format_",
    type=click.Choice([one.value for one in Format]),
    default=Format.OPENAI.value,
    show_default=True,
    help="Format: tools of a request (openai, anthropic), a tools/list result (mcp), or prompt text (vcp).",
)
@common_options
def export_(common: CommonOptions, names: tuple[str, ...], format_: str) -> None:
    """Print the definitions of all or the named tools as JSON; with vcp as prompt text.

    \b
    toolyard tools export --format openai
    toolyard tools export Read Edit --format anthropic
    """
    target = Format(format_)
    definitions = [export(spec, target) for spec in asyncio.run(_find_specs(common, names))]
    if target is Format.VCP and not common.json:
        click.echo("\n\n---\n\n".join(str(one["text"]) for one in definitions))
    else:
        print_json({"tools": definitions} if target is Format.MCP else definitions)


command.add_command(export_)


@command.command("list")
@common_options
def list_(common: CommonOptions) -> None:
    """List tools with their first sentence."""
    _print_list(common)


@command.command("show")
@click.argument("name", shell_complete=complete_tools)
@common_options
def show(common: CommonOptions, name: str) -> None:
    """Show a tool: its description for models and its parameters."""
    spec = asyncio.run(_get_spec(common, name))
    if common.json:
        print_json(spec_to_json(spec))
        return
    click.echo(f"{click.style(spec.name, bold=True)}  ({spec.risk})\n\n{spec.description}\n\nParameters:")
    print_table([_parameter_row(name, schema) for name, schema in _properties(spec).items()], indent="  ")


def _print_list(common: CommonOptions) -> None:
    specs = asyncio.run(_list_specs(common))
    if common.json:
        print_json([spec_to_json(spec) for spec in specs])
    else:
        print_table([(spec.name, spec.risk.value, _first_sentence(spec)) for spec in specs])


async def _list_specs(common: CommonOptions) -> list[ToolSpec]:
    async with open_yard(common.config(), serves=False) as yard:
        warn_about_broken(common, yard.plugins)
        return [tool.spec for tool in yard.tools]


async def _get_spec(common: CommonOptions, name: str) -> ToolSpec:
    async with open_yard(common.config(), serves=False) as yard:
        try:
            return yard.tools.get(name).spec
        except Failure as failure:
            raise ToolyardError(f"{failure.message} {failure.hint}") from failure


def _first_sentence(spec: ToolSpec) -> str:
    text = " ".join(spec.description.strip().split("\n\n")[0].split())
    match = re.match(r".*?(?:[.!?](?=\s|$)|[。！？])", text)
    return match[0] if match else text


def _properties(spec: ToolSpec) -> dict[str, Any]:
    properties = spec.parameters.get("properties")
    return properties if isinstance(properties, dict) else {}


def _parameter_row(name: str, schema: dict[str, Any]) -> tuple[str, str, str]:
    default = f"[{json.dumps(schema['default'], ensure_ascii=False)}] " if "default" in schema else ""
    return name, str(schema.get("type", "")), f"{default}{schema.get('description', '')}"


async def _find_specs(common: CommonOptions, names: tuple[str, ...]) -> list[ToolSpec]:
    async with open_yard(common.config(), serves=False) as yard:
        try:
            return [yard.tools.get(name).spec for name in names] or [tool.spec for tool in yard.tools]
        except Failure as failure:
            raise ToolyardError(f"{failure.message} {failure.hint}") from failure
