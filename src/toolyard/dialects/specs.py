"""The definition of a tool in the words of others: OpenAI, Anthropic, MCP and VCPToolBox, all from one ToolSpec.

Some of them allow only letters, digits, ``_`` and ``-`` in a name: ``plain_name`` gives one that is the same every time
and that no other tool gets.
"""

import hashlib
import re
from enum import StrEnum
from typing import Any, Final

from toolyard.protocol.envelope import ErrorCode, Status
from toolyard.protocol.json import JsonObject
from toolyard.protocol.tool import Risk, ToolSpec
from toolyard.protocol.tool_text import write_tool

LONGEST_NAME: Final = 64
_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,64}")
_STEM = LONGEST_NAME - 9  # room for a hyphen and eight digits
_HASHED = re.compile(r"-[0-9a-f]{8}\Z")

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
            return {
                "name": plain_name(spec.name),
                "title": spec.name,
                "description": spec.description,
                "inputSchema": input_schema(spec),
                "outputSchema": ENVELOPE,
                "annotations": annotations(spec),
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


def plain_name(name: str) -> str:
    """Return ``name`` itself when every client accepts it; else its plain characters and part of its hash."""
    if _PLAIN.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:8]
    return f"{re.sub('[^A-Za-z0-9_-]', '_', name)[:_STEM]}-{digest}"


def has_hash(name: str) -> bool:
    """Return whether ``name`` ends like one that ``plain_name`` has made from another."""
    return _HASHED.search(name) is not None


def input_schema(spec: ToolSpec) -> JsonObject:
    """Return the input schema with ``type`` and ``properties``, which MCP and the providers require."""
    return {"type": "object", "properties": {}, **spec.parameters}
