"""The official MCP client against a Yard, in one process and in two."""

import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import uvicorn
from mcp import Client, StdioServerParameters
from mcp_types import ElicitResult

from toolyard.config import load_config
from toolyard.engine.clock import Clock
from toolyard.mcp.server import McpServer, build_mcp_app
from toolyard.protocol.store import Query
from toolyard.yard.yard import Yard

CALLER = "mcp:test"
ERAS = ("legacy", "auto")  # the handshake of 2025, and the protocol of 2026-07-28


@contextlib.asynccontextmanager
async def open_client(
    project: Path,
    home: Path,
    *,
    mode: str = "auto",
    plugins: tuple[Path, ...] = (),
    beat_s: float = 0.05,
    clock: Clock | None = None,
    **more: Any,
) -> AsyncIterator[tuple[Client, Yard]]:
    """A client and the Yard behind it, without a process or a socket between them."""
    config = load_config(project, home, plugin_folders=plugins, trusts_given=bool(plugins))
    async with Yard(config) as yard:
        server = McpServer(yard, lambda _: CALLER, beat_s=beat_s, clock=clock)
        async with (
            server.running(refresh=True, every_s=0.05),
            Client(server.sdk, mode=mode, cache=None, **more) as client,
        ):
            yield client, yard


def stdio(project: Path, home: Path) -> StdioServerParameters:
    arguments = ["-m", "toolyard", "--project", str(project), "--home", str(home), "mcp", "serve"]
    environment = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}
    return StdioServerParameters(command=sys.executable, args=arguments, env=environment)


@contextlib.asynccontextmanager
async def serve_http(yard: Yard) -> AsyncIterator[str]:
    """The address of a real server on a real socket."""
    mounted = build_mcp_app(
        yard, lambda request: f"key:{request.headers.get('x-test-key', 'none')}", lambda _: True, refresh=True
    )
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        mounted.app, log_config=None, lifespan="off", timeout_graceful_shutdown=1, timeout_keep_alive=600
    )
    server = uvicorn.Server(config)
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    async with mounted.lifespan():
        serving = asyncio.create_task(server.serve([listener]))
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        finally:
            server.should_exit = True
            await serving
            listener.close()


class User:
    """The person at the MCP client: answers what it is asked, and remembers it."""

    def __init__(self, action: str = "accept", answer: str = "allow") -> None:
        self.reply = ElicitResult(action=action, content={"answer": answer} if action == "accept" else None)  # type: ignore[arg-type]
        self.asked: list[Any] = []

    async def __call__(self, context: Any, params: Any) -> ElicitResult:
        self.asked.append(params)
        return self.reply


def envelope_of(result: Any) -> dict[str, Any]:
    """The envelope that a result has for programs."""
    envelope: dict[str, Any] = result.meta["toolyard/envelope"]
    return envelope


async def wait_for_calls(yard: Yard, state: str, *, some: bool) -> None:
    """Wait until there are calls in a state, or none."""
    async with asyncio.timeout(60):
        while True:
            _, seq = await yard.state.store.event_span()
            if bool(await yard.state.journal.page(Query(states=(state,)), limit=1)) is some:
                return
            await yard.state.store.next_event(seq)
