"""A tool of an MCP server as a tool like any other, and its ``CallToolResult`` as a Result or a Failure.

A server that answers in envelopes, as Toolyard itself does in ``_meta``, is taken at its word. Structured content is
``data``, and goes to MCP clients as it came. Texts that only repeat it are left out, so that a model reads it once.
"""

import json
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import mcp_types as types

from toolyard.dialects.mcp_messages import ENVELOPE
from toolyard.message import Message, strip_period
from toolyard.plugins.mcp.definition import ToolDefinition
from toolyard.plugins.mcp.servers import McpServers
from toolyard.protocol.arguments import coerce_value
from toolyard.protocol.envelope import ErrorCode, Failure, Reason
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.plugin_answers.plugin_content import is_repeated, is_written, read_parts, to_pretty_json
from toolyard.protocol.plugin_answers.plugin_result import build_structured_result, read_plugin_result
from toolyard.protocol.tool import SIGNERS, Checkpoint, Result, Risk, ToolCall, ToolSpec, confirm_start

if TYPE_CHECKING:
    from mcp_types import CallToolResult

    from toolyard.plugins.mcp.server_connection import Connection

TIMEOUT_S: Final = 120.0  # the start of the server included


class McpTool:
    def __init__(
        self, servers: McpServers, server: str, definition: ToolDefinition, *, risk: Risk, launch: str
    ) -> None:
        """``launch`` is the digest of the command behind it."""
        self._servers, self.server, self.definition = servers, server, definition
        self._spec = definition.to_spec(server, risk=risk, launch=launch, timeout_s=TIMEOUT_S)

    @property
    def spec(self) -> ToolSpec:
        return self._spec

    @cached_property
    def _output_schema(self) -> str | None:
        schema = self.definition.output_schema
        return None if schema is None else json.dumps(schema)

    @property
    def is_withheld(self) -> bool:
        """True while it waits for a review, or is gone."""
        return self._servers.is_withheld(self.server, self.definition.name)

    def check(self, call: ToolCall) -> None:  # noqa: ARG002 whatever its arguments are
        """Raise Failure when the tool waits for a review: nobody is asked about such a call."""
        self._servers.require_allowed(self.server, self.definition.name)

    async def run(self, call: ToolCall, checkpoint: Checkpoint) -> Result:
        from toolyard.plugins.mcp.mcp_tool import to_result

        async with self._servers.call_slots(self.server):
            checkpoint()
            connection = await self._servers.get_connection(self.server)
            await confirm_start(checkpoint)
            refusals = self._servers.context.network.refusals
            try:
                result = await self._call(connection, call)
                return to_result(self._spec.name, result)
            except Failure as failure:
                self._servers.add_access_step(self.server, failure, refusals=refusals)
                raise

    async def _call(self, connection: "Connection", call: ToolCall) -> "CallToolResult":
        """Return what the server answers. Raises Failure."""
        from mcp.shared.exceptions import MCPError
        from mcp_types import CONNECTION_CLOSED, PARSE_ERROR

        from toolyard.plugins.mcp.server_start import UNREADABLE

        try:
            result = await connection.call(self.definition.name, self._build_arguments(call))
        except MCPError as error:
            if error.code == PARSE_ERROR and error.message.startswith(UNREADABLE):
                reason = error.message.partition(": ")[2]
                if "validation error" in reason:  # of pydantic, which quotes the reply
                    reason = Message("its reply is not JSON, or is nested too deeply")
                raise self._invalid_output(reason) from error
            raise self._protocol_failure(error.message, is_over=error.code == CONNECTION_CLOSED) from error
        except (RuntimeError, ValueError) as error:  # so the SDK says that a result is none
            raise self._invalid_output(str(error)) from error
        await self._check_output(result)
        return result

    async def _check_output(self, result: "CallToolResult") -> None:
        """Raise Failure when a result does not fit the declared output schema. Error reports are exempt."""
        schema = self._output_schema
        if schema is None or result.is_error:
            return
        problem: str | None = Message("it has an output schema but gave no structured content")
        if result.structured_content is not None or "structured_content" in result.model_fields_set:
            problem = await self._servers.outputs.find_problem(self.server, schema, result.structured_content)
        if problem:
            raise self._invalid_output(problem)

    def _protocol_failure(self, message: str, *, is_over: bool) -> Failure:
        """Build the failure for a protocol error; ``is_over``: the connection has ended."""
        if not is_over:
            return Failure(ErrorCode.EXECUTION_ERROR, message or Message("The MCP server reported an error."))
        ended = Message("The MCP server {server} ended during the call.", server=self.server)
        if message.lower() not in ("", "connection closed"):
            ended = Message(
                "The MCP server {server} ended during the call: {why}.", server=self.server, why=strip_period(message)
            )
        return Failure(Reason.CRASHED, ended)

    def _invalid_output(self, problem: str) -> Failure:
        return Failure(
            Reason.INVALID_OUTPUT,
            Message(
                "{name} gave no usable result: {problem}.",
                name=self._spec.name,
                problem=problem if isinstance(problem, Message) else problem[:500],
            ),
        )

    def _build_arguments(self, call: ToolCall) -> JsonObject:
        """Convert texts to the types of the schema; the server checks the arguments itself."""
        properties = self.definition.schema.get("properties")
        known = properties if isinstance(properties, dict) else {}
        return {
            name: coerce_value(value, schema) if isinstance(schema := known.get(name), dict) else value
            for name, value in call.arguments.items()
            if name in known or name not in SIGNERS
        }


