"""The definition of a tool in the words of others: OpenAI, Anthropic, MCP and VCPToolBox, all from one ToolSpec.

Some of them allow only letters, digits, ``_`` and ``-`` in a name: ``plain_name`` gives one that is the same every time
and that no other tool gets.
"""

import hashlib
import json
import re
from enum import StrEnum
from typing import Any, Final

from toolyard.protocol.envelope import ErrorCode, Status
from toolyard.protocol.json import JsonObject
from toolyard.protocol.tool import Risk, ToolSpec

LONGEST_NAME: Final = 64
_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,64}")
_STEM = LONGEST_NAME - 9  # room for a hyphen and eight digits

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
            return {"name": spec.name, "placeholder": f"{{{{VCP{spec.name}}}}}", "text": vcp_text(spec)}


def annotations(spec: ToolSpec) -> dict[str, Any]:
    """What a client may know about the risk. A tool that can do anything is told as one that does."""
    reads = spec.risk is Risk.READ
    return {
        "title": spec.name,
        "readOnlyHint": reads,
        "destructiveHint": not reads,
        "idempotentHint": reads,
        "openWorldHint": spec.risk in (Risk.NETWORK, Risk.EXECUTE),
    }


def plain_name(name: str) -> str:
    """``name`` itself when every client takes it; else what is plain of it and a piece of its hash."""
    if _PLAIN.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:8]
    return f"{re.sub('[^A-Za-z0-9_-]', '_', name)[:_STEM]}-{digest}"


def vcp_text(spec: ToolSpec) -> str:
    """The layout in which VCPToolBox tells a model about a tool."""
    described = "\n".join(f"    {line}" for line in [*spec.description.strip().splitlines(), "", *_parameters(spec)])
    example = "\n".join(f"    {line}" for line in _example(spec))
    return f"- {spec.name} ({spec.name}) - 命令: N/A:\n{described}\n  调用示例:\n{example}"


def input_schema(spec: ToolSpec) -> JsonObject:
    """MCP and the providers want ``type`` and ``properties`` to be there."""
    return {"type": "object", "properties": {}, **spec.parameters}


def _parameters(spec: ToolSpec) -> list[str]:
    required = spec.parameters.get("required")
    needed = required if isinstance(required, list) else []
    return [
        f"{name} ({schema.get('type', 'any')}, {'required' if name in needed else 'optional'}): "
        f"{schema.get('description', '')}".rstrip(": ")
        for name, schema in _properties(spec)
    ]


def _example(spec: ToolSpec) -> list[str]:
    fields = [f"{name}:「始」{_sample(schema)}「末」" for name, schema in _properties(spec)]
    lines = ["maid:「始」name of the agent「末」", f"tool_name:「始」{spec.name}「末」", *fields]
    return ["<<<[TOOL_REQUEST]>>>", *(f"{line}," for line in lines[:-1]), lines[-1], "<<<[END_TOOL_REQUEST]>>>"]


def _sample(schema: JsonObject) -> str:
    for key in ("default", "example"):
        if key in schema and schema[key] is not None:
            value = schema[key]
            return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    choices = schema.get("enum")
    return str(choices[0]) if isinstance(choices, list) and choices else "..."


def _properties(spec: ToolSpec) -> list[tuple[str, JsonObject]]:
    properties = spec.parameters.get("properties")
    if not isinstance(properties, dict):
        return []
    return [(name, schema) for name, schema in properties.items() if isinstance(schema, dict)]
