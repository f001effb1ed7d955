"""A connection to an MCP server, in a task of its own: opened, checked, shared by calls, closed.

The SDK wants a connection to be opened and closed by one task; calls come from others. Before it is used, and again
whenever the server says that its tools have changed, they are listed; the gate then says which of them may be called.
One tool that is no tool does not spoil the rest: the SDK refuses a whole page for it, so such tools are taken out of
the messages before it reads them.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from importlib.metadata import version
from typing import Any, Final

import mcp_types as types
from httpx2 import HTTPError
from mcp import Client
from mcp.client.session import MessageHandlerFnT
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp_types import methods
from pydantic import ValidationError

from toolyard.message import Message, cut_message, strip_period
from toolyard.plugins.mcp.definition import MAX_TOOLS, ToolDefinition, ToolListing, find_problem
from toolyard.plugins.mcp.pins import ToolGate
from toolyard.protocol.envelope import Failure, Reason
from toolyard.protocol.json import JsonObject

START_S: Final = 30.0
_PAUSE_S = 1.0  # between two listings that nobody waits for
Transport = Callable[[], contextlib.AbstractAsyncContextManager[Any]]
Explain = Callable[[], str]
"""Why it did not start, as far as the transport knows; empty when it does not."""
_MAX_PAGES: Final = 50
_LIST: Final = "tools/list"


class LenientStream:
    """The messages of a server, without tools that the SDK cannot parse. ``version`` is that of the protocol."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.version = ""
        self.left_out: dict[str, str] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __aiter__(self) -> "LenientStream":
        return self

    async def __anext__(self) -> Any:
        return self._clean(await self._stream.__anext__())

    async def __aenter__(self) -> "LenientStream":
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        return await self._stream.__aexit__(*error)

    async def receive(self) -> Any:
        return self._clean(await self._stream.receive())

    def _clean(self, item: Any) -> Any:
        message = item.message if isinstance(item, SessionMessage) else None
        tools = message.result.get("tools") if isinstance(message, types.JSONRPCResponse) else None
        if not self.version or not isinstance(message, types.JSONRPCResponse) or not isinstance(tools, list):
            return item
        if not self._problem(message.result, tools):
            return item
        readable = []
        for tool in tools:
            why = self._problem(message.result, [tool])
            if why:
                name = tool.get("name") if isinstance(tool, dict) else None
                self.left_out[name if isinstance(name, str) else "a tool without a name"] = why
            else:
                readable.append(tool)
        result = {**message.result, "tools": readable}
        return replace(item, message=message.model_copy(update={"result": result}))

    def _problem(self, result: dict[str, Any], tools: list[Any]) -> str:
        try:
            methods.parse_server_result(_LIST, self.version, {**result, "tools": tools})
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            where = ".".join(map(str, first["loc"][2:]))
            problem = f"{where}: {first['msg']}" if where else first["msg"]
            return Message("its definition cannot be read ({problem})", problem=problem)
        return ""


