"""What an owner sees before an MCP server may run: all of it, nothing cut, hidden characters written out."""

import json
from collections.abc import Sequence

import click

from toolyard.plugins.archive_entries import shown
from toolyard.plugins.mcp.declarations import Entry
from toolyard.plugins.mcp.definition import Definition, tool_name
from toolyard.plugins.mcp.pins import Pin, differences
from toolyard.protocol.json import JsonObject


def print_review(entry: Entry, tools: Sequence[Definition] | None = None, pin: Pin | None = None) -> None:
    """First what would run; then, once it was started, what it offers."""
    if tools is None:
        _print_command(entry)
        return
    if pin is not None:
        for line in differences(pin, entry, tools):
            click.echo(f"since it was allowed: {shown(line)}")
    for tool in tools:
        click.echo(f"\n{click.style(tool_name(entry.name, tool.name), bold=True)}")
        for line in tool.description.splitlines() or ["(no description)"]:
            click.echo(f"  {shown(line)}")
        click.echo(f"  takes: {shown(_json(tool.schema))}")
        if tool.output_schema is not None:
            click.echo(f"  returns: {shown(_json(tool.output_schema))}")
        for why, words in tool.suspicious:
            click.echo(click.style(f"  warning: {why}{f': {shown(words)}' if words else ''}", fg="yellow"))


def _json(schema: JsonObject) -> str:
    return json.dumps(schema, ensure_ascii=False)


def _print_command(entry: Entry) -> None:
    declared = entry.declared
    click.echo(f"{click.style(entry.name, bold=True)}  ({entry.file})")
    if declared.url:
        click.echo(f"It reaches this address:\n  {shown(declared.url)}")
        click.echo(f"Headers: {shown(', '.join(declared.headers)) or 'none'}")
    else:
        click.echo(f"It runs this program:\n  {shown(entry.command_line)}")
        click.echo(f"Folder: {shown(declared.cwd) or 'the project'}")
        click.echo(f"Its own variables: {shown(', '.join(declared.env)) or 'none'}")
    if declared.variables:
        click.echo(f"Taken from the environment of Toolyard: {', '.join(declared.variables)}")
