"""``toolyard mcp serve``: one client on stdin and stdout. stdout carries the protocol and nothing else.

The end of stdin is the end of the questions, not of the answers: what was asked before is answered, as long as somebody
reads stdout.

Pipes are read and written on the event loop: the SDK's own way takes a thread for each line, which costs as much as a
third of a call (bench row "mcp"). What is no pipe, such as a file, is left to the SDK.

Calls that end at once are answered without the SDK, which takes longer to read a call and to write its result than most
calls take to run (bench row "mcp"). So a call with the same envelope as one that the SDK has accepted on this
connection begins here. One that has not ended after ``QUICK_S``, that raises, or that is cancelled is handed over: the
SDK gets its line, and attaches to the call that is running. Approvals, progress, cancelling and errors stay with the
SDK alone."""

import asyncio
import contextlib
import fcntl
import os
import stat
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, cast

import mcp_types as types
from mcp.shared.message import SessionMessage
from mcp_types import SERVER_INFO_META_KEY
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolyard.dialects.mcp_messages import (
    RequestId,
    add_completion,
    parse_call,
    parse_cancelled_id,
    read_cancelled_id,
    write_response,
)
from toolyard.mcp.calls import QUICK_S, CallRun
from toolyard.mcp.resources import build_task_links
from toolyard.mcp.server import McpServer
from toolyard.protocol.json import JsonObject
from toolyard.yard.yard import Yard

_MAX_QUEUED = 64  # lines that wait for the SDK
_FLUSH_S = 60.0  # for a client that reads the last answers slowly
MAX_LINE: Final = 64 * 2**20  # of one message; a longer one ends the connection
_OLDEST: Final = "2025-06-18"  # the SDK leaves parts of a result out for clients that are older


async def serve(yard: Yard) -> None:
    """Serve until the client has closed stdin and got its answers, or reads them no more."""
    caller = f"mcp:{yard.config.project.resolve()}"
    server = McpServer(yard, lambda _: caller)
    async with _open_streams(server) as (incoming, outgoing, gone), server.running(refresh=True):
        requests = _OpenRequests(server, gone)
        await server.sdk.run(
            cast("Any", _Incoming(incoming, requests)),
            cast("Any", _Outgoing(outgoing, requests)),
            server.sdk.create_initialization_options(),
        )


@contextlib.asynccontextmanager
async def _open_streams(server: McpServer) -> "AsyncIterator[tuple[Any, Any, asyncio.Future[None]]]":
    """Yield the messages that come, a stream for those that go, and a future that is done when nobody reads these."""
    from mcp.server.stdio import stdio_server

    loop = asyncio.get_running_loop()
    if not all(_is_pipe(fd) for fd in (0, 1)):
        async with stdio_server() as (received, sent):
            yield received, sent, loop.create_future()
        return
    reader, flow = asyncio.StreamReader(limit=MAX_LINE), _OutputProtocol()
    with _redirect(0, os.open(os.devnull, os.O_RDONLY)) as stdin, _redirect(1, os.dup(2)) as stdout:
        incoming, outgoing = os.fdopen(stdin, "rb", buffering=0), os.fdopen(stdout, "wb", buffering=0)
        hearing, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), incoming)
        saying, _ = await loop.connect_write_pipe(lambda: flow, outgoing)
        writer = asyncio.StreamWriter(saying, flow, None, loop)
        lines = _Lines(reader)
        output = _Output(writer)
        sorting = asyncio.create_task(lines.sort(QuickCalls(server, output.write_line, lines.put), writer.drain))
        try:
            async with stdio_server(cast("Any", lines), cast("Any", output)) as (received, sent):
                yield received, sent, flow.closed
        finally:
            sorting.cancel()
            await asyncio.gather(sorting, return_exceptions=True)
            hearing.close()
            saying.close()
            await asyncio.wait({flow.closed}, timeout=_FLUSH_S)


def _is_pipe(fd: int) -> bool:
    try:
        mode = os.fstat(fd).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


@contextlib.contextmanager
def _redirect(fd: int, instead: int) -> Iterator[int]:
    """Give another descriptor for a standard stream; what prints or reads there meanwhile gets ``instead``."""
    own = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
    back = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
    os.dup2(instead, fd)
    os.close(instead)
    try:
        yield own
    finally:
        os.dup2(back, fd)
        os.set_blocking(fd, True)
        os.close(back)


