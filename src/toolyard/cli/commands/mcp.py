"""``toolyard mcp``: Toolyard as an MCP server, and the MCP servers that Toolyard uses.

The review of a server is complete, with hidden characters escaped.
"""

import asyncio
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import click

from toolyard.cli.commands.audit import record_action
from toolyard.cli.commands.call import choose_server, run_in_daemon_thread
from toolyard.cli.common_options import CommandGroup, CommonOptions, common_options, print_json
from toolyard.cli.table import print_table
from toolyard.dialects.mcp_config import KEY, ServerDeclaration, parse_servers
from toolyard.engine.clock import SystemClock
from toolyard.errors import ServerUnreachable, ToolyardError, UsageError
from toolyard.plugins.mcp.declarations import ConfiguredServer, Scope
from toolyard.plugins.mcp.definition import ToolDefinition, ToolListing, from_json, tool_name
from toolyard.plugins.mcp.pins import Pin, describe_changes
from toolyard.plugins.mcp.server_json import review_to_json, server_to_json
from toolyard.process_memory import protect_memory
from toolyard.protocol.envelope import Failure
from toolyard.protocol.json import JsonObject
from toolyard.protocol.manifests.safe_text import escape_unprintable
from toolyard.yard.yard import Yard


@click.group("mcp", cls=CommandGroup, short_help="Serve the tools over MCP, and manage MCP servers.")
@common_options
def command(common: CommonOptions) -> None:
    """Serve the tools over MCP, and manage MCP servers."""


@command.command("serve")
@common_options
def serve(common: CommonOptions) -> None:
    """Serve one MCP client on stdin and stdout; stdout carries only the protocol.

    Calls that write, run programs or use the network need approval: in the client if it supports that, else with
    'toolyard approval'. --project selects the files that the tools can see.
    """
    protect_memory()
    if sys.stdin.isatty() and not common.quiet:
        click.echo("Waiting for an MCP client on stdin. Clients normally start this command themselves.", err=True)
    import uvloop

    uvloop.run(_serve(common))


@command.command("list")
@common_options
def list_(common: CommonOptions) -> None:
    """List the configured MCP servers: state, scope, tools and command.

    The states are those of the running server of this home, if there is one.
    """
    asyncio.run(_list(common))


@command.command("add", context_settings={"ignore_unknown_options": True})
@click.argument("name")
@click.argument("words", metavar="[COMMAND [ARG]...]", nargs=-1, type=click.UNPROCESSED)
@click.option("--url", metavar="URL", default="", help="URL of a streamable HTTP server, instead of a command.")
@click.option(
    "--env", "env", metavar="KEY=VALUE", multiple=True, help="Environment variable for the program; repeatable."
)
@click.option("--header", "headers", metavar="KEY=VALUE", multiple=True, help="HTTP header for the URL; repeatable.")
@click.option("--yes", is_flag=True, help="Start it and allow its tools without asking: for scripts.")
@common_options
def add(
    common: CommonOptions,
    name: str,
    words: tuple[str, ...],
    url: str,
    env: tuple[str, ...],
    headers: tuple[str, ...],
    yes: bool,
) -> None:
    """Add an MCP server to the home's mcp.json, and review it.

    \b
    toolyard mcp add time -- uvx mcp-server-time
    toolyard mcp add wiki --url https://wiki.example/mcp --header 'Authorization=Bearer ${WIKI_KEY}'
    """
    declared = ServerDeclaration(
        name=name,
        command=words[0] if words else "",
        args=words[1:],
        url=url,
        env=_parse_pairs(env),
        headers=_parse_pairs(headers),
    )
    _, problems = parse_servers({KEY: {name: declared.to_json()}})
    if problems:
        raise UsageError("; ".join(problems))
    asyncio.run(_add(common, declared, yes=yes))


@command.command("allow")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Start it and allow its tools without asking: for scripts.")
@common_options
def allow(common: CommonOptions, name: str, yes: bool) -> None:
    """Review an MCP server and approve its current tools.

    Shows its command, starts it after confirmation, and shows its tools to approve. Any later change of its command or
    of the name, description or schema of a tool needs another review.
    """
    asyncio.run(_allow(common, name, yes=yes))


