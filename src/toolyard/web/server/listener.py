"""The listener: the addresses of the server, its socket, and the HTTP server on it, with or without TLS.

With a certificate, one port takes TLS and plain HTTP: a connection whose first byte begins a TLS handshake is
encrypted. Programs on this machine, such as plugins that call back and the command line, go on with plain HTTP, which
never leaves it. Plain HTTP from another machine is redirected, or refused if it is no page request: its key has been on
the wire already. Responses over HTTPS ask browsers to stay with it (HSTS), unless the certificate is self-signed: a
browser could not get past its warning any more.
"""

import asyncio
import contextlib
import errno
import logging
import re
import resource
import socket
import ssl
import struct
import sys
from collections.abc import Callable, Iterator
from http import HTTPStatus
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final, cast

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.types import Message as AsgiMessage
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from toolyard.errors import ToolyardError, UsageError
from toolyard.message import Message
from toolyard.web.refusal import error_body
from toolyard.web.security.keys import MIN_REMOTE_LENGTH
from toolyard.web.server.connection import HEAD_S, BoundedHttpProtocol
from toolyard.web.server.websocket_client import MAX_MESSAGE, MESSAGE_LIMIT

EXIT_S = 5  # for responses that are being sent at shutdown
IDLE_S = 75  # longer than clients keep idle connections, so that both sides do not close at once
MAX_OPEN_FILES = 65_536
FIRST_REQUEST_S = 1.0
_LOOK_S = 0.02
_HANDSHAKE: Final = b"\x16"  # the record type that begins a TLS connection
_RETRY_S = 1.0
_log = logging.getLogger("toolyard.web")
_HSTS: Final = (b"strict-transport-security", b"max-age=15552000")  # 180 days
_HOST: Final = re.compile(r"[A-Za-z0-9.-]+(:\d{1,5})?|\[[0-9A-Fa-f:]+\](:\d{1,5})?")
_ROUTE_TARGETS: Final = ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"))  # documentation addresses
_GET_ADDRESS: Final = 0x8915  # SIOCGIFADDR of Linux


class LimitedWebSocketProtocol(WebSocketsSansIOProtocol):
    """A WebSocket whose route may set another limit of its client's messages, once that is admitted."""

    def handle_connect(self, event: Any) -> None:
        super().handle_connect(event)
        if isinstance(scope := getattr(self, "scope", None), dict):
            scope[MESSAGE_LIMIT] = self._set_message_limit

    def _set_message_limit(self, most: int) -> None:
        self.conn.max_message_size = most


class Listener(uvicorn.Server):
    """A Uvicorn server that handles no signals; ``ready`` is set when it listens."""

    def __init__(self, app: ASGIApp, *, ping_s: float, context: ssl.SSLContext | None = None) -> None:
        """With the TLS ``context`` it also speaks HTTPS."""
        log = logging.getLogger("uvicorn.error")
        log.setLevel(logging.WARNING)  # its lines would contain full URLs
        log.addFilter(_is_relevant)
        super().__init__(
            uvicorn.Config(
                app,
                http=BoundedHttpProtocol,
                ws=LimitedWebSocketProtocol,
                ws_per_message_deflate=False,
                ws_max_size=MAX_MESSAGE,
                ws_ping_interval=ping_s,
                ws_ping_timeout=ping_s,
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_graceful_shutdown=EXIT_S,
                timeout_keep_alive=IDLE_S,
            )
        )
        self.ready = asyncio.Event()
        self._context = context
        self._acceptors: list[TlsAcceptor] = []

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        if self._context is None:
            await super().startup(sockets)
        else:
            await super().startup([])
            self._acceptors = [TlsAcceptor(one, self._context, self._make_protocol) for one in sockets or []]
            self.servers += cast("list[asyncio.Server]", self._acceptors)
        self.ready.set()

    def _make_protocol(self) -> BoundedHttpProtocol:
        return BoundedHttpProtocol(
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state, _loop=None
        )

    async def hand_over(self) -> None:
        """Leave new connections to the next process that gets the socket, and close those that are idle.

        A connection that was accepted has ``FIRST_REQUEST_S`` to send its first request, which is still answered.
        """
        for server in self.servers:
            server.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FIRST_REQUEST_S):
                while self._has_new_connections:  # noqa: ASYNC110 nobody tells
                    await asyncio.sleep(_LOOK_S)
        for connection in list(self.server_state.connections):
            connection.shutdown()

    @property
    def _has_new_connections(self) -> bool:
        """True while an accepted connection has not sent a request."""
        connections = self.server_state.connections
        return any(one.is_opening for one in self._acceptors) or any(
            isinstance(one, BoundedHttpProtocol) and one.cycle is None for one in connections
        )


