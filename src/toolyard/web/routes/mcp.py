"""``/mcp``: the MCP server, behind the same middleware, keys and limits as every other route."""

from typing import Any

from fastapi import APIRouter
from starlette.routing import Route

from toolyard.mcp.mount import McpMount
from toolyard.web.security.access import Principal
from toolyard.web.security.middleware import PRINCIPAL
from toolyard.web.security.scope import Scope


def router(mount: McpMount) -> APIRouter:
    return APIRouter(routes=[Route("/mcp", mount, include_in_schema=False)])


def get_caller(request: Any) -> str:
    """Return the caller of an MCP request."""
    principal: Principal = request.scope[PRINCIPAL]
    return principal.caller


def can_change_rules(request: Any) -> bool:
    """Return whether the key of an MCP request may change approval rules."""
    principal: Principal = request.scope[PRINCIPAL]
    return principal.has_any_scope(frozenset({Scope.APPROVE}))
