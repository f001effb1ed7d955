"""Tools of MCP servers that wait for a review, in ``mcp-pending.json`` of the home.

A tool that a server adds or changes while it runs is known only to the process that started this server. It is noted
here, so that the command line can show and approve it too. A definition in this file allows nothing.
"""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from toolyard.errors import ToolyardError
from toolyard.plugins.mcp.declarations import ConfiguredServer
from toolyard.plugins.mcp.definition import ToolDefinition, from_json
from toolyard.plugins.state_file import StateFile
from toolyard.protocol.json import Json, JsonObject

FILE_NAME: Final = "mcp-pending.json"
_LOG: Final = logging.getLogger(__name__)


class PendingTools:
    def __init__(self, home: Path) -> None:
        self._file = StateFile(home / FILE_NAME)

    def get(self, entry: ConfiguredServer) -> tuple[ToolDefinition, ...]:
        """Return the tools that were last noted for a server with this command."""
        servers = self._file.read().get("servers")
        noted = servers.get(entry.trust_key) if isinstance(servers, dict) else None
        if not isinstance(noted, dict) or noted.get("launch") != entry.digest:
            return ()
        tools = noted.get("tools")
        definitions = [from_json(tool) for tool in tools] if isinstance(tools, list) else []
        return tuple(one for one in definitions if one is not None)

    def note(self, entry: ConfiguredServer, tools: Sequence[ToolDefinition]) -> None:
        """Store the tools of a server that wait now. A file that cannot be written is logged: its server still runs."""
        if tuple(tools) == self.get(entry):
            return
        noted: Json = {"launch": entry.digest, "tools": [one.to_json() for one in tools]}

        def put(value: JsonObject) -> None:
            servers = value.setdefault("servers", {})
            if isinstance(servers, dict):
                servers[entry.trust_key] = noted

        self._update(put)

    def remove(self, entry: ConfiguredServer) -> None:
        def take(value: JsonObject) -> None:
            servers = value.get("servers")
            if isinstance(servers, dict):
                servers.pop(entry.trust_key, None)

        if self.get(entry):
            self._update(take)

    def _update(self, edit: Callable[[JsonObject], None]) -> None:
        try:
            self._file.update(edit)
        except ToolyardError as error:
            _LOG.warning("%s", error)
