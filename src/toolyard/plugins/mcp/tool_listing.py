"""The tools that an MCP server lists: those that can be offered, and why each of the others cannot.

One tool that is no tool does not spoil the rest. The SDK refuses a whole page for it, so such tools are taken out of
the messages before it reads them.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import mcp_types as types
from mcp.shared.message import SessionMessage
from mcp_types import methods
from pydantic import ValidationError

from toolyard.message import Message, cut_message
from toolyard.plugins.mcp.definition import MAX_TOOLS, ToolDefinition, ToolListing, find_problem

if TYPE_CHECKING:
    from mcp import Client

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
            return Message("mcp.unreadable_tool", "its definition cannot be read ({problem})", problem=problem)
        return ""


async def list_tools(client: "Client", stream: LenientStream) -> ToolListing:
    """Ask a server for all its tools."""
    stream.left_out.clear()
    tools: dict[str, ToolDefinition] = {}
    left_out: dict[str, str] = {}
    cursor: str | None = None
    for _ in range(_MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        for tool in page.tools:
            one = _to_definition(tool)
            why = (
                Message("mcp.tool_name_taken", "there is another tool of this name")
                if one.name in tools
                else find_problem(one)
            )
            if not why and len(tools) >= MAX_TOOLS:
                why = Message(
                    "mcp.too_many_tools", "more than {most} tools of one server are not offered", most=MAX_TOOLS
                )
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
