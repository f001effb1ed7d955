"""``toolyard mcp serve``: one client on stdin and stdout. stdout carries the protocol and nothing else.

Pipes are read and written on the event loop: the SDK's own way takes a thread for each line, which costs as much as a
third of a call (bench row "mcp"). What is no pipe, such as a file, is left to the SDK.
"""

import asyncio
import contextlib
import fcntl
import os
import stat
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, Final, cast

from toolyard.mcp.quick_calls import QuickCalls
from toolyard.mcp.server import McpServer
from toolyard.yard.yard import Yard

_MAX_QUEUED = 64  # lines that wait for the SDK
MAX_LINE: Final = 64 * 2**20  # of one message; a longer one ends the connection


async def serve(yard: Yard) -> None:
    """Serve until the client closes stdin."""
    caller = f"mcp:{yard.config.project.resolve()}"
    server = McpServer(yard, lambda _: caller)
    async with _open_streams(server) as (incoming, outgoing), server.running(refresh=True):
        await server.sdk.run(incoming, outgoing, server.sdk.create_initialization_options())


@contextlib.asynccontextmanager
async def _open_streams(server: McpServer) -> AsyncIterator[tuple[Any, Any]]:
    from mcp.server.stdio import stdio_server

    if not all(_is_pipe(fd) for fd in (0, 1)):
        async with stdio_server() as streams:
            yield streams
        return
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader(limit=MAX_LINE)
    with _redirect(0, os.open(os.devnull, os.O_RDONLY)) as stdin, _redirect(1, os.dup(2)) as stdout:
        incoming, outgoing = os.fdopen(stdin, "rb", buffering=0), os.fdopen(stdout, "wb", buffering=0)
        hearing, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), incoming)
        saying, flow = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, outgoing)
        writer = asyncio.StreamWriter(saying, flow, None, loop)
        lines = _Lines(reader)
        output: Any = _Output(writer)
        sorting = asyncio.create_task(lines.sort(QuickCalls(server, writer.write, lines.put), writer.drain))
        try:
            async with stdio_server(cast("Any", lines), output) as streams:
                yield streams
        finally:
            sorting.cancel()
            await asyncio.gather(sorting, return_exceptions=True)
            hearing.close()
            saying.close()


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
        with contextlib.suppress(OSError):  # the client is gone; the end of stdin says so
            self._writer.write(text.encode(errors="replace"))
            await self._writer.drain()

    async def flush(self) -> None:
        """Do nothing: ``write`` has sent it already."""
