"""A node for these tests: it connects, registers tools, and answers as a test says."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.client import ClientConnection

from tests.waiting import wait_until
from tests.web.conftest import RunningServer
from tests.web.test_websocket import follow, receive

PATH = "/vcp-distributed-server/VCP_Key="


def manifest(name: str, **more: Any) -> dict[str, Any]:
    """Return the manifest of a plugin with one command."""
    block = f"<<<[TOOL_REQUEST]>>>\ntool_name:「始」{name}「末」,\ntext:「始」x「末」\n<<<[END_TOOL_REQUEST]>>>"
    return {
        "name": name,
        "displayName": f"The {name}",
        "pluginType": "synchronous",
        "entryPoint": {"command": "node main.js"},
        "communication": {"protocol": "stdio", "timeout": 60_000},
        "capabilities": {"invocationCommands": [{"command": "Do", "description": f"Does it.\n{block}"}]},
        **more,
    }


class Node:
    def __init__(self, running: RunningServer, connection: ClientConnection, hello: dict[str, Any]) -> None:
        self._running, self.connection, self.hello = running, connection, hello

    @property
    def id(self) -> str:
        return str(self.hello["data"]["serverId"])

    async def send(self, kind: str, **data: Any) -> None:
        await self.connection.send(json.dumps({"type": kind, "data": data}))

    async def register(self, *tools: dict[str, Any], name: str = "laptop", cancels: bool = False) -> None:
        """Register tools, and wait until the server knows of them."""
        more = {"capabilities": {"cancelTool": True}} if cancels else {}
        await self.send("register_tools", serverName=name, tools=list(tools), **more)
        assert self._running.yard.nodes.nodes is not None
        nodes = self._running.yard.nodes.nodes
        await wait_until(lambda: any(node.id == self.id and node.name for node in nodes.list_allowed()) or nodes.find(
            f"{tools[0]['name']}@{name}"))  # fmt: skip

    async def next(self, kind: str = "execute_tool") -> dict[str, Any]:
        """Return the data of the next message, which is of this kind."""
        (message,) = await receive(self.connection, 1)
        assert message["type"] == kind
        data: dict[str, Any] = message["data"]
        return data

    async def answer(self, result: Any) -> dict[str, Any]:
        """Answer the next call with this result, and return what it asked for."""
        asked = await self.next()
        await self.send("tool_result", requestId=asked["requestId"], status="success", result=result)
        return asked


@asynccontextmanager
async def connect_node(running: RunningServer, key: str = "") -> AsyncIterator[Node]:
    async with follow(running, f"{PATH}{key or running.key}", key=None, max_size=None) as connection:
        (hello,) = await receive(connection, 1)
        yield Node(running, connection, hello)
