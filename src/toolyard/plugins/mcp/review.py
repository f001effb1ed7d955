"""What is told of an MCP server: a row of a list, and all that an owner should see before it may run.

The values of its variables and headers are in neither.
"""

from collections.abc import Sequence
from typing import Any

from toolyard.plugins.mcp.declarations import Entry
from toolyard.plugins.mcp.definition import Definition
from toolyard.plugins.mcp.pins import Pin, differences
from toolyard.plugins.mcp.servers import State


def described(entry: Entry, state: State, pin: Pin | None) -> dict[str, Any]:
    return {
        "name": entry.name,
        "state": state.value,
        "scope": entry.scope.value,
        "file": str(entry.file),
        "command_line": entry.command_line,
        "tools": [one.name for one in pin.definitions] if pin else [],
    }


def review_data(entry: Entry, tools: Sequence[Definition], pin: Pin | None) -> dict[str, Any]:
    return {
        "name": entry.name,
        "file": str(entry.file),
        "command_line": entry.command_line,
        "variables": list(entry.declared.variables),
        "changed": differences(pin, entry, tools) if pin else [],
        "tools": [tool.to_json() | {"warnings": [why for why, _ in tool.suspicious]} for tool in tools],
    }