@command.command("remove")
@click.argument("name")
@common_options
def remove(common: CommonOptions, name: str) -> None:
    """Remove an MCP server from the home's mcp.json, with its approval."""
    asyncio.run(_remove(common, name))


async def _serve(common: CommonOptions) -> None:
    from toolyard.hosts.open_yard import open_yard
    from toolyard.mcp.stdio import serve as serve_stdio
    from toolyard.threads import use_started_pool

    use_started_pool()
    async with open_yard(common.serving_config(), serves=False) as yard:
        await serve_stdio(yard)


async def _list(common: CommonOptions) -> None:
    listed = await _list_servers(common)
    if common.json:
        print_json(listed)
        return
    rows = [
        (
            one["name"],
            one["state"],
            one["scope"],
            str(len(one["tools"]) or "-"),
            escape_unprintable(one["command_line"]),
        )
        for one in listed["servers"]
    ]
    print_table([("NAME", "STATE", "SCOPE", "TOOLS", "COMMAND"), *rows] if rows else [])
    own_command = common.own_command
    for one in listed["servers"]:
        if one["waiting"]:
            waits = escape_unprintable(", ".join(one["waiting"]))
            review = own_command.format("mcp allow", one["name"])
            click.echo(f"{one['name']} needs a review: {waits}. Run '{review}'.", err=True)
        for tool, why in one["left_out"].items():
            click.echo(
                f"{one['name']}: {escape_unprintable(tool)} cannot be offered: {escape_unprintable(why)}", err=True
            )
    for problem in listed["problems"]:
        click.echo(f"error: {escape_unprintable(problem)}", err=True)


async def _list_servers(common: CommonOptions) -> dict[str, Any]:
    """Return the MCP servers as the running server of this home knows them; without one, as configured."""
    async with Yard(common.config()) as yard:
        server = choose_server(common, yard.config)
        if server is not None:
            try:
                listing = await run_in_daemon_thread(server.list_mcp_servers)
            except ServerUnreachable as error:
                click.echo(f"warning: {error}. Showing the configuration instead", err=True)
            else:
                return {"servers": listing["data"], "problems": listing["problems"]}
        servers = yard.mcp.servers
        rows = [server_to_json(servers, entry) for entry in servers.declarations.all()]
        pins = [servers.pins.problem] if servers.pins.problem else []
        return {"servers": rows, "problems": [*servers.declarations.problems, *pins, *yard.mcp.name_collisions]}


async def _add(common: CommonOptions, declared: ServerDeclaration, *, yes: bool) -> None:
    async with Yard(common.config()) as yard:
        before = yard.mcp.servers.declarations.get(declared.name)
        if before is not None and before.scope is Scope.HOME:
            raise UsageError(f"there is already an MCP server called {declared.name}: remove it first")
        yard.mcp.servers.declarations.add(declared)
        await record_action(yard, "mcp_server.added", plugin=declared.name, target=declared.name)
        try:
            await _review(yard, common, declared.name, yes=yes)
        except ToolyardError as error:
            again, remove = (common.own_command.format(f"mcp {word}", declared.name) for word in ("allow", "remove"))
            error.add_note(f"It is still configured: '{again}' tries again, '{remove}' removes it")
            raise


async def _allow(common: CommonOptions, name: str, *, yes: bool) -> None:
    async with Yard(common.config()) as yard:
        await _review(yard, common, name, yes=yes)


