"""The review of an MCP server: complete, with hidden characters escaped."""

import json

import click

from toolyard.plugins.archive_entries import shown
from toolyard.plugins.mcp.declarations import Entry
from toolyard.plugins.mcp.definition import Definition, Listing, tool_name
from toolyard.plugins.mcp.pins import Pin, differences
from toolyard.protocol.json import JsonObject


def print_review(entry: Entry, listing: Listing | None = None, pin: Pin | None = None) -> None:
    """Print the command; or, with a listing, the tools that are new or changed since the approval."""
    if listing is None:
        _print_command(entry)
        return
    same = pin is not None and pin.launch == entry.digest
    allowed = {one.name: one for one in pin.definitions} if pin is not None and same else {}
    for line in differences(pin, entry, listing.tools) if pin is not None else ():
        click.echo(f"since it was allowed: {shown(line)}")
    for tool in listing.tools:
        if allowed.get(tool.name) != tool:
            _print_tool(entry, tool)
    if unchanged := sum(allowed.get(tool.name) == tool for tool in listing.tools):
        click.echo(f"\n{unchanged} {'tool is' if unchanged == 1 else 'tools are'} as allowed before.")
    for name, why in listing.left_out.items():
        click.echo(click.style(f"\n{shown(name)} cannot be offered: {shown(why)}", fg="yellow"))


def _print_tool(entry: Entry, tool: Definition) -> None:
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
