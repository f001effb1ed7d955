"""The review of an MCP server: complete, with hidden characters escaped."""

import json
from collections.abc import Sequence

import click

from toolyard.plugins.archive_entries import escape_unprintable
from toolyard.plugins.mcp.declarations import ConfiguredServer
from toolyard.plugins.mcp.definition import ToolDefinition, ToolListing, tool_name
from toolyard.plugins.mcp.pins import Pin, describe_changes
from toolyard.protocol.json import JsonObject


def print_review(entry: ConfiguredServer, listing: ToolListing | None = None, pin: Pin | None = None) -> None:
    """Print the command; or, with a listing, the tools that are new or changed since the approval."""
    if listing is None:
        _print_command(entry)
        return
    same = pin is not None and pin.launch == entry.digest
    allowed = {one.name: one for one in pin.definitions} if pin is not None and same else {}
    for line in describe_changes(pin, entry, listing.tools) if pin is not None else ():
        click.echo(f"changed since the approval: {escape_unprintable(line)}")
    for tool in listing.tools:
        if allowed.get(tool.name) != tool:
            _print_tool(entry, tool)
    if unchanged := sum(allowed.get(tool.name) == tool for tool in listing.tools):
        click.echo(f"\n{unchanged} {'tool is' if unchanged == 1 else 'tools are'} unchanged since the approval.")
    for name, why in listing.left_out.items():
        click.echo(
            click.style(f"\n{escape_unprintable(name)} cannot be offered: {escape_unprintable(why)}", fg="yellow")
        )


def _print_tool(entry: ConfiguredServer, tool: ToolDefinition) -> None:
    click.echo(f"\n{click.style(tool_name(entry.name, tool.name), bold=True)}")
    for line in tool.description.splitlines() or ["(no description)"]:
        click.echo(f"  {escape_unprintable(line)}")
    click.echo(f"  takes: {escape_unprintable(_json(tool.schema))}")
    if tool.output_schema is not None:
        click.echo(f"  returns: {escape_unprintable(_json(tool.output_schema))}")
    for why, words in tool.injections:
        click.echo(click.style(f"  warning: {why}{f': {escape_unprintable(words)}' if words else ''}", fg="yellow"))


def _json(schema: JsonObject) -> str:
    return json.dumps(schema, ensure_ascii=False)


def _print_command(entry: ConfiguredServer) -> None:
    declared = entry.declared
    click.echo(f"{click.style(entry.name, bold=True)}  ({entry.file})")
    if declared.url:
        click.echo(f"URL:\n  {escape_unprintable(declared.url)}")
        click.echo(f"Headers: {escape_unprintable(', '.join(declared.headers)) or 'none'}")
    else:
        click.echo(f"Command:\n  {escape_unprintable(entry.command_line)}")
        click.echo(f"Working directory: {escape_unprintable(declared.cwd) or 'the project'}")
        click.echo(f"Environment: {escape_unprintable(', '.join(declared.env)) or 'none'}")
    if declared.variables:
        click.echo(f"From the environment of Toolyard: {', '.join(declared.variables)}")


def print_access(reach: Sequence[str]) -> None:
    """Print what a program may reach beyond the system and its data folder."""
    if reach:
        click.echo(f"May reach: {escape_unprintable('; '.join(reach))}")
