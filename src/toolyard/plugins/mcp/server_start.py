"""Start a program that speaks MCP, or connect to an address that does.

A program gets a minimal environment (S-80): what every program needs, a HOME of its own, and what its declaration
says. It runs without a shell in a session of its own, and is contained and counted as every other child is.
"""

import asyncio
import contextlib
import os
import shutil
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolyard.message import Message
from toolyard.plugins.child import DRAIN_S
from toolyard.plugins.environment import make_data_folder, temporary_folder
from toolyard.plugins.granted_folders import make_granted_folders
from toolyard.plugins.launch import ChildProcess, Launch
from toolyard.plugins.mcp.connection import Connection
from toolyard.plugins.mcp.declarations import ConfiguredServer
from toolyard.plugins.mcp.server_access import build_server_profile, effective_server_access
from toolyard.plugins.mcp.server_log import ServerLog
from toolyard.plugins.mcp.tool_gate import ToolGate
from toolyard.protocol.failure import Failure, Reason
from toolyard.protocol.manifest import Limits

if TYPE_CHECKING:
    import httpx2

    from toolyard.plugins.mcp.http_client import BoundedClient
    from toolyard.plugins.mcp.servers import ServerContext

_CONNECT_S = 10.0
_READ_S = 300.0  # between two bytes of an answer


async def start_server(
    name: str,
    entry: ConfiguredServer,
    context: "ServerContext",
    log: ServerLog,
    gate: ToolGate,
    links: Mapping[str, str],
) -> Connection:
    """Start a server; the variables of ``entry`` are filled in, and its owner has seen ``links``.

    Raises Failure when there is nothing to start.
    """
    log.clear_last_lines()
    if entry.declared.url:
        from toolyard.plugins.mcp.http_client import BoundedClient

        http = BoundedClient(headers=dict(entry.declared.headers), timeout=_timeout())
        return Connection(name, lambda: _open_http(entry, http), gate, None, lambda: http.refusal)
    children, starter = context.processes()
    child, stdout_ended = await starter.spawn(_build_launch(entry, context, links), {}), asyncio.Event()
    over = asyncio.ensure_future(wait_died(child, stdout_ended))

    def open_transport() -> contextlib.AbstractAsyncContextManager[Any]:
        from toolyard.plugins.mcp.stdio_transport import open_stdio

        return open_stdio(child, children, log.add, stdout_ended)

    return Connection(name, open_transport, gate, over, lambda: _describe_end(over))


async def wait_died(child: ChildProcess, stdout_ended: asyncio.Event) -> int:
    """Wait until it has ended and its last answer is ``heard``, or another process holds its stdout for too long."""
    code = await child.wait()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(DRAIN_S):
            await stdout_ended.wait()
    return code


def _describe_end(over: "asyncio.Future[int]") -> str:
    """Describe how a program ended; empty while it runs."""
    if not over.done():
        return ""
    code = over.result()
    if code < 0:
        return Message("mcp.program_killed", "its program was ended by signal {number}", number=-code)
    return Message("mcp.program_ended", "its program ended with exit code {code}", code=code)


def _build_launch(entry: ConfiguredServer, context: "ServerContext", links: Mapping[str, str]) -> Launch:
    declared = entry.declared
    folder = make_data_folder(context.home, f"mcp-{entry.name}")
    path = declared.env.get("PATH") or context.environ.get("PATH") or os.defpath
    cwd = (context.project / declared.cwd) if declared.cwd else context.project
    local = "/" in declared.command and not os.path.isabs(declared.command)
    program = shutil.which(str(cwd / declared.command) if local else declared.command, path=path)
    if program is None:
        message = Message(
            "mcp.program_not_found",
            "The MCP server {name} cannot start: there is no program '{command}'.",
            name=entry.name,
            command=declared.command,
        )
        raise Failure(
            Reason.START_FAILED,
            message,
            hint=Message("hint.install_or_absolute_path", "Install it, or name it by its absolute path."),
        )
    host = context.environ
    needed = {
        "PATH": path,
        "HOME": str(folder),
        "LANG": host.get("LANG") or "C.UTF-8",
        "TMPDIR": str(temporary_folder(context.home, f"mcp-{entry.name}")),
        "PYTHONIOENCODING": "utf-8",
        "PYTHONUNBUFFERED": "1",
        **({"TZ": host["TZ"]} if host.get("TZ") else {}),
    }
    argv = (os.path.abspath(program), *declared.args)
    access = effective_server_access(
        declared, cwd=Path(cwd), project=context.project, policy=context.policy, links=links
    )
    profile = build_server_profile(
        access, argv[0], project=context.project, data=folder, policy=context.policy, links=links
    )
    context.policy.require_level(entry.name, profile, access.minimum)
    make_granted_folders(context.project, declared.access.write)
    limits = Limits().or_usual(replace(context.policy.usual_limits, cpu_s=None))  # it lives for as long as it is used
    environment = {**needed, **declared.env}
    launch = Launch(argv=argv, cwd=Path(cwd), profile=profile, environment=environment, limits=limits)
    return context.network.add_to(launch, entry.name, access)


def _timeout() -> "httpx2.Timeout":
    import httpx2

    return httpx2.Timeout(_READ_S, connect=_CONNECT_S)


@contextlib.asynccontextmanager
async def _open_http(entry: ConfiguredServer, http: "BoundedClient") -> AsyncIterator[Any]:
    from mcp.client.streamable_http import streamable_http_client

    from toolyard.plugins.mcp.http_client import MAX_BODY

    async with (
        http,
        streamable_http_client(entry.declared.url, http_client=http, max_sse_event_size=MAX_BODY) as streams,
    ):
        yield streams
