"""One connection to an MCP server, in a task of its own: opened, checked, used by any number of calls, closed.

The SDK wants a connection to be opened and closed by one task; calls come from others. Before it is used, and again
whenever the server says that its tools have changed, they are compared with what the owner has allowed.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from importlib.metadata import version
from typing import Any, Final

import mcp_types as types
from httpx2 import HTTPError
from mcp import Client
from mcp.client.session import MessageHandlerFnT
from mcp.shared.exceptions import MCPError

from toolyard.plugins.mcp.definition import MAX_TOOLS, Definition, problem
from toolyard.protocol.failure import Failure, Reason
from toolyard.protocol.json import JsonObject

START_S: Final = 30.0
_MAX_PAGES = 50

Transport = Callable[[], contextlib.AbstractAsyncContextManager[Any]]
Check = Callable[[list[Definition]], None]
"""Raises Failure when these tools are not those that were allowed."""


class Connection:
    """``ended`` is done when it is over; before that ``crashed`` is told if it was open and nobody asked it to end."""

    def __init__(self, name: str, transport: Transport, check: Check, died: "asyncio.Future[int] | None") -> None:
        self._name, self._transport, self._check, self._died = name, transport, check, died
        self.crashed: Callable[[], None] = lambda: None
        self._stop = asyncio.Event()
        self._changes = self._checked = 0  # how often its tools have changed, and up to which that is checked
        loop = asyncio.get_running_loop()
        self._opened: asyncio.Future[tuple[Client, list[Definition]]] = loop.create_future()
        self.ended = asyncio.create_task(self._live())

    async def opened(self) -> tuple[Client, list[Definition]]:
        """Until it can be used: the client, and the tools the server has. Raises Failure."""
        try:
            async with asyncio.timeout(START_S):
                return await asyncio.shield(self._opened)
        except TimeoutError:
            await self.close()
            raise Failure(Reason.START_FAILED, f"{self._name} did not answer within {START_S:g} s.") from None

    async def call(self, tool: str, arguments: JsonObject) -> types.CallToolResult:
        client, _ = await self.opened()
        if (changes := self._changes) != self._checked:
            try:
                self._check(await listed(client))
            except Failure:
                self._stop.set()
                raise
            self._checked = changes
        params = types.CallToolRequestParams(name=tool, arguments=arguments)
        # Not the client's ``call_tool``: that evaluates the server's output schema, here and without a limit.
        return await client.session.send_request(types.CallToolRequest(params=params), types.CallToolResult)

    async def close(self) -> None:
        """Asked twice is asked once."""
        if not self._stop.is_set() and not self._opened.done():
            self.ended.cancel()
        self._stop.set()
        await asyncio.wait({self.ended})

    async def _live(self) -> None:
        try:
            async with self._transport() as streams, _client(streams, self._hear) as client:
                tools = await listed(client)
                self._check(tools)
                self._opened.set_result((client, tools))
                await self._until_the_end()
        except (Failure, OSError, MCPError, HTTPError, RuntimeError, ValueError, ExceptionGroup) as error:
            first = _first(error)
            said = str(first) or type(first).__name__
            failure = Failure(Reason.START_FAILED, f"{self._name} did not start: {said}.")
            self._fail(first if isinstance(first, Failure) else failure)
        finally:
            self._fail(Failure(Reason.CANCELLED, f"{self._name} was stopped."))
            if not self._opened.exception() and not self._stop.is_set():
                self.crashed()

    def _fail(self, failure: Failure) -> None:
        if not self._opened.done():
            self._opened.set_exception(failure)
            self._opened.exception()  # it has been seen, whether or not somebody waits

    async def _until_the_end(self) -> None:
        stopping = asyncio.ensure_future(self._stop.wait())
        waits: set[asyncio.Future[Any]] = {stopping}
        if self._died is not None:
            waits.add(self._died)
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()

    async def _hear(self, message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._changes += 1


@contextlib.asynccontextmanager
async def _client(streams: Any, hear: MessageHandlerFnT) -> AsyncIterator[Client]:
    @contextlib.asynccontextmanager
    async def transport() -> AsyncIterator[Any]:
        yield streams

    info = types.Implementation(name="toolyard", version=version("toolyard"))
    async with Client(transport(), client_info=info, message_handler=hear, cache=None) as client:
        yield client


async def listed(client: Client) -> list[Definition]:
    """All tools of a server. Raises Failure when they cannot be offered."""
    found: list[Definition] = []
    cursor: str | None = None
    for _ in range(_MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        found += [
            Definition(
                name=tool.name, title=tool.title or "", description=tool.description or "",
                schema=tool.input_schema, output_schema=tool.output_schema,
            )
            for tool in page.tools
        ]  # fmt: skip
        cursor = page.next_cursor
        if cursor is None or len(found) > MAX_TOOLS:
            break
    wrong = next((f"{one.name[:60]}: {why}" for one in found if (why := problem(one))), "")
    if len(found) > MAX_TOOLS:
        wrong = f"it has more than {MAX_TOOLS} tools"
    if wrong:
        raise Failure(Reason.INVALID_OUTPUT, f"The tools of this MCP server cannot be used: {wrong}.")
    return found


def _first(error: BaseException) -> BaseException:
    """What lies under the groups that the SDK's task groups make of it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
