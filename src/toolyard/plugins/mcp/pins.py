"""Permissions of MCP servers: they may run as the owner has reviewed them, command and tools (S-83).

A permission holds the hash of the command and the definitions of all tools, as they were shown. Another command needs
another review, and until then none of its tools runs; ``tool_gate`` treats tools that change. A tool that was allowed
and is absent at a later review of the same command stays allowed: servers add and remove tools while they run. Kept in
``mcp-trust.json`` of the home; when that cannot be read, nothing counts as reviewed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Final

from toolyard.message import Message
from toolyard.plugins.mcp.declarations import ConfiguredServer
from toolyard.plugins.mcp.definition import ToolDefinition, from_json
from toolyard.plugins.state_file import StateFile
from toolyard.plugins.trust import NO_LINKS
from toolyard.protocol.json import Json, JsonObject

FILE_NAME: Final = "mcp-trust.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """A stored permission: what was allowed."""

    review: str  # which one: another review of the same is another
    launch: str
    command_line: str
    definitions: tuple[ToolDefinition, ...]
    links: Mapping[str, str] = field(default_factory=dict)  # that were shown, and where they led


class Pins:
    def __init__(self, home: Path) -> None:
        self._file = StateFile(home / FILE_NAME)
        self._value: JsonObject = {}  # of the file, from which all in ``_pins`` was read
        self._pins: dict[str, Pin | None] = {}
        self._revision = 0

    @property
    def problem(self) -> str:
        self._file.read()
        return self._file.problem

    def version(self) -> int:
        """Return a number that changes whenever a permission does."""
        self.refresh()
        return self._revision

    def get(self, entry: ConfiguredServer) -> Pin | None:
        """Return the permission; the same object until the file changes."""
        self.refresh()
        return self.get_cached(entry)

    def refresh(self) -> None:
        """Read the file if it has changed."""
        value = self._file.read()
        if value is not self._value:
            self._value, self._pins = value, {}
            self._revision += 1

    def get_cached(self, entry: ConfiguredServer) -> Pin | None:
        """Return the permission as of the last read, without looking at the file."""
        if entry.trust_key not in self._pins:
            servers = self._value.get("servers")
            self._pins[entry.trust_key] = _read_pin(servers.get(entry.trust_key)) if isinstance(servers, dict) else None
        return self._pins[entry.trust_key]

    def allow(
        self, entry: ConfiguredServer, shown: Sequence[ToolDefinition], *, links: Mapping[str, str] = NO_LINKS, at: str
    ) -> None:
        """Allow exactly what was shown, and what was allowed before and is absent now. Raises ConfigError."""
        before, names = self.get(entry), {one.name for one in shown}
        absent = before.definitions if before is not None and before.launch == entry.digest else ()
        definitions = [*shown, *(one for one in absent if one.name not in names)]
        pinned: JsonObject = {
            "review": token_hex(8),
            "launch": entry.digest,
            "command_line": entry.command_line,
            "tools": [one.to_json() for one in definitions],
            "links": dict(links),
            "at": at,
        }

        def put(value: JsonObject) -> None:
            servers = value.setdefault("servers", {})
            if isinstance(servers, dict):
                servers[entry.trust_key] = pinned

        self._file.update(put)

    def revoke(self, entry: ConfiguredServer) -> None:
        def take(value: JsonObject) -> None:
            servers = value.get("servers")
            if isinstance(servers, dict):
                servers.pop(entry.trust_key, None)

        self._file.update(take)


def _read_pin(pinned: Json) -> Pin | None:
    if not isinstance(pinned, dict):
        return None
    tools, links = pinned.get("tools"), pinned.get("links")
    definitions = [from_json(tool) for tool in tools] if isinstance(tools, list) else []
    return Pin(
        review=str(pinned.get("review") or ""),
        launch=str(pinned.get("launch") or ""),
        command_line=str(pinned.get("command_line") or ""),
        definitions=tuple(one for one in definitions if one is not None),
        links={path: str(lead) for path, lead in links.items()} if isinstance(links, dict) else {},
    )


def describe_changes(pin: Pin, entry: ConfiguredServer, now: Sequence[ToolDefinition]) -> list[str]:
    """Return what has changed since it was allowed, for people to read."""
    lines: list[str] = []
    if pin.launch != entry.digest:
        lines.append(Message("mcp.command_was", "the command was: {command}", command=pin.command_line))
    before, after = ({one.name: one for one in many} for many in (pin.definitions, now))
    for name in sorted({*before, *after}):
        if name not in before:
            lines.append(Message("mcp.review_added", "added {tool}", tool=name))
        elif name not in after:
            lines.append(Message("mcp.review_gone", "not there now: {tool}", tool=name))
        elif before[name] != after[name]:
            lines.append(Message("mcp.review_changed", "changed {tool}", tool=name))
    return lines