def _is_relevant(record: logging.LogRecord) -> bool:
    """Filter out a message that Uvicorn logs for every refused WebSocket."""
    return record.msg != "ASGI callable returned without completing handshake."


def raise_file_limit() -> None:
    """Raise the limit of open files: a chat needs two connections, and most systems start at 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = MAX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(MAX_OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < limit:
        with contextlib.suppress(ValueError, OSError):  # some systems allow less than they report
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def open_socket(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With this protocol asyncio recognises a TCP socket and sets TCP_NODELAY.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(2048)
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        other = (
            "; stop what listens there, or choose another port with --port (make run PORT=7000)"
            if error.errno == errno.EADDRINUSE
            else ""
        )
        raise ToolyardError(
            Message(
                "cannot listen on {host} port {port}: {error}{other}",
                host=host,
                port=port,
                error=error.strerror or error,
                other=other,
            )
        ) from error
    return listening


def require_safe_address(host: str, key: str | None, *, allow_remote: bool) -> None:
    """Refuse an address that other machines reach, unless allowed and the key is long enough (S-41)."""
    if is_loopback(host):
        return
    if not allow_remote:
        raise UsageError(
            Message("{host} can be reached from other machines: pass --allow-remote to allow that", host=host)
        )
    if key is not None and len(key) < MIN_REMOTE_LENGTH:
        raise UsageError(
            Message(
                "the key is shorter than {min_remote_length} characters, too short for other machines: make a longer "
                "one",
                min_remote_length=MIN_REMOTE_LENGTH,
            )
        )


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        raise UsageError(Message("'{host}' is not an IP address: use one such as 127.0.0.1", host=host)) from None


def is_wildcard(host: str) -> bool:
    """Return whether a server that listens there is reached by every address of the machine."""
    return host in ("0.0.0.0", "::")  # noqa: S104 compared, not bound


def local_url(host: str, port: int, scheme: str = "http") -> str:
    """Return the URL by which this machine reaches the server."""
    if is_wildcard(host):
        host = "127.0.0.1" if host != "::" else "::1"
    return make_url(host, port, scheme)


def make_url(host: str, port: int, scheme: str) -> str:
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


class TlsAcceptor:
    """Accepts the connections of one listening socket, as an ``asyncio.Server`` does."""

    def __init__(
        self, listening: socket.socket, context: ssl.SSLContext, make_protocol: Callable[[], asyncio.Protocol]
    ) -> None:
        self._listening, self._context, self._make_protocol = listening, context, make_protocol
        self._opening: set[asyncio.Task[None]] = set()
        self._accepting = asyncio.create_task(self._accept())

    @property
    def is_opening(self) -> bool:
        """True while accepted connections have not become ready."""
        return bool(self._opening)

    def close(self) -> None:
        """Accept no more. Connections that are being opened go on."""
        self._accepting.cancel()
        self._accepting.add_done_callback(lambda _: self._listening.close())

    async def wait_closed(self) -> None:
        for task in self._opening:
            task.cancel()
        await asyncio.gather(self._accepting, *self._opening, return_exceptions=True)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(self._listening)
            except OSError as error:  # too many open files, until some clients have disconnected
                _log.warning("a connection could not be accepted: %s", error.strerror)
                await asyncio.sleep(_RETRY_S)
                continue
            task = asyncio.create_task(self._open(connection))
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)

    async def _open(self, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(HEAD_S):
                first = await _peek(connection)
                context = self._context if first == _HANDSHAKE else None
                if first:
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    await loop.connect_accepted_socket(self._make_protocol, connection, ssl=context)
                    return
        except (OSError, TimeoutError) as error:
            _log.debug("a connection could not be opened: %s", error)  # such as a browser that refuses the certificate
        except BaseException:
            connection.close()
            raise
        with contextlib.suppress(OSError):
            connection.close()


async def _peek(connection: socket.socket) -> bytes:
    """Wait for the first byte of a connection, and leave it there; empty when the client has left."""
    loop, is_readable = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(connection, is_readable.set)
    try:
        await is_readable.wait()
    finally:
        loop.remove_reader(connection)
    return connection.recv(1, socket.MSG_PEEK)


class HttpsOnly:
    def __init__(self, app: ASGIApp, *, sends_hsts: bool) -> None:
        self._app, self._sends_hsts = app, sends_hsts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
        elif scope["scheme"] in ("https", "wss"):
            await self._app(scope, receive, self._add_hsts(send) if self._sends_hsts else send)
        elif is_same_machine(scope):
            await self._app(scope, receive, send)
        else:
            await _refuse(scope, send)

    @staticmethod
    def _add_hsts(send: Send) -> Send:
        async def send_with_header(message: AsgiMessage) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], _HSTS]
            await send(message)

        return send_with_header


def is_same_machine(scope: Scope) -> bool:
    """Return whether a connection comes from the machine that it goes to."""
    client, server = (scope.get("client") or ("",))[0], (scope.get("server") or ("",))[0]
    try:
        address = ip_address(client)
    except ValueError:
        return False
    address = getattr(address, "ipv4_mapped", None) or address  # IPv4 on a socket for both
    return address.is_loopback or client == server


async def _refuse(scope: Scope, send: Send) -> None:
    kind = "http.response" if scope["type"] == "http" else "websocket.http.response"
    host = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
    if scope.get("method") in ("GET", "HEAD") and _HOST.fullmatch(host):
        query = scope["query_string"].decode("latin-1")
        target = f"https://{host}{scope['raw_path'].decode('latin-1')}{'?' if query else ''}{query}"
        status, body, headers = HTTPStatus.TEMPORARY_REDIRECT, b"", [(b"location", target.encode("latin-1"))]
    else:
        sentence = Message("this server speaks HTTPS: use an address that begins with https://")
        status, body = HTTPStatus.UPGRADE_REQUIRED, error_body(HTTPStatus.UPGRADE_REQUIRED, sentence, "https_required")
        headers = [(b"content-type", b"application/json"), (b"upgrade", b"TLS/1.2, HTTP/1.1")]
    headers += [(b"content-length", str(len(body)).encode()), (b"connection", b"close")]
    await send({"type": f"{kind}.start", "status": int(status), "headers": headers})
    await send({"type": f"{kind}.body", "body": body})


def list_lan_addresses() -> tuple[str, ...]:
    """Return the addresses of this machine that others can reach; the one of the default route comes first."""
    found = [*_list_route_addresses(), *_list_interface_addresses()]
    return tuple(dict.fromkeys(address for address in found if _is_reachable(address)))


def _list_route_addresses() -> list[str]:
    """Return the addresses from which packets to the outside would come. Nothing is sent."""
    addresses = []
    for family, target in _ROUTE_TARGETS:
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((target, 9))
            addresses.append(probe.getsockname()[0])
    return addresses


def _list_interface_addresses() -> list[str]:
    """Return the IPv4 address of each network card; only Linux is asked, others have that of the default route.

    Bridges of containers and virtual machines come and go, and no phone is behind them.
    """
    if sys.platform != "linux":
        return []
    import fcntl

    addresses = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for _, name in socket.if_nameindex():
            if not Path("/sys/class/net", name, "device").exists():
                continue
            with contextlib.suppress(OSError):  # an interface without an address
                answer = fcntl.ioctl(control, _GET_ADDRESS, struct.pack("256s", name.encode()[:15]))
                addresses.append(socket.inet_ntoa(answer[20:24]))
    return addresses


def _is_reachable(address: str) -> bool:
    parsed = ip_address(address)
    return not (parsed.is_loopback or parsed.is_link_local or parsed.is_unspecified)
