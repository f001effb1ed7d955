"""Which MCP servers may run: those that the owner has seen as they are now, command and tools (S-83).

A permission holds the hash of the command and the definitions of all tools, as they were shown. Another command, or a
server that comes up with another name, description or schema, needs another review, and until then none of its tools
runs. Kept in ``mcp-trust.json`` of the home; when that cannot be read, nothing counts as reviewed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Final

from toolyard.plugins.mcp.declarations import Entry
from toolyard.plugins.mcp.definition import Definition, digest, from_json
from toolyard.plugins.state_file import StateFile
from toolyard.protocol.json import JsonObject

FILE_NAME: Final = "mcp-trust.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """What was allowed."""

    review: str  # which one: another review of the same is another
    launch: str
    command_line: str
    definitions: tuple[Definition, ...]

    @property
    def tools(self) -> str:
        return digest(self.definitions)


class Pins:
    def __init__(self, home: Path) -> None:
        self._file = StateFile(home / FILE_NAME)

    @property
    def problem(self) -> str:
        self._file.read()
        return self._file.problem

    def signature(self) -> tuple[int, ...]:
        """Return what changes whenever a permission does."""
        return self._file.signature()

    def get(self, entry: Entry) -> Pin | None:
        servers = self._file.read().get("servers")
        pinned = servers.get(entry.key) if isinstance(servers, dict) else None
        if not isinstance(pinned, dict):
            return None
        tools = pinned.get("tools")
        definitions = [from_json(tool) for tool in tools] if isinstance(tools, list) else []
        return Pin(
            review=str(pinned.get("review") or ""),
            launch=str(pinned.get("launch") or ""),
            command_line=str(pinned.get("command_line") or ""),
            definitions=tuple(one for one in definitions if one is not None),
        )

    def allow(self, entry: Entry, definitions: Sequence[Definition], *, at: str) -> None:
        """Let exactly this run. Raises ConfigError."""
        pinned: JsonObject = {
            "review": token_hex(8),
            "launch": entry.digest,
            "command_line": entry.command_line,
            "tools": [one.to_json() for one in definitions],
            "at": at,
        }

        def put(value: JsonObject) -> None:
            servers = value.setdefault("servers", {})
            if isinstance(servers, dict):
                servers[entry.key] = pinned

        self._file.change(put)

    def forget(self, entry: Entry) -> None:
        def take(value: JsonObject) -> None:
            servers = value.get("servers")
            if isinstance(servers, dict):
                servers.pop(entry.key, None)

        self._file.change(take)


def differences(pin: Pin, entry: Entry, now: Sequence[Definition]) -> list[str]:
    """What has changed since it was allowed, for people to read."""
    said = [] if pin.launch == entry.digest else [f"the command was: {pin.command_line}"]
    before, after = ({one.name: one for one in many} for many in (pin.definitions, now))
    changed = [name for name in sorted({*before, *after}) if before.get(name) != after.get(name)]
    words = ("added" if name not in before else "removed" if name not in after else "changed" for name in changed)
    return said + [f"{word} {name}" for word, name in zip(words, changed, strict=True)]
