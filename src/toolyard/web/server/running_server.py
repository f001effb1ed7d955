"""The running server of a home, as other processes find and use it: ``server.json`` and a blocking client.

Standard library only, because the command line pays for every import.
"""

import contextlib
import json
import os
import select
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol
from urllib.parse import quote, urlencode, urlsplit

from toolyard.crashpoint import crashpoint
from toolyard.errors import ServerUnreachable, ToolyardError
from toolyard.message import Message
from toolyard.own_command import FOR_DEFAULT_HOME, OwnCommand
from toolyard.process_numbers import is_process_alive, process_start_time
from toolyard.web.security.owner_key import read_owner_key

if TYPE_CHECKING:
    from http.client import HTTPConnection

    from toolyard.config import Config


FILE: Final = "server.json"
CALL_ID_HEADER: Final = "x-call-id"
STATUS_HEADER: Final = "x-call-status"
TASKS_HEADER: Final = "x-call-tasks"
_CONNECT_S = 5.0
_ANSWER_S = 10.0  # for a request that the server answers at once
_SILENT_S = 10.0  # after which a waiting client asks whether the server still answers
_STALLED_S = 20.0  # for that answer: a call is running, and the machine may be busy with it
_FRESH_S = 5.0  # for which an answered request shows that the server answers
_NOT_FOUND = 404


class Presence(NamedTuple):
    """The address and the process of a running server."""

    url: str
    pid: int
    started: int  # start time from the kernel: a pid alone may be reused
    project: str
    vcp: str = ""  # the VCPToolBox installation that it serves in place

    @property
    def is_alive(self) -> bool:
        return is_process_alive(self.pid, self.started)


def announce(home: Path, url: str, project: Path, vcp: Path | None = None) -> Presence:
    """Write the presence file of this process atomically, readable by its owner only."""
    pid = os.getpid()
    place = str(vcp) if vcp else ""
    here = Presence(url=url, pid=pid, started=process_start_time(pid), project=str(project.resolve()), vcp=place)
    record = here._asdict()
    draft = home / f".{FILE}.{pid}"
    with suppress(FileNotFoundError):
        draft.unlink()
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        json.dump(record, file)
    crashpoint("presence.before-replace")
    draft.replace(home / FILE)
    return here


def withdraw(home: Path) -> None:
    """Remove the presence file if it is this process's."""
    presence = read_presence(home)
    if presence is not None and presence.pid == os.getpid():
        with suppress(FileNotFoundError):
            (home / FILE).unlink()


