"""Start a program that speaks MCP, or connect to an address that does.

A program gets a minimal environment (S-80): what every program needs, a HOME of its own, and what its declaration
says. It runs without a shell in a session of its own, and is contained and counted as every other child is. Over its
pipes goes JSON-RPC, one message a line, each way. A line that is no message is noise and goes into the server's log;
one that was meant to be a reply fails its request. A line over ``MAX_LINE`` ends the connection. At the end stdin is
closed; what has not ended by itself after ``GRACE_S`` is stopped, with everything it started.

The answers of an address have the same limit, counted after decompression. A body is read in pieces of at most 1 MiB
and given up beyond ``MAX_BODY``, so that a small compressed answer cannot become gigabytes. A stream of events may go
on for ever; of that each event has the limit, which the SDK enforces.
"""

import asyncio
import contextlib
import os
import shutil
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio
import httpx2
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from toolyard.dialects.mcp_messages import find_reply_id
from toolyard.message import Message
from toolyard.plugins.mcp.declarations import ConfiguredServer
from toolyard.plugins.mcp.pins import ToolGate
from toolyard.plugins.mcp.server_access import build_server_profile, effective_server_access
from toolyard.plugins.mcp.server_connection import Connection
from toolyard.plugins.mcp.server_health import ServerLog
from toolyard.plugins.package.environment import make_data_folder, temporary_folder
from toolyard.plugins.package.plugin_access import make_granted_folders
from toolyard.plugins.process.child import DRAIN_S
from toolyard.plugins.process.children import Children
from toolyard.plugins.process.launch import ChildProcess, Launch
from toolyard.plugins.process.pipes import PipeReader
from toolyard.protocol.envelope import Failure, Reason
from toolyard.protocol.manifests.manifest import Limits

if TYPE_CHECKING:
    from toolyard.plugins.mcp.servers import ServerContext


_CONNECT_S = 10.0
_READ_S = 300.0  # between two bytes of an answer
UNREADABLE: Final = "Failed to parse"  # so the SDK begins when it fails a request for the same reason over HTTP
MAX_LINE: Final = 16 * 2**20
GRACE_S: Final = 1.0
Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
Outgoing = MemoryObjectSendStream[SessionMessage]
Log = Callable[[bytes], None]
MAX_BODY: Final = MAX_LINE
_ENCODED = ("content-encoding", "content-length")  # no longer true of a body that was decoded
_LARGE = 64 * 1024


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
        http = BoundedClient(headers=dict(entry.declared.headers), timeout=httpx2.Timeout(_READ_S, connect=_CONNECT_S))
        return Connection(name, lambda: _open_http(entry, http), gate, None, lambda: http.refusal)
    children, starter = context.processes()
    child, stdout_ended = await starter.spawn(_build_launch(entry, context, links), {}), asyncio.Event()
    over = asyncio.ensure_future(wait_died(child, stdout_ended))

    def open_transport() -> contextlib.AbstractAsyncContextManager[Any]:
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
        return Message("its program was ended by signal {number}", number=-code)
    return Message("its program ended with exit code {code}", code=code)


def _build_launch(entry: ConfiguredServer, context: "ServerContext", links: Mapping[str, str]) -> Launch:
    declared = entry.declared
    folder = make_data_folder(context.home, f"mcp-{entry.name}")
    path = declared.env.get("PATH") or context.environ.get("PATH") or os.defpath
    cwd = (context.project / declared.cwd) if declared.cwd else context.project
    local = "/" in declared.command and not os.path.isabs(declared.command)
    program = shutil.which(str(cwd / declared.command) if local else declared.command, path=path)
    if program is None:
        message = Message(
            "The MCP server {name} cannot start: there is no program '{command}'.",
            name=entry.name,
            command=declared.command,
        )
        raise Failure(Reason.START_FAILED, message, hint=Message("Install it, or name it by its absolute path."))
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


@contextlib.asynccontextmanager
async def _open_http(entry: ConfiguredServer, http: "BoundedClient") -> AsyncIterator[Any]:
    from mcp.client.streamable_http import streamable_http_client

    async with (
        http,
        streamable_http_client(entry.declared.url, http_client=http, max_sse_event_size=MAX_BODY) as streams,
    ):
        yield streams


