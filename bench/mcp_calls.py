"""Calls over MCP beside the SDK's own server and fastmcp's proxy, in turn, as ratios of calls/s.

Toolyard's own Read stands beside a tool of the SDK's server that reads the same file, and beside the same tool with the
smallest journal that SQLite allows; the same tool behind Toolyard beside the same behind fastmcp's proxy, of a few
tools and of many. All speak stdio, and the official client makes eight calls at a time. fastmcp is no part of this
project: it is installed from PyPI into ``.clients``, which git ignores.
"""

import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from tests.clients.install import install_python_client

SERVERS = Path(__file__).with_name("mcp_servers.py")
AT_ONCE = 8
CALLS = 160  # in one turn
TURNS = 9
FEW, MANY = 10, 1000
SDK, JOURNALLED, OWN = "the SDK's server", "the SDK's server with a journal", "Toolyard's own Read"


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A server that is called, and how many calls/s each turn gave."""

    name: str
    command: StdioServerParameters
    tool: str
    path: str
    rates: list[float] = field(default_factory=list)

    @contextlib.asynccontextmanager
    async def connected(self) -> AsyncIterator[Client]:
        async with Client(self.command) as client:
            result = await client.call_tool(self.tool, {"path": self.path})
            if result.is_error or "one" not in str(result.content):
                raise RuntimeError(f"{self.name} does not answer: {result.content}")
            yield client

    async def measure(self, client: Client) -> None:
        async def call() -> None:
            for _ in range(CALLS // AT_ONCE):
                await client.call_tool(self.tool, {"path": self.path})

        began = time.perf_counter()
        await asyncio.gather(*(call() for _ in range(AT_ONCE)))
        self.rates.append(CALLS / (time.perf_counter() - began))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        peers = list(_make_peers(Path(folder)))
        asyncio.run(_measure(peers))
    rates = {peer.name: statistics.median(peer.rates) for peer in peers}
    print(f"\n{'calls over MCP':<38} {'calls/s':>8} {'ratio':>6}  beside")
    for name, beside, target in (
        (SDK, "", ""),
        (JOURNALLED, SDK, "as it comes"),
        (OWN, SDK, "at least 0.8"),
        (OWN, JOURNALLED, "as it comes"),
        *((_proxied("Toolyard", number), _proxied("fastmcp", number), "at least 1.0") for number in (FEW, MANY)),
        (_proxied("Toolyard", MANY), _proxied("Toolyard", FEW), "as many"),
    ):
        if name in rates and (not beside or beside in rates):
            ratio = f"{rates[name] / rates[beside]:>6.2f}" if beside else " " * 6
            told = f"{beside} ({rates[beside]:.0f}); {target}" if beside else ""
            print(f"{name:<38} {rates[name]:>8.0f} {ratio}  {told}")


def _proxied(by: str, tools: int) -> str:
    return f"{by} before {tools:,} tools"


def _make_peers(root: Path) -> list[Peer]:
    (root / "project").mkdir()
    file = root / "project" / "a.txt"
    file.write_text("one\n" * 20)
    peers = [
        Peer(name=SDK, command=_run(sys.executable, str(SERVERS), "sdk", str(FEW)), tool="read", path=str(file)),
        Peer(
            name=JOURNALLED,
            command=_run(sys.executable, str(SERVERS), "sdk", str(FEW), str(root / "journal.db")),
            tool="read",
            path=str(file),
        ),
        Peer(name=OWN, command=_toolyard(root, 0), tool="Read", path=file.name),
    ]
    for number in (FEW, MANY):
        name, tool = _proxied("Toolyard", number), "mcp__sdk__read"
        peers.append(Peer(name=name, command=_toolyard(root, number), tool=tool, path=str(file)))
    try:
        python = str(install_python_client("fastmcp"))
    except pytest.skip.Exception as error:
        print(f"the rows of fastmcp are left out: {error}")
        return peers
    for number in (FEW, MANY):
        command = _run(python, str(SERVERS), "proxy", sys.executable, str(number))
        peers.append(Peer(name=_proxied("fastmcp", number), command=command, tool="read", path=str(file)))
    return peers


def _run(*command: str) -> StdioServerParameters:
    return StdioServerParameters(command=command[0], args=list(command[1:]), env={"PATH": os.environ["PATH"]})


def _toolyard(root: Path, tools: int) -> StdioServerParameters:
    """A Toolyard that asks nobody, before a server with so many tools, which is allowed."""
    home = root / f"home-{tools}"
    home.mkdir()
    (home / "config.toml").write_text('approval_mode = "auto"\n')
    command = [sys.executable, "-m", "toolyard", "--project", str(root / "project"), "--home", str(home), "mcp"]
    if tools:
        server: dict[str, Any] = {"command": sys.executable, "args": [str(SERVERS), "sdk", str(tools)]}
        server["permissions"] = {"project": "read"}
        (home / "mcp.json").write_text(json.dumps({"mcpServers": {"sdk": server}}))
        subprocess.run([*command, "allow", "sdk", "--yes"], check=True, capture_output=True)
    return _run(*command, "serve")


async def _measure(peers: list[Peer]) -> None:
    async with contextlib.AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(peer.connected()) for peer in peers]
        for _ in range(TURNS):
            for peer, client in zip(peers, clients, strict=True):
                await peer.measure(client)
