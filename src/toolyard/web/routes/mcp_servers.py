"""``/v1/mcp/servers``: the MCP servers that Toolyard uses, and what their owner says about them.

A review has two steps, as on the command line: ``look`` starts the server once and shows its tools; ``allow`` takes
the fingerprint of what was shown, starts it once more, and allows exactly that.
"""

import asyncio
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Request, Response

from toolyard.app import Yard
from toolyard.dialects.mcp_config import KEY, parse_servers
from toolyard.engine.clock import Clock
from toolyard.plugins.mcp.declarations import ConfiguredServer, Scope
from toolyard.plugins.mcp.definition import ToolDefinition, ToolListing, digest_definitions
from toolyard.plugins.mcp.review import review_to_json, server_to_json
from toolyard.protocol.json import JsonObject
from toolyard.web.answers import answer
from toolyard.web.refusal import Refusal, bad_request, not_found
from toolyard.web.routes.tools import read_arguments
from toolyard.web.shapes import Done
from toolyard.web.shapes_plugins import Allowed, ServerReview, ServerRow, ServerRows

_BODY: JsonObject = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {"type": "object", "properties": {KEY: {"type": "object"}}, "required": [KEY]}
            }
        },
    }
}


def router(yard: Yard, clock: Clock) -> APIRouter:
    routes = APIRouter(prefix="/v1/mcp/servers", tags=["mcp"])
    servers = yard.mcp.servers

    @routes.get("", responses={200: {"model": ServerRows}})
    async def list_servers() -> Response:
        """Every MCP server that is written down, and what is wrong with the files."""
        return answer(_listed(yard))

    @routes.post("", status_code=201, responses={201: {"model": ServerRows}}, openapi_extra=_BODY)
    async def add_servers(request: Request) -> Response:
        """Write servers into the `mcp.json` of the home, all or none; none of them runs before it is allowed."""
        declared, problems = parse_servers(read_arguments(await request.body()))
        if problems or not declared:
            raise bad_request("; ".join(problems)[:2000] or f"there is no server under '{KEY}'")
        taken = [one.name for one in declared if _is_home(servers.declarations.get(one.name))]
        if taken:
            raise Refusal(HTTPStatus.CONFLICT, f"there is already a server called {', '.join(taken)}: remove it first")
        for one in declared:
            await asyncio.to_thread(servers.declarations.add, one)
        return answer(_listed(yard), HTTPStatus.CREATED)

    @routes.post("/{name}/look", responses={200: {"model": ServerReview}})
    async def look_at_server(name: str) -> Response:
        """Show its tools, for a review: of the server that runs, else it is started once."""
        entry = _named(yard, name)
        return answer(_review(yard, entry, await servers.inspect_tools(entry)))

    @routes.post("/{name}/allow", responses={200: {"model": ServerRow}})
    async def allow_server(name: str, said: Allowed) -> Response:
        """Let exactly what was shown run; 409 when it comes up as something else."""
        entry = _named(yard, name)
        tools = (await servers.inspect_tools(entry)).tools
        if _fingerprint(entry, tools) != said.fingerprint:
            raise Refusal(HTTPStatus.CONFLICT, f"{name} has changed since it was shown: look at it again")
        at = clock.now().isoformat(timespec="seconds")
        await asyncio.to_thread(servers.pins.allow, entry, tools, at=at)
        return answer(_row(yard, entry))

    @routes.post("/{name}/enable", responses={200: {"model": ServerRow}})
    async def enable_server(name: str) -> Response:
        """Use a disabled server again."""
        return await _switch(yard, name, on=True)

    @routes.post("/{name}/disable", responses={200: {"model": ServerRow}})
    async def disable_server(name: str) -> Response:
        """Stop it, and use it no more; what was allowed is kept."""
        return await _switch(yard, name, on=False)

    @routes.delete("/{name}", responses={200: {"model": Done}})
    async def remove_server(name: str) -> Response:
        """Take it out of the `mcp.json` of the home, and its permission with it."""
        entry = _named(yard, name)
        _require_home(entry)
        await asyncio.to_thread(servers.pins.revoke, entry)
        await asyncio.to_thread(servers.declarations.remove, name)
        await servers.stop(name)
        return answer({"ok": True, "name": name})

    return routes


async def _switch(yard: Yard, name: str, *, on: bool) -> Response:
    _require_home(_named(yard, name))
    await asyncio.to_thread(yard.mcp.servers.declarations.set_enabled, name, on=on)
    if not on:
        await yard.mcp.servers.stop(name)
    return answer(_row(yard, _named(yard, name)))


def _listed(yard: Yard) -> dict[str, Any]:
    servers = yard.mcp.servers
    found = [_row(yard, entry) for entry in servers.declarations.all()]
    problems = [*servers.declarations.problems, *([servers.pins.problem] if servers.pins.problem else [])]
    problems += yard.mcp.collisions
    problems = [yard.mask.text(problem) for problem in problems]
    return {"data": found, "problems": problems}


def _row(yard: Yard, entry: ConfiguredServer) -> dict[str, Any]:
    servers, declared = yard.mcp.servers, entry.declared
    return server_to_json(servers, entry) | {
        "command_line": yard.mask.text(entry.command_line),
        "variables": list(declared.variables),
        "env": list(declared.env),
        "headers": list(declared.headers),
    }


def _review(yard: Yard, entry: ConfiguredServer, listing: ToolListing) -> dict[str, Any]:
    told = review_to_json(entry, listing, yard.mcp.servers.pins.get(entry))
    fingerprint = _fingerprint(entry, listing.tools)
    return told | {"command_line": yard.mask.text(entry.command_line), "fingerprint": fingerprint}


def _fingerprint(entry: ConfiguredServer, tools: Sequence[ToolDefinition]) -> str:
    return f"{entry.digest}:{digest_definitions(tools)}"


def _named(yard: Yard, name: str) -> ConfiguredServer:
    entry = yard.mcp.servers.declarations.get(name)
    if entry is None:
        raise not_found(f"MCP server called '{name[:100]}'")
    return entry


def _is_home(entry: ConfiguredServer | None) -> bool:
    return entry is not None and entry.scope is Scope.HOME


def _require_home(entry: ConfiguredServer) -> None:
    if not _is_home(entry):
        raise Refusal(HTTPStatus.CONFLICT, f"{entry.name} is written in {entry.file}: change it there")
