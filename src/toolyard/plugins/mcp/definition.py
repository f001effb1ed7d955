"""A tool as an MCP server describes it, and as Toolyard offers it.

Its name is ``mcp__SERVER__TOOL``, with what is no letter, digit, ``_`` or ``-`` replaced, as ``plain_name`` does it: it
is the same every time and valid for every provider. What a server says about its own risk is not believed: a program
counts as ``execute``, an address as ``network``.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from toolyard.dialects.plain_name import plain_name
from toolyard.message import Message
from toolyard.plugins.authoring.prompt_injection import find_injections
from toolyard.protocol.json import Json, JsonObject, json_problem
from toolyard.protocol.manifests.safe_text import strip_hidden, truncate
from toolyard.protocol.tool import Risk, ToolSpec

PREFIX: Final = "mcp__"
MAX_TOOLS: Final = 1000
_MAX_BYTES = 256 * 1024  # of one definition


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDefinition:
    name: str
    title: str = ""
    description: str = ""
    schema: JsonObject
    output_schema: JsonObject | None = None

    def to_json(self) -> JsonObject:
        value: JsonObject = {
            "name": self.name, "title": self.title, "description": self.description, "schema": self.schema
        }  # fmt: skip
        return value if self.output_schema is None else value | {"output_schema": self.output_schema}

    def to_spec(self, server: str, *, risk: Risk, launch: str, timeout_s: float) -> ToolSpec:
        """Return the tool as it is offered; ``launch`` is the digest of the command behind it."""
        text = truncate(strip_hidden(self.description)).strip() or strip_hidden(self.title).strip() or self.name
        return ToolSpec(
            name=tool_name(server, self.name),
            description=f"{text}\n\n(A tool of the MCP server {server}.)",
            parameters={"type": "object", **self.schema},
            risk=risk,
            fingerprint=f"{launch}:{digest_definitions([self])}",
            timeout_s=timeout_s,
            verbatim=True,
            mcp={} if self.output_schema is None else {"output_schema": self.output_schema},
        )

    @property
    def injections(self) -> Iterator[tuple[str, str]]:
        """Suspicious words to the model in its texts (S-84)."""
        schemas = json.dumps([self.schema, self.output_schema], ensure_ascii=False)
        return find_injections(f"{self.title}\n{self.description}\n{schemas}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolListing:
    """The tools of a server; ``left_out`` has the names of those that cannot be offered, and why."""

    tools: tuple[ToolDefinition, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)


def tool_name(server: str, tool: str) -> str:
    return plain_name(f"{PREFIX}{server}__{tool}")


def from_json(value: Json) -> ToolDefinition | None:
    """Return a stored definition; None when it is not one."""
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return None
    schema, output_schema = value.get("schema"), value.get("output_schema")
    return ToolDefinition(
        name=str(value["name"]),
        title=str(value.get("title") or ""),
        description=str(value.get("description") or ""),
        schema=schema if isinstance(schema, dict) else {},
        output_schema=output_schema if isinstance(output_schema, dict) else None,
    )


def digest_definitions(definitions: Iterable[ToolDefinition]) -> str:
    """Return a digest of every name, description and schema, independent of their order."""
    texts = sorted(json.dumps(one.to_json(), sort_keys=True, ensure_ascii=False) for one in definitions)
    return hashlib.sha256("\n".join(texts).encode(errors="surrogatepass")).hexdigest()


def find_problem(definition: ToolDefinition) -> str:
    """Return why this tool cannot be offered; empty when it can."""
    if len(json.dumps(definition.to_json())) > _MAX_BYTES:
        return Message("its description is larger than {most} KiB", most=_MAX_BYTES >> 10)
    if json_problem(definition.to_json(), "it"):
        return Message("its schema cannot be written as JSON")
    if definition.schema.get("type", "object") != "object":
        return Message("its schema is not that of an object")
    return ""