class QuickCalls:
    def __init__(
        self, server: McpServer, write: Callable[[bytes], None], pass_on: Callable[[bytes], Awaitable[None]]
    ) -> None:
        """``pass_on`` gives a line to the SDK."""
        self._server, self._write, self._pass_on = server, write, pass_on
        self._running: dict[RequestId, _QuickCall] = {}
        self._handing: set[asyncio.Task[None]] = set()

    async def take(self, line: bytes) -> bool:
        """Begin the call of a line; False when the line is for the SDK."""
        if self._running and (cancelled := parse_cancelled_id(line)) is not None:
            await self._hand_over(cancelled)
            return False
        request = parse_call(line)
        if request is None or request[0] in self._running:
            return False
        id_, params = request
        run, version = self._begin(params)
        if run is None:
            return False
        timer = asyncio.get_running_loop().call_later(QUICK_S, self._hand_over_soon, id_)
        self._running[id_] = _QuickCall(line, run, version, timer)
        run.task.add_done_callback(lambda _: self._finish(id_))
        return True

    async def hand_over_all(self) -> None:
        """Give all calls that have not ended to the SDK, which answers them."""
        for id_ in [*self._running]:
            await self._hand_over(id_)
        await asyncio.gather(*self._handing)

    def _begin(self, params: JsonObject) -> tuple[CallRun | None, str]:
        version = self._server.find_accepted_version(params.get("_meta"))
        arguments = params.get("arguments")
        call = self._server.build_call(str(params["name"]), arguments if isinstance(arguments, dict) else {}, None)
        if version < _OLDEST or call is None or self._server.calls.is_repeated(call):
            return None, version
        return self._server.calls.start(call), version

    def _finish(self, id_: RequestId) -> None:
        """Answer a call that has ended."""
        call = self._running.get(id_)
        if call is None:
            return  # the SDK has it
        task = call.run.task
        if task.cancelled() or task.exception() is not None or build_task_links(task.result().envelope):
            self._hand_over_soon(id_)
            return
        del self._running[id_]
        call.timer.cancel()
        result = self._server.calls.express(call.run.call, task.result(), call.version)
        if call.version in MODERN_PROTOCOL_VERSIONS:
            result = add_completion(result, {SERVER_INFO_META_KEY: self._server.sdk.server_info_stamp})
        self._write(write_response(id_, result))

    def _hand_over_soon(self, id_: RequestId) -> None:
        handing = asyncio.ensure_future(self._hand_over(id_))
        self._handing.add(handing)
        handing.add_done_callback(self._handing.discard)

    async def _hand_over(self, id_: RequestId) -> None:
        call = self._running.pop(id_, None)
        if call is not None:
            call.timer.cancel()
            self._server.calls.hand_over(id_, call.run)
            await self._pass_on(call.line)


class _Lines:
    """The lines of stdin that are for the SDK, as it wants to read them."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._lines: asyncio.Queue[bytes] = asyncio.Queue(_MAX_QUEUED)

    async def sort(self, calls: QuickCalls, drain: Callable[[], Awaitable[None]]) -> None:
        """Read all lines: begin the quick calls, keep the rest for the SDK. Waits for a client that reads slowly."""
        while line := await self._read_line():
            with contextlib.suppress(OSError):  # the client is gone; the end of stdin says so
                await drain()
            if not await calls.take(line):
                await self.put(line)
        await calls.hand_over_all()
        await self.put(b"")

    async def put(self, line: bytes) -> None:
        await self._lines.put(line)

    async def _read_line(self) -> bytes:
        try:
            return await self._reader.readline()
        except (ValueError, OSError):  # it is too long, or the other side is gone
            return b""

    def __aiter__(self) -> "_Lines":
        return self

    async def __anext__(self) -> str:
        line = await self._lines.get()
        if not line:
            raise StopAsyncIteration
        return line.decode("utf-8", "replace")


class _Output:
    """stdout, as the SDK wants to write it."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    async def write(self, text: str) -> None:
        self.write_line(text.encode(errors="replace"))
        with contextlib.suppress(OSError):  # the client is gone; the end of stdin says so
            await self._writer.drain()

    def write_line(self, line: bytes) -> None:
        if not self._writer.is_closing():  # uvloop raises RuntimeError for a client that is gone
            self._writer.write(line)

    async def flush(self) -> None:
        """Do nothing: ``write`` has sent it already."""


class _OutputProtocol(asyncio.streams.FlowControlMixin):
    """The other side of stdout. ``closed`` is done when all is written, or nobody reads any more."""

    def __init__(self) -> None:
        super().__init__()
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if not self.closed.done():
            self.closed.set_result(None)


class _OpenRequests:
    """The requests that the SDK has been given and has not answered."""

    def __init__(self, server: McpServer, gone: "asyncio.Future[None]") -> None:
        self._server, self._gone = server, gone
        self._ids: set[types.RequestId] = set()
        self._all_answered = asyncio.Event()

    def note_received(self, item: object) -> None:
        message = item.message if isinstance(item, SessionMessage) else None
        if isinstance(message, types.JSONRPCRequest):
            self._ids.add(message.id)
        elif isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
            self._note_answered(read_cancelled_id(message.params))

    def note_sent(self, item: SessionMessage) -> None:
        if isinstance(item.message, types.JSONRPCResponse | types.JSONRPCError):
            self._note_answered(item.message.id)

    def _note_answered(self, id_: object) -> None:
        self._ids -= {id_}
        if not self._ids:
            self._all_answered.set()

    async def wait_answered(self) -> None:
        """Wait until each is answered, or nobody reads the answers. Ends the requests that only wait for news."""
        self._server.changes.listen.close()
        if self._ids:
            self._all_answered.clear()
            answered: asyncio.Future[Any] = asyncio.ensure_future(self._all_answered.wait())
            try:
                await asyncio.wait({answered, self._gone}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                answered.cancel()


class _Incoming:
    """The messages from the client, as the SDK wants to read them."""

    def __init__(self, stream: Any, requests: _OpenRequests) -> None:
        self._stream, self._requests = stream, requests

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __aiter__(self) -> "_Incoming":
        return self

    async def __anext__(self) -> Any:
        try:
            item = await self._stream.__anext__()
        except StopAsyncIteration:
            await self._requests.wait_answered()
            raise
        self._requests.note_received(item)
        return item

    async def __aenter__(self) -> "_Incoming":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stream.aclose()


class _Outgoing:
    """The messages to the client, as the SDK wants to write them."""

    def __init__(self, stream: Any, requests: _OpenRequests) -> None:
        self._stream, self._requests = stream, requests

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def send(self, item: SessionMessage) -> None:
        await self._stream.send(item)
        self._requests.note_sent(item)

    async def __aenter__(self) -> "_Outgoing":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stream.aclose()


@dataclass(frozen=True, slots=True)
class _QuickCall:
    line: bytes
    run: CallRun
    version: str
    timer: asyncio.TimerHandle
