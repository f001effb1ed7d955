"""``/v1/mcp/servers``: the configured MCP servers and their reviews; and ``/mcp``, where this server is one itself.

A review has two steps, as on the command line: ``look`` starts the server once and shows its tools; ``allow`` takes
the fingerprint of what was shown, starts it once more, and approves exactly that. ``/mcp`` stands behind the same
middleware, keys and limits as every other route.
"""

import asyncio
import hashlib
import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Annotated, Any, Literal

from fastapi import Request, Response
from pydantic import BaseModel, Field
from starlette.routing import Route

from toolyard.dialects.mcp_config import KEY, parse_servers
from toolyard.engine.clock import Clock
from toolyard.mcp.mount import McpMount
from toolyard.message import Message, cut_message, join_messages, to_fields
from toolyard.plugins.mcp.declarations import ConfiguredServer
from toolyard.plugins.mcp.declarations import Scope as ConfigScope
from toolyard.plugins.mcp.definition import ToolDefinition, ToolListing, digest_definitions
from toolyard.plugins.mcp.server_json import review_to_json, server_to_json
from toolyard.web.answers import json_response
from toolyard.web.refusal import Refusal, bad_request, not_found
from toolyard.web.routes.calls.audit import add_audit_detail
from toolyard.web.routes.calls.tools import read_arguments
from toolyard.web.routing import Audited, Routes
from toolyard.web.schemas.common import MessageFields, OkResponse, TextRow
from toolyard.web.schemas.components import refer_to
from toolyard.web.schemas.plugins import McpServersFile, ReviewDecision
from toolyard.web.security.scope import Scope, get_principal
from toolyard.yard.yard import Yard


class RemovedServer(OkResponse):
    name: str


class ServerRow(BaseModel):
    name: str
    state: Literal["ready", "running", "disabled", "needs_review", "changed", "failed"]
    scope: Literal["home", "project"]
    file: str
    command_line: str
    variables: list[str]
    env: list[str]
    headers: list[str]
    tools: list[str]
    waiting: list[str]
    waiting_messages: list[MessageFields]
    left_out: Annotated[dict[str, str], Field(description="Tools that cannot be offered, and why.")]
    left_out_messages: dict[str, MessageFields]


class ServerRows(BaseModel):
    data: list[ServerRow]
    problems: list[str]
    problem_messages: list[MessageFields]


class ServerTool(BaseModel):
    name: str
    title: str
    description: str
    input_schema: Annotated[dict[str, Any], Field(alias="schema", description="The JSON Schema of its arguments.")]
    output_schema: Annotated[dict[str, Any] | None, Field(description="A JSON Schema; missing if it has none.")] = None
    warnings: list[str]
    warning_messages: list[MessageFields]


class ServerReview(BaseModel):
    name: str
    file: str
    command_line: str
    reach: Annotated[list[TextRow], Field(description="What a program may reach, in plain words.")]
    variables: list[str]
    changed: list[str]
    changed_messages: list[MessageFields]
    tools: list[ServerTool]
    left_out: Annotated[dict[str, str], Field(description="Tools that cannot be offered, and why.")]
    left_out_messages: dict[str, MessageFields]
    fingerprint: str


_BODY: dict[str, Any] = {
    "requestBody": {"required": True, "content": {"application/json": {"schema": refer_to(McpServersFile)}}}
}


