"""Calls through the running server of a home, for programs that have no event loop. Standard library only."""

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

from toolyard.config import Config
from toolyard.errors import ServerUnreachable, ToolyardError
from toolyard.protocol.call import ToolCall
from toolyard.web.keys import stored_key
from toolyard.web.presence import Presence, presence_of

CALL_HEADER: Final = "x-call-id"
STATUS_HEADER: Final = "x-call-status"
TASKS_HEADER: Final = "x-call-tasks"
_CONNECT_S = 5.0
_LIST_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What a call through the server came to, in the shape that was asked for."""

    value: dict[str, Any]
    failed: bool
    tasks: tuple[str, ...] = ()


def server_of(config: Config, *, own_pid: int) -> "ServerClient | None":
    """The server of this home and project; None when there is none, or it is this very process."""
    found = presence_of(config.home)
    if found is None or found.pid == own_pid or not found.is_alive:
        return None
    if Path(found.project) != config.project.resolve():
        return None  # its tools are those of another project
    key = stored_key(config.home)
    return ServerClient(found, key) if key else None


class ServerClient:
    def __init__(self, presence: Presence, key: str) -> None:
        self._presence, self._key = presence, key

    def call(
        self, call: ToolCall, *, caller: str, dialect: str = "envelope", shown: bool = False, later: str | None = None
    ) -> Answered:
        """Run a call there and wait for its end."""
        asked = {"dialect": dialect, "caller": caller, "call_id": call.id}
        asked |= {name: "true" for name, said in (("shown", shown), ("force", call.force)) if said}
        arguments = call.arguments if later is None else {**call.arguments, "timely_contact": later}
        headers, value = self._ask("POST", f"/v1/tools/{quote(call.tool, safe='')}?{urlencode(asked)}", arguments)
        tasks = tuple(filter(None, headers.get(TASKS_HEADER, "").split(",")))
        return Answered(value=value, failed=headers.get(STATUS_HEADER) == "error", tasks=tasks)

    def cancel(self, call_id: str) -> None:
        """Stop a call that runs there; one that has ended stays as it is."""
        with contextlib.suppress(ToolyardError):
            self._ask("POST", f"/v1/calls/{call_id}/cancel", {})

    def envelope(self, call_id: str) -> dict[str, Any]:
        """The envelope of a call that has ended, from the journal."""
        _, value = self._ask("GET", f"/v1/calls/{call_id}", None)
        envelope: dict[str, Any] = value["envelope"]
        return envelope

    def list_mcp_servers(self) -> dict[str, Any]:
        """The MCP servers as they are there now: ``data`` and ``problems``."""
        return self._ask("GET", "/v1/mcp/servers", None, answer_s=_LIST_S)[1]

    def look_at_mcp_server(self, name: str) -> dict[str, Any]:
        """What an MCP server offers there now, for a review."""
        return self._ask("POST", f"/v1/mcp/servers/{quote(name, safe='')}/look", {})[1]

    def allow_mcp_server(self, name: str, fingerprint: str) -> None:
        """Let an MCP server run there as it was shown."""
        self._ask("POST", f"/v1/mcp/servers/{quote(name, safe='')}/allow", {"fingerprint": fingerprint})

    def _ask(
        self, method: str, path: str, body: object, *, answer_s: float | None = None
    ) -> tuple[Mapping[str, str], dict[str, Any]]:
        import http.client

        place = urlsplit(self._presence.url)
        connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=_CONNECT_S)
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        try:
            connection.connect()
            connection.sock.settimeout(answer_s)  # a call takes as long as it takes: the server bounds it
            payload = None if body is None else json.dumps(body, ensure_ascii=False).encode(errors="surrogatepass")
            connection.request(method, path, payload, headers)
            response = connection.getresponse()
            value = json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise ServerUnreachable(
                f"the server of this home (process {self._presence.pid}) does not answer on {self._presence.url}: "
                f"{str(error) or type(error).__name__}; restart it, or stop it and call again"
            ) from error
        finally:
            connection.close()
        if response.status >= 400:
            message = value["error"]["message"] if isinstance(value.get("error"), dict) else str(value)
            if response.status in (401, 421, 429, 503):
                raise ServerUnreachable(f"the server of this home does not take the call: {message}")
            raise ToolyardError(f"the server says: {message}")
        return {name.lower(): said for name, said in response.headers.items()}, value