async def _review(yard: Yard, common: CommonOptions, name: str, *, yes: bool) -> None:
    servers = yard.mcp.servers
    entry = _get_entry(yard, name)
    links = servers.list_links(entry)
    if not common.json:
        _print_review(entry)
        _print_access(servers.describe_access(entry))
    _require_yes(f"Start {name} once to list its tools?", name, yes=yes)
    try:
        listing, allow = await _inspect(yard, common, entry, links)
    except Failure as failure:
        raise ToolyardError(f"{failure.message} {failure.hint}".strip()) from failure
    if common.json:
        review = review_to_json(entry, listing, servers.pins.get(entry), servers.describe_access(entry))
        print_json(review | {"allowed": yes})
    else:
        _print_review(entry, listing, servers.pins.get(entry))
    _require_yes(f"Approve {name} with exactly these {len(listing.tools)} tools?", name, yes=yes)
    await run_in_daemon_thread(allow)
    await record_action(yard, "mcp_server.allowed", plugin=name, target=name)
    if not common.json and not common.quiet:
        click.echo(f"{name} is approved.", err=True)


async def _inspect(
    yard: Yard, common: CommonOptions, entry: ConfiguredServer, links: Mapping[str, str]
) -> tuple[ToolListing, Callable[[], None]]:
    """Return the tools of an MCP server, and the function that approves them; ``links`` were shown.

    The running server of this home is asked, if there is one: it has the tools that were added since their start. With
    links that were never shown before, it is started in this process, which knows that they were now.
    """
    unseen = yard.mcp.servers.find_unseen_links(entry)
    server = None if unseen else choose_server(common, yard.config)
    if server is not None:
        try:
            review = await run_in_daemon_thread(server.inspect_mcp_server, entry.name)
        except ServerUnreachable as error:
            click.echo(f"warning: {error}. Starting it in this process", err=True)
        else:
            tools = (from_json(tool) for tool in review["tools"])
            listing = ToolListing(tools=tuple(tool for tool in tools if tool), left_out=review["left_out"])
            return listing, partial(server.allow_mcp_server, entry.name, review["fingerprint"])
    listing = await yard.mcp.servers.inspect_tools(entry, links)
    at = SystemClock().now().isoformat(timespec="seconds")
    return listing, partial(yard.mcp.servers.pins.allow, entry, listing.tools, links=links, at=at)


async def _remove(common: CommonOptions, name: str) -> None:
    async with Yard(common.config()) as yard:
        servers = yard.mcp.servers
        entry = _get_entry(yard, name)
        servers.revoke(entry)
        await record_action(yard, "mcp_server.removed", plugin=name, target=name)
        if not servers.declarations.remove(name):
            raise ToolyardError(f"{name} is configured in {entry.file}: remove it there. Its approval is revoked")
    if not common.quiet:
        click.echo(f"Removed {name}.", err=True)


def _get_entry(yard: Yard, name: str) -> ConfiguredServer:
    entry = yard.mcp.servers.declarations.get(name)
    if entry is None:
        known = ", ".join(one.name for one in yard.mcp.servers.declarations.all()) or "none"
        raise UsageError(f"there is no MCP server called '{name}'; configured: {known}")
    return entry


def _require_yes(question: str, name: str, *, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"{name} is not approved: no terminal to ask on. Pass --yes to approve it as shown")
    if not click.confirm(f"\n{question}", err=True):
        raise ToolyardError(f"{name} is not approved")


def _parse_pairs(words: tuple[str, ...]) -> dict[str, str]:
    wrong = next((word for word in words if "=" not in word), None)
    if wrong is not None:
        raise UsageError(f"'{wrong}' is not KEY=VALUE")
    return {key: value for key, _, value in (word.partition("=") for word in words)}


def _print_review(entry: ConfiguredServer, listing: ToolListing | None = None, pin: Pin | None = None) -> None:
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
    click.echo(f"  takes: {escape_unprintable(_to_json(tool.schema))}")
    if tool.output_schema is not None:
        click.echo(f"  returns: {escape_unprintable(_to_json(tool.output_schema))}")
    for why, words in tool.injections:
        click.echo(click.style(f"  warning: {why}{f': {escape_unprintable(words)}' if words else ''}", fg="yellow"))


def _to_json(schema: JsonObject) -> str:
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


def _print_access(reach: Sequence[str]) -> None:
    """Print what a program may reach beyond the system and its data folder."""
    if reach:
        click.echo(f"May reach: {escape_unprintable('; '.join(reach))}")
