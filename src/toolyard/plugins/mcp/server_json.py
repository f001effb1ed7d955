"""Client JSON of an MCP server: a row of a list, and the review before it may run.

The values of its variables and headers are in neither.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from toolyard.message import to_fields
from toolyard.plugins.mcp.declarations import ConfiguredServer
from toolyard.plugins.mcp.definition import ToolDefinition, ToolListing
from toolyard.plugins.mcp.pins import Pin, describe_changes
from toolyard.plugins.mcp.servers import McpServers


def server_to_json(servers: McpServers, entry: ConfiguredServer) -> dict[str, Any]:
    """Return the row of a server: its configuration and its state."""
    pin = servers.pins.get(entry)
    return {
        "name": entry.name,
        "state": servers.find_state(entry).value,
        "scope": entry.scope.value,
        "file": str(entry.file),
        "command_line": entry.command_line,
        "tools": [one.name for one in pin.definitions] if pin else [],
        **_lines_to_json("waiting", servers.pending_changes(entry)),
        **_left_out_to_json(servers.left_out(entry)),
    }


def review_to_json(
    entry: ConfiguredServer, listing: ToolListing, pin: Pin | None, reach: Sequence[str]
) -> dict[str, Any]:
    """Return everything that an owner should see of a server that has listed its tools."""
    return {
        "name": entry.name,
        "file": str(entry.file),
        "command_line": entry.command_line,
        "reach": [to_fields("text", line) for line in reach],
        "variables": list(entry.declared.variables),
        **_lines_to_json("changed", describe_changes(pin, entry, listing.tools) if pin else []),
        "tools": [_tool_to_json(tool) for tool in listing.tools],
        **_left_out_to_json(listing.left_out),
    }


def _lines_to_json(name: str, lines: Sequence[str]) -> dict[str, Any]:
    return {name: ["".join(line) for line in lines], f"{name}_messages": [to_fields("message", line) for line in lines]}


def _left_out_to_json(left_out: Mapping[str, str]) -> dict[str, Any]:
    return {
        "left_out": {name: "".join(why) for name, why in left_out.items()},
        "left_out_messages": {name: to_fields("message", why) for name, why in left_out.items()},
    }


def _tool_to_json(tool: ToolDefinition) -> dict[str, Any]:
    warnings = [why for why, _ in tool.injections]
    messages = [to_fields("message", why) for why in warnings]
    return tool.to_json() | {"warnings": [*warnings], "warning_messages": [*messages]}
