"""JSON-RPC over the pipes of a child: one message a line, each way.

A line that is no message is noise and goes into the server's log; one that was meant to be a reply fails its request.
A line over ``MAX_LINE`` ends the connection.
At the end stdin is closed; what has not ended by itself after ``GRACE_S`` is stopped, with everything it started.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable
from typing import Final

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from toolyard.dialects.mcp_messages import find_reply_id
from toolyard.plugins.children import Children
from toolyard.plugins.launch import ChildProcess
from toolyard.plugins.pipes import PipeReader

UNREADABLE: Final = "Failed to parse"  # so the SDK begins when it fails a request for the same reason over HTTP
MAX_LINE: Final = 16 * 2**20
GRACE_S: Final = 1.0
Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
Outgoing = MemoryObjectSendStream[SessionMessage]
Log = Callable[[bytes], None]


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
