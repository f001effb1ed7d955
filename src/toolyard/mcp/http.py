"""``POST /mcp``: the MCP server as an ASGI app to be mounted in the web server.

It checks no key, Host or Origin: the edge of the web server has done so before a request comes here. Bodies, sessions
and their idle time are bounded by the SDK.
"""

import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolyard.mcp.calls import CanMakeRules, FindConsoleUrl
from toolyard.mcp.server import FindCaller, McpServer
from toolyard.yard.yard import Yard

if TYPE_CHECKING:
    from starlette.applications import Starlette

Lifespan = Callable[[], contextlib.AbstractAsyncContextManager[None]]


@dataclass(frozen=True, slots=True)
class McpApp:
    """``app`` answers at ``/mcp``; it works only inside ``lifespan``, which can be entered once."""

    app: "Starlette"
    lifespan: Lifespan
    server: McpServer


def build_mcp_app(
    yard: Yard,
    caller_of: FindCaller,
    may_rule: CanMakeRules,
    *,
    address: FindConsoleUrl = lambda: "",
    refresh: bool = False,
    path: str = "/mcp",
) -> McpApp:
    """Build the app. ``caller_of`` finds the caller of an HTTP request, ``may_rule`` whether they may make rules.

    ``address``: where people reach the console. ``refresh``: nobody else looks after the plugin folders.
    """
    from mcp.server.transport_security import TransportSecuritySettings

    server = McpServer(yard, caller_of, may_rule=may_rule, address=address)
    edge_checks = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    app = server.sdk.streamable_http_app(streamable_http_path=path, transport_security=edge_checks)
    manager = server.sdk.session_manager

    @contextlib.asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        async with manager.run(), server.running(refresh=refresh):
            yield

    return McpApp(app, lifespan, server)
