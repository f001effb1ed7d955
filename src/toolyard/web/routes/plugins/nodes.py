"""``/vcp-distributed-server``: the socket of nodes, as VCPToolBox's distributed servers connect; and ``/v1/nodes``.

A node's messages are taken one after another. One that is too large, too fast, or takes no message for ``SEND_S``
is closed and comes back. Another key, or one that is removed, ends the connection.
"""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final

import orjson
from fastapi import Request, Response, WebSocket
from starlette.websockets import WebSocketDisconnect

from toolyard.dialects.vcp_nodes import hello_message
from toolyard.message import Message
from toolyard.protocol.envelope import Failure
from toolyard.protocol.json import JsonObject, json_bytes
from toolyard.vcp.nodes.node import Node
from toolyard.vcp.nodes.nodes import Nodes
from toolyard.web.answers import json_response
from toolyard.web.refusal import not_found
from toolyard.web.routes.calls.audit import add_audit_detail
from toolyard.web.routing import Routes
from toolyard.web.schemas.nodes import NodeList, NodeRow
from toolyard.web.security.scope import NODE_PREFIX, Principal, Scope, get_principal
from toolyard.web.server.websocket_client import INVALID_MESSAGE, MESSAGE_LIMIT, SIGNED_OUT, TOO_SLOW

MAX_MESSAGE: Final = 32 * 2**20  # bytes; files and pictures of nodes are in messages
RATE: Final = 200  # messages in a second that nobody waits for
SEND_S: Final = 60.0
_BIG = 256 * 1024  # bytes of a message that is read in a thread
_LOOK_S = 5.0


def router(nodes: Nodes | None) -> Routes:
    """``nodes``: None while the channels of VCPToolBox are closed."""
    routes = Routes("/v1/nodes", tag="nodes", scope=Scope.ADMIN)

    @routes.get("", NodeList)
    async def list_nodes() -> Response:
        """List the connected nodes and their tools."""
        return json_response({"is_open": nodes is not None, "data": [*nodes.to_json()] if nodes else []})

    @routes.post("/{node_id}/allow", NodeRow, audit="node.allowed")
    async def allow_node(node_id: str, request: Request) -> Response:
        """Allow the tools of a node as they are now, where `node_review` is set."""
        node = await asyncio.to_thread(nodes.allow, node_id) if nodes else None
        if nodes is None or node is None:
            raise not_found(Message("such node is connected: {id}", id=node_id))
        nodes.note_allowed()
        add_audit_detail(request.scope, target=node.name)
        return json_response(next(one for one in nodes.to_json() if one["id"] == node.id))

    return routes


def socket_router(nodes: Nodes | None, is_still_valid: Callable[[Principal], bool]) -> Routes:
    routes = Routes(scope=Scope.NODE)
    path = f"{NODE_PREFIX}{{key:path}}"
    if nodes is None:
        routes.allow(path, Scope.NODE)  # who may use it is told that it is closed
        return routes

    @routes.websocket(path)
    async def serve_node(socket: WebSocket, key: str) -> None:  # noqa: ARG001 the middleware has checked it
        await _Connection(socket, nodes, is_still_valid).serve()

    return routes


class _Connection:
    def __init__(self, socket: WebSocket, nodes: Nodes, is_still_valid: Callable[[Principal], bool]) -> None:
        self._socket, self._nodes, self._is_still_valid = socket, nodes, is_still_valid
        self._principal = get_principal(socket.scope)

    async def serve(self) -> None:
        if set_limit := self._socket.scope.get(MESSAGE_LIMIT):
            set_limit(MAX_MESSAGE)
        await self._socket.accept()
        try:
            node = self._nodes.connect(self._principal.address)
        except Failure:
            await self._socket.close(TOO_SLOW)
            return
        code = 1000
        works = [asyncio.ensure_future(one) for one in (self._send_all(node), self._receive_all(node), self._watch())]
        try:
            done, _ = await asyncio.wait(works, return_when=asyncio.FIRST_COMPLETED)
            code = next(work for work in works if work in done).result()
        except (WebSocketDisconnect, OSError):
            return  # it has left
        finally:
            self._nodes.disconnect(node)
            for work in works:
                work.cancel()
            await asyncio.gather(*works, return_exceptions=True)
        with contextlib.suppress(RuntimeError, OSError, WebSocketDisconnect):
            await self._socket.close(code)

    async def _send_all(self, node: Node) -> int:
        """Send what waits for the node; return when it takes nothing."""
        text = json_bytes(hello_message(node.id)).decode()
        while True:
            try:
                async with asyncio.timeout(SEND_S):
                    await self._socket.send_text(text)
            except TimeoutError:
                return TOO_SLOW
            text = await node.unsent.get()

    async def _receive_all(self, node: Node) -> int:
        loop = asyncio.get_running_loop()
        since, count = loop.time(), 0
        while True:
            message = await self._socket.receive()
            if message["type"] == "websocket.disconnect":
                raise WebSocketDisconnect(message.get("code") or 1006)
            value = await _read_message(message.get("text") or message.get("bytes") or "")
            if value is not None and await self._nodes.take(node, value):
                continue
            now = loop.time()
            since, count = (since, count + 1) if now - since < 1 else (now, 1)
            if count > RATE:
                return INVALID_MESSAGE

    async def _watch(self) -> int:
        """Return when the key is removed."""
        while self._is_still_valid(self._principal):  # noqa: ASYNC110 the end of a key raises no event
            await asyncio.sleep(_LOOK_S)
        return SIGNED_OUT


async def _read_message(text: str | bytes) -> JsonObject | None:
    """Return the object that a message is; None when it is none."""
    try:
        value = await asyncio.to_thread(orjson.loads, text) if len(text) > _BIG else orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None
