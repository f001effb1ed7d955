"""ToolSearch: tools by what they do, with all that a call of them needs.

A chat that may use some tools alone gets none but these: the host names them in the call's metadata, below ``AMONG``.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, Final, Protocol

from toolyard.dialects.tool_specs import to_function
from toolyard.message import Message
from toolyard.protocol.json import Json, json_bytes
from toolyard.protocol.tool import Checkpoint, Result, Tool, ToolCall, ToolSpec
from toolyard.protocol.tool_index import AMONG, LIMIT, MAX_QUERY, ToolIndex
from toolyard.tools.tool_words import load_text
from toolyard.tools.worker_thread import in_thread

MAX_LIMIT: Final = 10

SPEC = ToolSpec(
    **load_text(__file__, default_limit=LIMIT, max_limit=MAX_LIMIT),
    parameters={
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "minLength": 1,
                "maxLength": MAX_QUERY,
                "description": "What is to be done, or the name of a tool.",
            },
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": MAX_LIMIT,
                "default": LIMIT,
                "description": "How many tools to give.",
            },
        },
        "required": ["query"],
        "additionalProperties": False,
    },
    examples=({"query": "weather forecast"},),
    on_request=True,
)


class Catalogue(Protocol):
    """The tools of a host."""

    def __iter__(self) -> Iterator[Tool]: ...

    def version(self) -> Hashable:
        """Return what changes whenever they do."""
        ...


class ToolSearch:
    spec = SPEC

    def __init__(self, catalogue: Callable[[], Catalogue]) -> None:
        self._catalogue = catalogue
        self._index: tuple[Hashable, ToolIndex] | None = None

    async def run(self, call: ToolCall, _: Checkpoint) -> Result:
        return await in_thread(self._search, call.arguments, call.metadata.get(AMONG))

    def _search(self, arguments: Mapping[str, Any], among: Json) -> Result:
        query, names = arguments["query"], frozenset(map(str, among)) if isinstance(among, list) else None
        found = self._read_index().search(query, arguments["limit"], among=names)
        if not found:
            text = Message("No tool fits '{query}': try other words for what is to be done.", query=query[:200])
            return Result(data={"tools": []}, text=text)
        return Result(data={"tools": [spec.name for spec in found]}, text="\n\n".join(map(_describe, found)))

    def _read_index(self) -> ToolIndex:
        catalogue = self._catalogue()
        version = catalogue.version()
        if self._index is None or self._index[0] != version:
            specs = (tool.spec for tool in catalogue)
            self._index = version, ToolIndex(spec for spec in specs if not spec.on_request and spec.prompt_text != "")
        return self._index[1]


def _describe(spec: ToolSpec) -> str:
    function = to_function(spec)
    return f"## {spec.name}\n{function['description']}\nParameters: {json_bytes(function['parameters']).decode()}"
