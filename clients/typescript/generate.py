"""Makes ``toolyard.ts`` from the OpenAPI document of this version and the code in ``template.ts``.

``make clients`` runs it. The types are written by a generator of our own, because the result is to be one file without
dependencies, and a test without Node compares it with the document.
"""

import asyncio
import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import aiohttp

from toolyard.config import Config, load_config
from toolyard.web.server.lifecycle import Server, ServerOptions

HERE: Final = Path(__file__).parent
TARGET: Final = HERE / "toolyard.ts"
_MARK: Final = "// {{types}}\n"
_METHODS: Final = ("get", "post", "put", "patch", "delete")
_SCALARS: Final = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
}
_BODIES: Final = {
    "text/plain": "string",
    "application/x-www-form-urlencoded": "URLSearchParams",
    "multipart/form-data": "FormData",
}
_NAME: Final = re.compile(r"[A-Za-z_$][\w$]*")
Schema = Mapping[str, Any]


def write_client(document: Mapping[str, Any]) -> str:
    """Return the client for an OpenAPI document."""
    before, after = (HERE / "template.ts").read_text("utf-8").split(_MARK)
    schemas = document["components"]["schemas"]
    types = [_write_component(name, schemas[name]) for name in sorted(schemas)]
    return before + "\n".join([*types, _write_operations(document["paths"])]) + after


def load_document() -> dict[str, Any]:
    """Return the OpenAPI document that a server of this version answers with."""
    with tempfile.TemporaryDirectory() as project, tempfile.TemporaryDirectory() as home:
        return asyncio.run(_ask_server(load_config(project, home)))


async def _ask_server(config: Config) -> dict[str, Any]:
    server = Server(config, ServerOptions(port=0, safe=True))
    await server.start()
    try:
        headers = {"Authorization": f"Bearer {server.key}"}
        async with (
            aiohttp.ClientSession(headers=headers) as client,
            client.get(f"{server.url}/openapi.json") as response,
        ):
            document: dict[str, Any] = await response.json()
            return document
    finally:
        await server.stop()


def _write_component(name: str, schema: Schema) -> str:
    comment = _write_comment(schema.get("description", ""), "")
    if "properties" in schema:
        return f"{comment}export interface {name} {_write_object(schema, '')}\n"
    return f"{comment}export type {name} = {_write_type(schema, '')};\n"


def _write_type(schema: Schema, indent: str) -> str:
    """Return the TypeScript type of a JSON Schema."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "const" in schema:
        return json.dumps(schema["const"], ensure_ascii=False)
    if "enum" in schema:
        return _join_types(json.dumps(value, ensure_ascii=False) for value in schema["enum"])
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return _join_types(_write_type(one, indent) for one in schema[key])
    kind = schema.get("type")
    if kind == "array":
        return f"Array<{_write_type(schema.get('items', {}), indent)}>"
    if kind == "object":
        return _write_object(schema, indent) if "properties" in schema else _write_record(schema, indent)
    if kind == "string" and schema.get("format") == "binary":
        return "Blob"
    return _SCALARS.get(str(kind), "unknown")


def _join_types(types: Iterator[str]) -> str:
    return " | ".join(dict.fromkeys(types))


def _write_record(schema: Schema, indent: str) -> str:
    additional = schema.get("additionalProperties", True)
    value = _write_type(additional, indent) if isinstance(additional, Mapping) else "unknown"
    return f"Record<string, {value}>"


def _write_object(schema: Schema, indent: str) -> str:
    inner, required = f"{indent}  ", schema.get("required", ())
    lines = [
        f"{_write_comment(one.get('description', ''), inner)}"
        f"{inner}{_write_name(name)}{'' if name in required else '?'}: {_write_type(one, inner)};"
        for name, one in schema["properties"].items()
    ]
    if schema.get("additionalProperties") is True:
        lines.append(f"{inner}[member: string]: unknown;")
    return "\n".join(["{", *lines, f"{indent}}}"])


def _write_name(name: str) -> str:
    return name if _NAME.fullmatch(name) else json.dumps(name)


def _write_comment(text: str, indent: str) -> str:
    lines = text.replace("*/", "*\\/").split("\n")
    if not text:
        return ""
    if len(lines) == 1:
        return f"{indent}/** {text} */\n"
    return "\n".join([f"{indent}/**", *(f"{indent} * {line}".rstrip() for line in lines), f"{indent} */\n"])


def _write_operations(paths: Mapping[str, Any]) -> str:
    lines = [
        "/** Every request of the API: what it takes, and what it answers with. */",
        "export interface Operations {",
    ]
    for path, operations in paths.items():
        methods = (method for method in _METHODS if method in operations)
        lines += [_write_operation(f"{method.upper()} {path}", operations[method]) for method in methods]
    return "\n".join([*lines, "}\n"])


def _write_operation(name: str, operation: Schema) -> str:
    options: dict[str, Any] = {"type": "object", "properties": {}, "required": []}
    for place in ("path", "query"):  # headers are free
        members = [one for one in operation.get("parameters", ()) if one["in"] == place]
        if members:
            options["properties"][place] = _gather_parameters(members)
            if any(one.get("required") for one in members):
                options["required"].append(place)
    written = _write_object(options, "    ") if options["properties"] else ""
    body = _write_body(operation.get("requestBody", {}))
    if body:
        start = written.removesuffix("\n    }") or "{"
        written = f"{start}\n      {body}\n    }}"
    summary = _write_comment(operation.get("description", ""), "  ")
    result = _find_result(operation["responses"])
    return f"{summary}  {json.dumps(name)}: {{\n    options: {written or '{}'};\n    result: {result};\n  }};"


def _gather_parameters(parameters: list[Schema]) -> Schema:
    properties = {
        one["name"]: {**one["schema"], "description": one.get("description", "")}
        if one.get("description")
        else one["schema"]
        for one in parameters
    }
    return {
        "properties": properties,
        "required": [one["name"] for one in parameters if one.get("required")],
        "type": "object",
    }


def _write_body(body: Schema) -> str:
    contents = body.get("content", {})
    types = [
        _write_type(content["schema"], "      ") if kind == "application/json" else _BODIES.get(kind, "Blob")
        for kind, content in contents.items()
    ]
    return f"body{'' if body.get('required') else '?'}: {_join_types(iter(types))};" if types else ""


def _find_result(responses: Mapping[str, Any]) -> str:
    contents: dict[str, Any] = {}
    for status, response in responses.items():
        if status.startswith("2"):
            contents |= response.get("content", {})
    if "application/json" in contents:
        return _write_type(contents["application/json"].get("schema", {}), "    ")
    kinds = {
        "Response" if kind == "text/event-stream" else "string" if kind.startswith("text/") else "Blob"
        for kind in contents
    }
    return _join_types(iter(sorted(kinds))) or "unknown"


if __name__ == "__main__":
    TARGET.write_text(write_client(load_document()), "utf-8")