def to_result(tool: str, result: types.CallToolResult) -> Result:
    structured: Json = result.structured_content
    has_structured = structured is not None or "structured_content" in result.model_fields_set
    mcp: JsonObject = {"structured_content": structured} if has_structured else {}
    for envelope in ((result.meta or {}).get(ENVELOPE), structured):
        if isinstance(envelope, dict) and {"status", "data", "text", "stats", "context"} <= envelope.keys():
            return _add_mcp(read_plugin_result(tool, envelope), mcp)
    content: list[Json] = [_to_part(block) for block in result.content]
    if result.is_error:
        message = "\n".join(_split(content)[0]).strip() or Message("{tool} failed and did not say why.", tool=tool)
        raise Failure(ErrorCode.EXECUTION_ERROR, message, data=structured if isinstance(structured, dict) else {})
    if not has_structured:
        return _add_mcp(read_plugin_result(tool, {"status": "success", "result": {"content": content}}), mcp)
    return _read_structured(tool, structured, content, mcp)


def _read_structured(tool: str, structured: Json, content: list[Json], mcp: JsonObject) -> Result:
    """Return a result whose data is the structured content, and whose parts say all of it, once."""
    data: JsonObject = structured if isinstance(structured, dict) else {"result": structured}
    texts, media = _split(content)
    written = to_pretty_json(structured)
    if not texts or _repeats_value(texts, structured):
        text = texts[0] if len(texts) == 1 else written
    elif data.keys() == {"result"} and _repeats_value(texts, data["result"]):
        text = texts[0] if len(texts) == 1 else to_pretty_json(data["result"])
    else:  # not every client shows its model more than the parts
        parts = read_parts([*content, {"type": "text", "text": written}])
        return build_structured_result(tool, data, "\n".join(texts), parts, mcp)
    return build_structured_result(tool, data, text, read_parts([{"type": "text", "text": text}, *media]), mcp)


def _add_mcp(result: Result, mcp: JsonObject) -> Result:
    return replace(result, extras=replace(result.extras, mcp=mcp))


def _split(content: list[Json]) -> tuple[list[str], list[Json]]:
    """Split content into its texts and everything else."""
    texts = [str(part["text"]) for part in content if isinstance(part, dict) and part["type"] == "text"]
    return texts, [part for part in content if not (isinstance(part, dict) and part["type"] == "text")]


def _repeats_value(texts: list[str], value: Json) -> bool:
    """Return whether texts only repeat this value as JSON, as servers do for clients of older protocols."""
    if len(texts) == 1:
        return is_repeated(value, texts[0]) or is_written(value, texts[0])
    if not isinstance(value, list) or len(texts) != len(value) or not texts:
        return False
    return all(_repeats_value([text], item) for text, item in zip(texts, value, strict=True))


def _to_part(block: types.ContentBlock) -> dict[str, Any]:
    """Convert a content block to the form in which plugins write content."""
    match block:
        case types.TextContent():
            return {"type": "text", "text": block.text}
        case types.ImageContent() | types.AudioContent():
            return {"type": "image_url", "image_url": {"url": f"data:{block.mime_type};base64,{block.data}"}}
        case types.ResourceLink():
            return {"type": "text", "text": f"{block.name}: {block.uri}"}
        case types.EmbeddedResource(resource=types.TextResourceContents() as inner):
            return {"type": "text", "text": inner.text}
        case types.EmbeddedResource(resource=types.BlobResourceContents() as inner):
            mime = inner.mime_type or "application/octet-stream"
            return {
                "type": "image_url",
                "name": str(inner.uri),
                "image_url": {"url": f"data:{mime};base64,{inner.blob}"},
            }
        case _:
            return {"type": "text", "text": block.model_dump_json(by_alias=True, exclude_none=True)}