class Connection:
    """A connection. ``ended`` is done when it is over; ``on_crash`` is called when it ended without being asked to."""

    def __init__(
        self, name: str, transport: Transport, gate: ToolGate, died: "asyncio.Future[int] | None", explain: Explain
    ) -> None:
        self._name, self._transport, self._gate, self._died, self._explain = name, transport, gate, died, explain
        self.on_crash: Callable[[], None] = lambda: None
        self._stop, self._changed = asyncio.Event(), asyncio.Event()
        self._changes = self._checked = 0  # how often its tools have changed, and up to which that is checked
        loop = asyncio.get_running_loop()
        self._opened: asyncio.Future[tuple[Client, LenientStream]] = loop.create_future()
        self.ended = asyncio.create_task(self._run())

    async def wait_opened(self) -> tuple[Client, LenientStream]:
        """Wait until it can be used. Return the client, and the stream of its messages. Raises Failure."""
        if self._opened.done():
            return self._opened.result()
        try:
            async with asyncio.timeout(START_S):
                return await asyncio.shield(self._opened)
        except TimeoutError:
            await self.close()
            message = Message(
                "The MCP server {name} did not answer within {start_s:g} s.", name=self._name, start_s=START_S
            )
            raise Failure(Reason.START_FAILED, message) from None

    async def call(self, tool: str, arguments: JsonObject) -> types.CallToolResult:
        """Call an allowed tool. Raises Failure, and what the SDK raises."""
        client, _ = await self.wait_opened()
        if self._changes != self._checked:
            await self.list_tools()
        self._gate.require_allowed(tool)
        params = types.CallToolRequestParams(name=tool, arguments=arguments)
        # Not the client's ``call_tool``: that evaluates the server's output schema, here and without a limit.
        return await client.session.send_request(types.CallToolRequest(params=params), types.CallToolResult)

    async def list_tools(self) -> ToolListing:
        """Ask for the current tools. Raises Failure, and what the SDK raises."""
        client, stream = await self.wait_opened()
        changes = self._changes
        listing = await list_tools(client, stream)
        await self._gate.set_listing(listing)
        self._checked = changes
        return listing

    async def close(self) -> None:
        """Close the connection; a second call does nothing."""
        if not self._stop.is_set() and not self._opened.done():
            self.ended.cancel()
        self._stop.set()
        await asyncio.wait({self.ended})

    async def _run(self) -> None:
        try:
            async with self._transport() as (incoming, outgoing):
                stream = LenientStream(incoming)
                async with _client((stream, outgoing), self._on_message) as client:
                    stream.version = client.protocol_version
                    await self._gate.set_listing(await list_tools(client, stream))
                    self._opened.set_result((client, stream))
                    following = asyncio.create_task(self._follow_changes())
                    try:
                        await self._wait_end()
                    finally:
                        following.cancel()
                        await asyncio.wait({following})
        except (Failure, OSError, MCPError, HTTPError, RuntimeError, ValueError, ExceptionGroup) as error:
            first = _root_cause(error)
            why = self._explain() or strip_period(str(first) or type(first).__name__)
            failure = Failure(
                Reason.START_FAILED, Message("The MCP server {name} did not start: {why}.", name=self._name, why=why)
            )
            self._fail(first if isinstance(first, Failure) else failure)
        finally:
            self._fail(Failure(Reason.CANCELLED, Message("{name} was stopped.", name=self._name)))
            if not self._opened.exception() and not self._stop.is_set():
                self.on_crash()

    def _fail(self, failure: Failure) -> None:
        if not self._opened.done():
            self._opened.set_exception(failure)
            self._opened.exception()  # it has been seen, whether or not somebody waits

    async def _wait_end(self) -> None:
        stopping = asyncio.ensure_future(self._stop.wait())
        waits: set[asyncio.Future[Any]] = {stopping}
        if self._died is not None:
            waits.add(self._died)
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()

    async def _follow_changes(self) -> None:
        """List the tools when they have changed, so that reviews are offered; calls do not wait for this."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            with contextlib.suppress(Failure, MCPError, HTTPError, OSError, RuntimeError, ValueError):
                async with asyncio.timeout(START_S):
                    await self.list_tools()
            await asyncio.sleep(_PAUSE_S)

    async def _on_message(self, message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._changes += 1
            self._changed.set()


@contextlib.asynccontextmanager
async def _client(streams: Any, hear: MessageHandlerFnT) -> AsyncIterator[Client]:
    @contextlib.asynccontextmanager
    async def transport() -> AsyncIterator[Any]:
        yield streams

    info = types.Implementation(name="toolyard", version=version("toolyard"))
    async with Client(transport(), client_info=info, message_handler=hear, cache=None) as client:
        yield client


def _root_cause(error: BaseException) -> BaseException:
    """Return the first error inside the exception groups that the SDK's task groups raise."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def list_tools(client: Client, stream: LenientStream) -> ToolListing:
    """Ask a server for all its tools."""
    stream.left_out.clear()
    tools: dict[str, ToolDefinition] = {}
    left_out: dict[str, str] = {}
    cursor: str | None = None
    for _ in range(_MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        for tool in page.tools:
            one = _to_definition(tool)
            why = Message("there is another tool of this name") if one.name in tools else find_problem(one)
            if not why and len(tools) >= MAX_TOOLS:
                why = Message("more than {most} tools of one server are not offered", most=MAX_TOOLS)
            if why:
                left_out.setdefault(one.name, why)
            else:
                tools[one.name] = one
        cursor = page.next_cursor
        if cursor is None or len(tools) >= MAX_TOOLS:
            break
    reasons = {name[:200]: cut_message(why, 300) for name, why in (stream.left_out | left_out).items()}
    return ToolListing(tools=tuple(tools.values()), left_out=dict(list(reasons.items())[:MAX_TOOLS]))


def _to_definition(tool: types.Tool) -> ToolDefinition:
    return ToolDefinition(
        name=tool.name,
        title=tool.title or "",
        description=tool.description or "",
        schema=tool.input_schema,
        output_schema=tool.output_schema,
    )