def read_presence(home: Path) -> Presence | None:
    """Read the presence file; None when it is missing or invalid."""
    try:
        record = json.loads((home / FILE).read_text(encoding="utf-8"))
        return Presence(
            url=str(record["url"]),
            pid=int(record["pid"]),
            started=int(record["started"]),
            project=str(record["project"]),
            vcp=str(record.get("vcp", "")),
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


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
    return ServerClient(presence, key, config.own_command) if key else None


def find_home_server(config: "Config") -> "ServerClient | None":
    """Return a client of the server of this home, whatever its project is; None without one."""
    presence, key = read_presence(config.home), read_owner_key(config.home)
    is_running = presence is not None and presence.is_alive
    return ServerClient(presence, key, config.own_command) if presence is not None and is_running and key else None


class ServerRefusal(ToolyardError):
    """Raised when the server answers a request with an error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(Message("the server says: {message}", message=message))
        self.status = status


class ServerClient:
    def __init__(
        self,
        presence: Presence,
        key: str,
        own_command: OwnCommand = FOR_DEFAULT_HOME,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._monotonic = monotonic
        self._key, self._own_command = key, own_command
        self.pid, self.url = presence.pid, presence.url
        self._answered_at: float | None = None

    def check(self, *, answer_s: float = _ANSWER_S) -> None:
        """Ask the server for a sign of life; raises ServerUnreachable if it does not answer in time."""
        self._request("GET", "/healthz", None, answer_s=answer_s)

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
        """Run a call on the server and wait for its end.

        A server that does not answer is not sent the call: it would run whenever the server goes on.
        """
        if self._answered_at is None or self._monotonic() - self._answered_at > _FRESH_S:
            self.check()
        query = {"dialect": dialect, "caller": caller, "call_id": call.id}
        query |= {"tool_call_id": tool_call_id} if tool_call_id else {}
        query |= {name: "true" for name, is_set in (("shown", shown), ("force", call.force)) if is_set}
        arguments = call.arguments if later is None else {**call.arguments, "timely_contact": later}
        path = f"/v1/tools/{quote(call.tool, safe='')}?{urlencode(query)}"
        headers, value = self._request("POST", path, arguments, answer_s=None, call_id=call.id)
        tasks = tuple(filter(None, headers.get(TASKS_HEADER, "").split(",")))
        return CallResponse(value=value, failed=headers.get(STATUS_HEADER) == "error", tasks=tasks)

    def cancel(self, call_id: str) -> None:
        """Cancel a running call; one that has ended stays as it is. Raises ServerUnreachable."""
        with contextlib.suppress(ServerRefusal):
            self._request("POST", f"/v1/calls/{call_id}/cancel", {})

    def get_envelope(self, call_id: str) -> dict[str, Any]:
        """Return the envelope of a finished call, from the journal."""
        _, value = self._request("GET", f"/v1/calls/{call_id}", None)
        envelope: dict[str, Any] = value["envelope"]
        return envelope

    def find_tool(self, name: str) -> dict[str, Any]:
        """Return what the server shows of a tool; empty when it has none of this name."""
        try:
            return self._request("GET", f"/v1/tools/{quote(name, safe='')}", None)[1]
        except ServerRefusal as refusal:
            if refusal.status != _NOT_FOUND:
                raise
            return {}

    def make_login_links(self) -> dict[str, Any]:
        """Return new login links: ``url``, ``remote_url``, ``remote_qr`` and ``expires_in``."""
        return self._request("POST", "/v1/login-links", {})[1]

    def list_nodes(self) -> dict[str, Any]:
        """Return the connected nodes: ``is_open`` and ``data``."""
        return self._request("GET", "/v1/nodes", None)[1]

    def allow_node(self, node: str) -> None:
        """Allow the tools of a node as they are now; ``node`` is its id."""
        self._request("POST", f"/v1/nodes/{quote(node, safe='')}/allow", {})

    def list_mcp_servers(self) -> dict[str, Any]:
        """Return the MCP servers and their current states: ``data`` and ``problems``."""
        return self._request("GET", "/v1/mcp/servers", None)[1]

    def inspect_mcp_server(self, name: str) -> dict[str, Any]:
        """Return what an MCP server offers now, for a review."""
        return self._request("POST", f"/v1/mcp/servers/{quote(name, safe='')}/look", {}, answer_s=None)[1]

    def allow_mcp_server(self, name: str, fingerprint: str) -> None:
        """Approve an MCP server as it was shown."""
        path = f"/v1/mcp/servers/{quote(name, safe='')}/allow"
        self._request("POST", path, {"fingerprint": fingerprint}, answer_s=None)

    def _request(
        self, method: str, path: str, body: object, *, answer_s: float | None = _ANSWER_S, call_id: str = ""
    ) -> tuple[Mapping[str, str], dict[str, Any]]:
        """Send a request and return the headers and the value of its answer.

        ``answer_s`` bounds the wait; None: as long as the server shows that it lives. ``call_id``: the call that the
        request runs.
        """
        import http.client

        place = urlsplit(self.url)
        connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=_CONNECT_S)
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        try:
            connection.connect()
            connection.sock.settimeout(_STALLED_S if answer_s is None else answer_s)
            payload = None if body is None else json.dumps(body, ensure_ascii=False).encode(errors="surrogatepass")
            connection.request(method, path, payload, headers)
            if answer_s is None:
                self._wait_for_answer(connection, call_id)
            response = connection.getresponse()
            value = json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise ServerUnreachable(
                Message(
                    "the server of this home (process {pid}) does not answer on {url}: {name}; restart it, or stop "
                    "it and try again",
                    pid=self.pid,
                    url=self.url,
                    name=str(error) or type(error).__name__,
                )
            ) from error
        finally:
            connection.close()
        self._answered_at = self._monotonic()
        if response.status >= 400:
            message = value["error"]["message"] if isinstance(value.get("error"), dict) else str(value)
            if response.status in (401, 421, 429, 503):
                raise ServerUnreachable(Message("the server of this home refused the call: {message}", message=message))
            raise ServerRefusal(response.status, message)
        return {name.lower(): text for name, text in response.headers.items()}, value

    def _wait_for_answer(self, connection: "HTTPConnection", call_id: str) -> None:
        """Wait until the answer begins. Raises ServerUnreachable when the server no longer shows that it lives."""
        poll = select.poll()
        poll.register(connection.sock, select.POLLIN)
        while not poll.poll(_SILENT_S * 1000):  # the server bounds the time of a call
            try:
                self.check(answer_s=_STALLED_S)
            except ServerUnreachable as error:
                if not call_id or poll.poll(0):
                    raise
                raise ServerUnreachable(
                    Message(
                        "{reason}. The call {call_id} was sent and may still run or have run: see `{command}` "
                        "before you call again",
                        reason=error,
                        call_id=call_id,
                        command=self._own_command.for_home.format("journal show", call_id),
                    )
                ) from error
