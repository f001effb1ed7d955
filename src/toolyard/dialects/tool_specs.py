"""The definition of a tool in foreign formats, all from one ToolSpec: OpenAI, Anthropic, MCP and VCPToolBox.

As a function that OpenAI's chat protocol offers to a model it is short, because every request pays for it. The texts
are English where the tool has a translation, and the tool's own otherwise: they are the same for every conversation, so
that a provider can keep them in its prompt cache. The schema has what a model needs to write a call; the limits that
only a check needs stay out of it, because the call is checked against the full schema anyway. Examples are in the
descriptions, where every provider shows them to its model.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

import orjson

from toolyard.dialects.plain_name import plain_name
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.requests.marks import END, START
from toolyard.protocol.tool import Risk, ToolSpec, Translation
from toolyard.protocol.tool_text import is_explained, join_lines, write_tool

LANGUAGE: Final = "en"
_MAX_EXAMPLE_CHARS: Final = 300
_MAX_VALUES: Final = 3  # examples of one parameter
_FOR_CHECKS: Final = frozenset(
    (
        "$schema",
        "title",
        "minLength",
        "maxLength",
        "minimum",
        "maximum",
        "minItems",
        "maxItems",
        "patternProperties",
        "examples",
        "default",
    )
)
_NAMED_SCHEMAS: Final = ("properties", "$defs", "definitions")
_LISTED_SCHEMAS: Final = ("anyOf", "oneOf", "allOf", "prefixItems")
_LABEL: Final = re.compile(r"[^\n]{0,40}[:：][ \t]*")


class Format(StrEnum):
    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    MCP = "mcp"
    VCP = "vcp"


def export(spec: ToolSpec, format_: Format) -> dict[str, Any]:
    match format_:
        case Format.OPENAI:
            return to_function_tool(spec)
        case Format.ANTHROPIC:
            function = to_function(spec)
            return {
                "name": function["name"],
                "description": function["description"],
                "input_schema": function["parameters"],
            }
        case Format.MCP:
            return _to_mcp_tool(spec)
        case Format.VCP:
            return {"name": spec.name, "placeholder": f"{{{{VCP{spec.name}}}}}", "text": write_tool(spec)}


def _to_mcp_tool(spec: ToolSpec) -> JsonObject:
    """Return the definition for MCP clients; the tool of an MCP server stays as that server declared it."""
    function = to_function(spec)
    declared, name = spec.mcp, str(function["name"])
    output = (declared or {}).get("output_schema")
    return {
        "name": name,
        **({} if name == spec.name else {"title": spec.name}),
        "description": function["description"] if declared is None else spec.description,
        "inputSchema": function["parameters"] if declared is None else input_schema(spec),
        "annotations": annotations(spec),
        **({} if output is None else {"outputSchema": output}),
    }


def annotations(spec: ToolSpec) -> JsonObject:
    """Return MCP's hints about the risk, where these differ from what a client assumes: that a tool does anything."""
    reads: JsonObject = {"readOnlyHint": True} if spec.risk is Risk.READ else {}
    return reads if spec.risk in (Risk.NETWORK, Risk.EXECUTE) else {**reads, "openWorldHint": False}


def input_schema(spec: ToolSpec) -> JsonObject:
    """Return the input schema with ``type`` and ``properties``, which MCP and the providers require."""
    return {"type": "object", "properties": {}, **spec.parameters}


def to_function_tool(spec: ToolSpec) -> JsonObject:
    """Return the definition of ``spec`` for the ``tools`` of a chat request."""
    return {"type": "function", "function": to_function(spec)}


def to_function(spec: ToolSpec) -> JsonObject:
    """Return the name, the description and the parameters of ``spec`` as a model reads them natively."""
    translation = spec.translations.get(LANGUAGE, Translation())
    description = translation.description or remove_blocks(spec.description)
    if not spec.verbatim:
        description = join_lines(description)
    helps = translation.parameters
    compact = _compact_schema(spec.parameters, helps, spec=spec)
    if isinstance(properties := compact.get("properties"), dict):
        compact["properties"] = {name: one for name, one in properties.items() if name not in spec.unlisted}
    parameters: JsonObject = {"type": "object", "properties": {}, **compact}
    return {"name": plain_name(spec.name), "description": description + _write_example(spec), "parameters": parameters}


