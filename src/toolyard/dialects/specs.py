"""The definition of a tool in foreign formats: OpenAI, Anthropic, MCP and VCPToolBox, all from one ToolSpec."""

from enum import StrEnum
from typing import Any, Final

from toolyard.dialects.plain_name import plain_name
from toolyard.protocol.envelope import ErrorCode, Status
from toolyard.protocol.json import JsonObject
from toolyard.protocol.tool import Risk, ToolSpec
from toolyard.protocol.tool_text import write_tool

ENVELOPE: Final[JsonObject] = {
    "type": "object",
    "required": ["status", "data", "text", "stats", "context"],
    "properties": {
        "status": {"type": "string", "enum": [status.value for status in Status]},
        "data": {"type": "object"},
        "text": {"type": "string"},
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {
                "code": {"type": "string", "enum": [code.value for code in ErrorCode]},
                "message": {"type": "string"},
                "message_code": {"type": "string"},
                "message_params": {"type": "object"},
            },
        },
        "stats": {"type": "object"},
        "context": {"type": "object"},
    },
}


class Format(StrEnum):
    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    MCP = "mcp"
    VCP = "vcp"


def export(spec: ToolSpec, format_: Format) -> dict[str, Any]:
    match format_:
        case Format.OPENAI:
            function = {
                "name": plain_name(spec.name),
                "description": spec.description,
                "parameters": input_schema(spec),
            }
            return {"type": "function", "function": function}
        case Format.ANTHROPIC:
            return {
                "name": plain_name(spec.name),
                "description": spec.description,
                "input_schema": input_schema(spec),
            }
        case Format.MCP:
            schema = ENVELOPE if spec.mcp is None else spec.mcp.get("output_schema")
            return {
                "name": plain_name(spec.name),
                "title": spec.name,
                "description": spec.description,
                "inputSchema": input_schema(spec),
                "annotations": annotations(spec),
                **({} if schema is None else {"outputSchema": schema}),
            }
        case Format.VCP:
            return {"name": spec.name, "placeholder": f"{{{{VCP{spec.name}}}}}", "text": write_tool(spec)}


def annotations(spec: ToolSpec) -> dict[str, Any]:
    """Return MCP's risk hints; a tool that may write or execute is always marked destructive."""
    reads = spec.risk is Risk.READ
    return {
        "title": spec.name,
        "readOnlyHint": reads,
        "destructiveHint": not reads,
        "idempotentHint": reads,
        "openWorldHint": spec.risk in (Risk.NETWORK, Risk.EXECUTE),
    }


def input_schema(spec: ToolSpec) -> JsonObject:
    """Return the input schema with ``type`` and ``properties``, which MCP and the providers require."""
    return {"type": "object", "properties": {}, **spec.parameters}
