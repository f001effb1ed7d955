"""``/mcp``: the MCP server, behind the same middleware, keys and limits as every other route."""

from typing import Any

from fastapi import APIRouter
from starlette.routing import Route

from toolyard.mcp.mount import McpMount
from toolyard.web.security.principal import get_principal


def router(mount: McpMount) -> APIRouter:
    return APIRouter(routes=[Route("/mcp", mount, include_in_schema=False)])


def get_caller(request: Any) -> str:
    """Return the caller of an MCP request."""
    return get_principal(request.scope).caller


def can_change_rules(request: Any) -> bool:
    """Return whether the key of an MCP request may change approval rules."""
    return get_principal(request.scope).can_approve
