"""A blocking client of the server that runs on this home. Standard library only."""

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol
from urllib.parse import quote, urlencode, urlsplit

from toolyard.errors import ServerUnreachable, ToolyardError
from toolyard.message import Message
from toolyard.web.presence import Presence, read_presence
from toolyard.web.security.owner_key import read_owner_key

if TYPE_CHECKING:
    from toolyard.config import Config

CALL_ID_HEADER: Final = "x-call-id"
STATUS_HEADER: Final = "x-call-status"
TASKS_HEADER: Final = "x-call-tasks"
_CONNECT_S = 5.0
_LIST_S = 10.0
_NOT_FOUND = 404


class RequestedCall(Protocol):
    """The part of a call that the server is told; a ToolCall is one."""

    @property
    def id(self) -> str: ...

    @property
    def tool(self) -> str: ...

    @property
    def arguments(self) -> Mapping[str, Any]: ...

    @property
    def force(self) -> bool: ...


class CallResponse(NamedTuple):
    """The result of a call through the server, in the requested dialect."""

    value: dict[str, Any]
    failed: bool
    tasks: tuple[str, ...] = ()


def cli_caller(config: "Config") -> str:
    """Return the caller of the command line: the project, whichever process runs the call."""
    return f"cli:{config.project.resolve()}"


def find_server(config: "Config", *, own_pid: int) -> "ServerClient | None":
    """Return a client of the server of this home and project; None without one, or when it is this process."""
    presence = read_presence(config.home)
    if presence is None or presence.pid == own_pid or not presence.is_alive:
        return None
    if Path(presence.project) != config.project.resolve():
        return None  # its tools are those of another project
    key = read_owner_key(config.home)
    return ServerClient(presence, key) if key else None


def find_home_server(config: "Config") -> "ServerClient | None":
    """Return a client of the server of this home, whatever its project is; None without one."""
    presence, key = read_presence(config.home), read_owner_key(config.home)
    return ServerClient(presence, key) if presence is not None and presence.is_alive and key else None


class ServerRefusal(ToolyardError):
    """Raised when the server answers a request with an error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(Message("http.server_says", "the server says: {message}", message=message))
        self.status = status


class ServerClient:
    def __init__(self, presence: Presence, key: str) -> None:
        self._presence, self._key = presence, key

    def call(
        self,
        call: RequestedCall,
        *,
        caller: str,
        dialect: str = "envelope",
        shown: bool = False,
        later: str | None = None,
        tool_call_id: str = "",
    ) -> CallResponse:
        """Run a call on the server and wait for its end."""
        query = {"dialect": dialect, "caller": caller, "call_id": call.id}
        query |= {"tool_call_id": tool_call_id} if tool_call_id else {}
        query |= {name: "true" for name, is_set in (("shown", shown), ("force", call.force)) if is_set}
        arguments = call.arguments if later is None else {**call.arguments, "timely_contact": later}
        headers, value = self._request("POST", f"/v1/tools/{quote(call.tool, safe='')}?{urlencode(query)}", arguments)
        tasks = tuple(filter(None, headers.get(TASKS_HEADER, "").split(",")))
        return CallResponse(value=value, failed=headers.get(STATUS_HEADER) == "error", tasks=tasks)

    def cancel(self, call_id: str) -> None:
        """Cancel a running call; one that has ended stays as it is."""
        with contextlib.suppress(ToolyardError):
            self._request("POST", f"/v1/calls/{call_id}/cancel", {})

    def get_envelope(self, call_id: str) -> dict[str, Any]:
        """Return the envelope of a finished call, from the journal."""
        _, value = self._request("GET", f"/v1/calls/{call_id}", None)
        envelope: dict[str, Any] = value["envelope"]
        return envelope

    def find_tool(self, name: str) -> dict[str, Any]:
        """Return what the server shows of a tool; empty when it has none of this name."""
        try:
            return self._request("GET", f"/v1/tools/{quote(name, safe='')}", None, answer_s=_LIST_S)[1]
        except ServerRefusal as refusal:
            if refusal.status != _NOT_FOUND:
                raise
            return {}

    def make_login_links(self) -> dict[str, Any]:
        """Return new login links: ``url``, ``remote_url``, ``remote_qr`` and ``expires_in``."""
        return self._request("POST", "/v1/login-links", {}, answer_s=_LIST_S)[1]

    def list_mcp_servers(self) -> dict[str, Any]:
        """Return the MCP servers and their current states: ``data`` and ``problems``."""
        return self._request("GET", "/v1/mcp/servers", None, answer_s=_LIST_S)[1]

    def inspect_mcp_server(self, name: str) -> dict[str, Any]:
        """Return what an MCP server offers now, for a review."""
        return self._request("POST", f"/v1/mcp/servers/{quote(name, safe='')}/look", {})[1]

    def allow_mcp_server(self, name: str, fingerprint: str) -> None:
        """Approve an MCP server as it was shown."""
        self._request("POST", f"/v1/mcp/servers/{quote(name, safe='')}/allow", {"fingerprint": fingerprint})

    def _request(
        self, method: str, path: str, body: object, *, answer_s: float | None = None
    ) -> tuple[Mapping[str, str], dict[str, Any]]:
        import http.client

        place = urlsplit(self._presence.url)
        connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=_CONNECT_S)
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        try:
            connection.connect()
            connection.sock.settimeout(answer_s)  # the server bounds the time of a call
            payload = None if body is None else json.dumps(body, ensure_ascii=False).encode(errors="surrogatepass")
            connection.request(method, path, payload, headers)
            response = connection.getresponse()
            value = json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise ServerUnreachable(
                Message(
                    "home.server_not_responding",
                    "the server of this home (process {pid}) does not answer on {url}: {name}; restart it, or stop "
                    "it and try again",
                    pid=self._presence.pid,
                    url=self._presence.url,
                    name=str(error) or type(error).__name__,
                )
            ) from error
        finally:
            connection.close()
        if response.status >= 400:
            message = value["error"]["message"] if isinstance(value.get("error"), dict) else str(value)
            if response.status in (401, 421, 429, 503):
                raise ServerUnreachable(
                    Message(
                        "home.server_refused_call",
                        "the server of this home refused the call: {message}",
                        message=message,
                    )
                )
            raise ServerRefusal(response.status, message)
        return {name.lower(): text for name, text in response.headers.items()}, value