def router(yard: Yard, clock: Clock) -> Routes:
    routes = Routes("/v1/mcp/servers", tag="mcp")
    servers = yard.mcp.servers

    @routes.get("", ServerRows)
    async def list_servers() -> Response:
        """List the configured MCP servers, and problems of their configuration files."""
        return json_response(_servers_to_json(yard))

    @routes.post("", ServerRows, status=201, audit="mcp_server.added", openapi_extra=_BODY)
    async def add_servers(request: Request) -> Response:
        """Add servers to the home's `mcp.json`, all or none; none runs before it is approved."""
        declared, problems = parse_servers(read_arguments(await request.body()))
        if problems or not declared:
            empty = Message("'{key}' has no server", key=KEY)
            raise bad_request(cut_message(join_messages(problems), 2000) or empty)
        taken = [one.name for one in declared if _is_home(servers.declarations.get(one.name))]
        if taken:
            raise Refusal(
                HTTPStatus.CONFLICT,
                Message("there is already a server called {names}: remove it first", names=", ".join(taken)),
            )
        for one in declared:
            await asyncio.to_thread(servers.declarations.add, one)
        add_audit_detail(request.scope, target=", ".join(one.name for one in declared))
        return json_response(_servers_to_json(yard), HTTPStatus.CREATED)

    @routes.post("/{name}/look", ServerReview)
    async def look_at_server(name: str) -> Response:
        """Return the server's tools for a review; it is started once unless it is running."""
        entry = _get_entry(yard, name)
        return json_response(_review_to_json(yard, entry, await servers.inspect_tools(entry)))

    @routes.post("/{name}/allow", ServerRow, audit=Audited("mcp_server.allowed", plugin="name"))
    async def allow_server(name: str, decision: ReviewDecision, request: Request) -> Response:
        """Approve exactly what was shown; 409 when it has changed since."""
        entry = _get_entry(yard, name)
        links = servers.list_links(entry)
        shown = links if decision.fingerprint.endswith(_digest_links(links)) else {}
        tools = (await servers.inspect_tools(entry, shown)).tools
        if _fingerprint(entry, tools, links) != decision.fingerprint:
            raise Refusal(
                HTTPStatus.CONFLICT, Message("{name} has changed since it was shown: review it again", name=name)
            )
        at = clock.now().isoformat(timespec="seconds")
        await asyncio.to_thread(servers.pins.allow, entry, tools, links=links, at=at)
        add_audit_detail(request.scope, fingerprint=decision.fingerprint)
        return json_response(_entry_to_json(yard, entry))

    @routes.post("/{name}/enable", ServerRow, audit=Audited("mcp_server.enabled", plugin="name"))
    async def enable_server(name: str) -> Response:
        """Enable a disabled server."""
        return await _set_enabled(yard, name, on=True)

    @routes.post("/{name}/disable", ServerRow, audit=Audited("mcp_server.disabled", plugin="name"))
    async def disable_server(name: str) -> Response:
        """Stop and disable a server; its approval is kept."""
        return await _set_enabled(yard, name, on=False)

    @routes.delete("/{name}", RemovedServer, audit=Audited("mcp_server.removed", plugin="name"))
    async def remove_server(name: str) -> Response:
        """Remove a server from the home's `mcp.json`, with its approval."""
        entry = _get_entry(yard, name)
        _require_home(entry)
        await asyncio.to_thread(servers.revoke, entry)
        await asyncio.to_thread(servers.declarations.remove, name)
        await servers.stop(name)
        return json_response({"ok": True, "name": name})

    return routes


async def _set_enabled(yard: Yard, name: str, *, on: bool) -> Response:
    _require_home(_get_entry(yard, name))
    await asyncio.to_thread(yard.mcp.servers.declarations.set_enabled, name, on=on)
    if not on:
        await yard.mcp.servers.stop(name)
    return json_response(_entry_to_json(yard, _get_entry(yard, name)))


def _servers_to_json(yard: Yard) -> dict[str, Any]:
    servers = yard.mcp.servers
    rows = [_entry_to_json(yard, entry) for entry in servers.declarations.all()]
    problems = [*servers.declarations.problems, *([servers.pins.problem] if servers.pins.problem else [])]
    problems += yard.mcp.name_collisions
    problems = [yard.mask.text(problem) for problem in problems]
    messages = [to_fields("message", problem) for problem in problems]
    return {"data": rows, "problems": problems, "problem_messages": messages}


def _entry_to_json(yard: Yard, entry: ConfiguredServer) -> dict[str, Any]:
    servers, declared = yard.mcp.servers, entry.declared
    return server_to_json(servers, entry) | {
        "command_line": yard.mask.text(entry.command_line),
        "variables": list(declared.variables),
        "env": list(declared.env),
        "headers": list(declared.headers),
    }


def _review_to_json(yard: Yard, entry: ConfiguredServer, listing: ToolListing) -> dict[str, Any]:
    servers = yard.mcp.servers
    review = review_to_json(entry, listing, servers.pins.get(entry), servers.describe_access(entry))
    fingerprint = _fingerprint(entry, listing.tools, servers.list_links(entry))
    return review | {"command_line": yard.mask.text(entry.command_line), "fingerprint": fingerprint}


def _fingerprint(entry: ConfiguredServer, tools: Sequence[ToolDefinition], links: Mapping[str, str]) -> str:
    """Return the digest of what is shown: the command, the tools and where its links lead."""
    return f"{entry.digest}:{digest_definitions(tools)}{_digest_links(links)}"


def _digest_links(links: Mapping[str, str]) -> str:
    return f":{hashlib.sha256(json.dumps(sorted(links.items())).encode()).hexdigest()}" if links else ""


def _get_entry(yard: Yard, name: str) -> ConfiguredServer:
    entry = yard.mcp.servers.declarations.get(name)
    if entry is None:
        raise not_found(Message("MCP server called '{name}'", name=name[:100]))
    return entry


def _is_home(entry: ConfiguredServer | None) -> bool:
    return entry is not None and entry.scope is ConfigScope.HOME


def _require_home(entry: ConfiguredServer) -> None:
    if not _is_home(entry):
        raise Refusal(
            HTTPStatus.CONFLICT,
            Message("{name} is configured in {file}: change it there", name=entry.name, file=entry.file),
        )


def mount_router(mount: McpMount) -> Routes:
    routes = Routes("/mcp", scope=Scope.TOOLS)
    routes.mount(Route("/mcp", mount, include_in_schema=False))
    return routes


def get_caller(request: Any) -> str:
    """Return the caller of an MCP request."""
    return get_principal(request.scope).caller


def can_change_rules(request: Any) -> bool:
    """Return whether the key of an MCP request may change approval rules."""
    return get_principal(request.scope).can_approve