@contextlib.asynccontextmanager
async def open_stdio(
    child: ChildProcess, children: Children, log: Log, stdout_ended: asyncio.Event
) -> AsyncIterator[tuple[Incoming, Outgoing]]:
    """Open the streams that a client of the SDK needs. The child ends with them."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=MAX_LINE)
    stdout, stdin = os.fdopen(child.stdout, "rb", buffering=0), os.fdopen(child.stdin, "wb", buffering=0)
    errors = PipeReader(child.stderr, log)
    read_transport, write_transport = None, None
    received, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, sent = anyio.create_memory_object_stream[SessionMessage](0)
    try:
        read_transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), stdout)
        write_transport, flow = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, stdin)
        writer = asyncio.StreamWriter(write_transport, flow, None, loop)
        async with anyio.create_task_group() as group:
            group.start_soon(_read_messages, reader, received, log, stdout_ended)
            group.start_soon(_write_messages, writer, sent)
            try:
                yield incoming, outgoing
            finally:
                group.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            (stdin if write_transport is None else write_transport).close()
            await _stop_child(child, children)
            (stdout if read_transport is None else read_transport).close()
            errors.read_rest()
            errors.close()
            for stream in (received, incoming, outgoing, sent):
                stream.close()


async def _stop_child(child: ChildProcess, children: Children) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(GRACE_S):
            await child.wait()
    await asyncio.wait({children.stop(child)})


async def _read_messages(
    reader: asyncio.StreamReader,
    received: MemoryObjectSendStream[SessionMessage | Exception],
    log: Log,
    stdout_ended: asyncio.Event,
) -> None:
    try:
        async with received:
            with contextlib.suppress(ValueError, OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
                while line := await reader.readline():
                    try:
                        message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                    except ValueError as error:
                        log(b"[stdout] " + line[:2000])
                        id_ = find_reply_id(line)
                        if id_ is None:
                            continue
                        problem = types.ErrorData(code=types.PARSE_ERROR, message=f"{UNREADABLE}: {error}")
                        message = types.JSONRPCError(jsonrpc="2.0", id=id_, error=problem)
                    await received.send(SessionMessage(message))
    finally:
        stdout_ended.set()


async def _write_messages(writer: asyncio.StreamWriter, sent: MemoryObjectReceiveStream[SessionMessage]) -> None:
    async with sent:
        with contextlib.suppress(OSError):
            async for one in sent:
                writer.write(one.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                await writer.drain()


class BoundedClient(httpx2.AsyncClient):
    """A client whose responses raise ``StreamError`` when their bodies are too large.

    ``refusal`` is the last answer that was none, such as "HTTP 401 Unauthorized".
    """

    refusal = ""

    async def send(
        self,
        request: httpx2.Request,
        *,
        stream: bool = False,
        auth: Any = httpx2.USE_CLIENT_DEFAULT,
        follow_redirects: Any = httpx2.USE_CLIENT_DEFAULT,
    ) -> httpx2.Response:
        response = await super().send(request, stream=True, auth=auth, follow_redirects=follow_redirects)
        if response.is_error or response.is_redirect:
            status = f"{response.status_code} {response.reason_phrase}".rstrip()
            self.refusal = (
                Message("it answered HTTP {status} to {place}", status=status, place=response.headers["location"][:200])
                if response.has_redirect_location
                else Message("it answered HTTP {status}", status=status)
            )
        headers = [(name, value) for name, value in response.headers.multi_items() if name.lower() not in _ENCODED]
        bounded = httpx2.Response(
            response.status_code,
            headers=headers,
            stream=_BoundedBody(response),
            request=response.request,
            extensions=response.extensions,
            history=response.history,
        )
        bounded.next_request = response.next_request
        if not stream:
            try:
                await bounded.aread()
            except BaseException:
                await bounded.aclose()
                raise
        return bounded


class _BoundedBody(httpx2.AsyncByteStream):
    """The decoded body of a response, up to the limit."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response
        kind = response.headers.get("content-type", "").lower()
        self._is_endless = kind.startswith("text/event-stream")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        total = 0
        async for chunk in self._response.aiter_bytes():
            total += len(chunk)
            if total > MAX_BODY and not self._is_endless:
                raise httpx2.StreamError(Message("its answer is larger than {most} MiB", most=MAX_BODY >> 20))
            yield chunk
            if len(chunk) >= _LARGE:
                await asyncio.sleep(0)  # a compressed megabyte is a thousand of these: let others work in between

    async def aclose(self) -> None:
        await self._response.aclose()
