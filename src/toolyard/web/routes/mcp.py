"""``/mcp``: the MCP server behind the same edge, keys and limits as every other route."""

from typing import Any

from fastapi import APIRouter
from starlette.routing import Route

from toolyard.mcp.mount import McpMount
from toolyard.web.access import Visitor
from toolyard.web.edge import VISITOR
from toolyard.web.scope import Scope


def router(mount: McpMount) -> APIRouter:
    return APIRouter(routes=[Route("/mcp", mount, include_in_schema=False)])


def caller_of(request: Any) -> str:
    """Whose key it is that the edge has let in."""
    visitor: Visitor = request.scope[VISITOR]
    return visitor.caller


def may_rule(request: Any) -> bool:
    """Whether their key may change the rules of approvals."""
    visitor: Visitor = request.scope[VISITOR]
    return visitor.may(frozenset({Scope.APPROVE}))
