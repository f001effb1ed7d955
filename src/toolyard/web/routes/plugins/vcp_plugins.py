"""The routes of plugins that live in VCPToolBox's process, at VCPToolBox's own paths, with the keys of this server.

``/api/plugins/NAME/...`` needs a key for tools, ``/admin_api/...`` the owner's. The request goes to the plugin as it
is, but for the credentials; so does the response, as a page that browsers keep apart from the console: it has no
access to the session of its reader.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from http import HTTPStatus
from typing import Any, Final

from fastapi import Request, Response
from starlette.responses import StreamingResponse
from starlette.types import Receive, Send
from starlette.types import Scope as ASGIScope

from toolyard.protocol.envelope import Failure
from toolyard.vcp.bridge.bridge import Bridge
from toolyard.vcp.bridge.connection import HttpRequest
from toolyard.web.refusal import Refusal
from toolyard.web.routes.plugins.vcp_admin import answer_elsewhere
from toolyard.web.routing import Routes
from toolyard.web.security.scope import VCP_ADMIN, VCP_PLUGINS, Scope

_METHODS = ("get", "post", "put", "patch", "delete")
# of one connection, or the credentials of this server
_KEPT_BACK: Final = frozenset({
    "authorization", "cookie", "connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade",
    "content-length", "host", "expect",
})  # fmt: skip
_NOT_RETURNED: Final = _KEPT_BACK | {"x-no-route", "set-cookie", "content-security-policy", "x-powered-by", "date"}
_NO_ROUTE: Final = "x-no-route"  # from the bridge, where no plugin has a path
_APART: Final = {
    "content-security-policy": "sandbox allow-scripts allow-forms allow-popups allow-downloads",
    "x-content-type-options": "nosniff",
}


def router(bridge: Bridge, address: Callable[[], str]) -> Routes:
    """``address`` returns that of the console, which has what no plugin answers."""
    routes = Routes(tag="plugins of VCPToolBox")

    async def forward(request: Request) -> Response:
        body = await request.body()
        headers = {name: value for name, value in request.headers.items() if name not in _KEPT_BACK}
        path = request.scope.get("raw_path", request.url.path.encode()).decode("latin-1")
        query = request.scope["query_string"].decode("latin-1")
        sent = HttpRequest(request.method, f"{path}?{query}" if query else path, headers, body)
        if not request.url.path.startswith(VCP_ADMIN):
            return await _forward(bridge, sent)
        response = await _forward(bridge, sent) if bridge.list_plugins() else None
        if response is not None and not response.is_unknown:
            return response
        if response is not None:
            await response.drop()
        return answer_elsewhere(request.url.path, address())

    for prefix, scope in zip(VCP_PLUGINS, (Scope.TOOLS, Scope.ADMIN), strict=True):
        for method in _METHODS:
            add: Any = getattr(routes, method)
            add(f"{prefix}{{rest:path}}", include_in_schema=False, scope=scope)(forward)
    return routes


async def _forward(bridge: Bridge, sent: HttpRequest) -> "_Forwarded":
    stack = AsyncExitStack()
    try:
        connection = await bridge.connect()
        head, pieces = await stack.enter_async_context(connection.request_http(sent))
    except Failure as failure:
        await stack.aclose()
        raise Refusal(HTTPStatus.BAD_GATEWAY, failure.message) from failure
    except BaseException:
        await stack.aclose()
        raise

    is_unknown = any(name.lower() == _NO_ROUTE for name, _ in head.headers)
    response = _Forwarded(pieces, stack, head.status, is_unknown=is_unknown)
    kept = [(name.lower(), value) for name, value in head.headers if name.lower() not in _NOT_RETURNED]
    for name, value in [*kept, *_APART.items()]:
        response.headers.append(name, value)
    return response


class _Forwarded(StreamingResponse):
    """A response of a plugin, which is given up when its client leaves."""

    def __init__(self, pieces: AsyncIterator[bytes], stack: AsyncExitStack, status: int, *, is_unknown: bool) -> None:
        """``is_unknown``: no plugin has this path."""
        super().__init__(pieces, status_code=status)
        self.is_unknown = is_unknown
        self._stack = stack

    async def drop(self) -> None:
        await self._stack.aclose()

    async def __call__(self, scope: ASGIScope, receive: Receive, send: Send) -> None:
        async with self._stack:
            await super().__call__(scope, receive, send)