def remove_blocks(text: str) -> str:
    """Return a plugin's text without request blocks and their headings: a function call needs no block."""
    lines: list[str] = []
    inside = False
    for line in text.split("\n"):
        if not inside and line.lstrip().startswith(START):
            inside = True
            while lines and _LABEL.fullmatch(lines[-1]):
                lines.pop()
        if not inside:
            lines.append(line)
        elif END in line:
            inside = False
    return text.strip() if inside else re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _write_example(spec: ToolSpec) -> str:
    """Return a line with the first example of a plugin, whose schema may know less than its author."""
    if spec.prompt_text is None or not spec.examples:
        return ""
    written = orjson.dumps(spec.examples[0]).decode()
    is_foreign = LANGUAGE in spec.translations and not written.isascii()  # to the text that it would follow
    return f"\nExample: {written}" if len(written) <= _MAX_EXAMPLE_CHARS and not is_foreign else ""


def _compact_schema(schema: JsonObject, helps: Mapping[str, str], *, spec: ToolSpec, before: str = "") -> JsonObject:
    """Return ``schema`` without what only checks need; ``helps`` are descriptions by name, ``before`` their prefix."""
    made: JsonObject = {}
    for key, value in schema.items():
        if key in _FOR_CHECKS or (key == "additionalProperties" and not _keeps_additional(value, spec)):
            continue
        if key in _NAMED_SCHEMAS and isinstance(value, dict):
            made[key] = {
                name: _compact_property(one, f"{before}{name}", helps, spec) if isinstance(one, dict) else one
                for name, one in value.items()
            }
        elif key in _LISTED_SCHEMAS and isinstance(value, list):
            made[key] = [
                _compact_schema(one, helps, spec=spec, before=before) if isinstance(one, dict) else one for one in value
            ]
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            made[key] = _compact_schema(value, helps, spec=spec, before=before)
        else:
            made[key] = value
    return made


def _keeps_additional(additional: Json, spec: ToolSpec) -> bool:
    """Return whether ``additionalProperties`` stays: it is a schema, or the arguments are not checked here."""
    return isinstance(additional, dict) or (additional is False and spec.verbatim)


def _compact_property(schema: JsonObject, name: str, helps: Mapping[str, str], spec: ToolSpec) -> JsonObject:
    made = _compact_schema(schema, helps, spec=spec, before=f"{name}.")
    choices = made.get("enum")
    if isinstance(choices, list) and all(isinstance(one, str) for one in choices):
        made = {"type": "string", **made}  # some providers reject an enum without a type
    if spec.prompt_text is not None and isinstance(made.get("type"), list):
        made["type"] = _one_type(made["type"])
    made.pop("description", None)
    if _is_explained(name.rpartition(".")[2], spec):
        return made
    description = helps.get(name) or str(schema.get("description") or "")
    if spec.prompt_text is not None and not helps and description in spec.description:
        description = ""  # it was read from the tool's description, which has it
    parts = [description, _write_default(schema, description), _write_values(schema, description)]
    text = " ".join(part for part in parts if part)
    return made | ({"description": text} if text else {})


def _is_explained(parameter: str, spec: ToolSpec) -> bool:
    """Return whether the tool's text names the parameter, where the text is written so that this is enough."""
    text = spec.description if not spec.verbatim else spec.translations.get(LANGUAGE, Translation()).description
    return is_explained(parameter, text)


def _one_type(types: Json) -> Json:
    """Return one type for a parameter that may also come as text from a request block: its own, or text if several."""
    others = [one for one in types if one != "string"] if isinstance(types, list) else []
    scalar = len(others) == 1 and others[0] in ("integer", "number", "boolean")
    return others[0] if scalar else "string"


def _write_default(schema: JsonObject, description: str) -> str:
    value = schema.get("default")
    written = value if isinstance(value, str) else orjson.dumps(value).decode()
    return f"Default {written}." if value and written not in description else ""


def _write_values(schema: JsonObject, description: str) -> str:
    examples = schema.get("examples")
    values = [value for value in examples if isinstance(value, str)] if isinstance(examples, list) else []
    new = [value for value in values if value not in description][:_MAX_VALUES]
    return f"E.g. {' | '.join(new)}" if new and len(new) == len(values[:_MAX_VALUES]) else ""
