"""The listener: its socket, the HTTP server on it, and the check of its address."""

import asyncio
import contextlib
import errno
import logging
import resource
import socket
import ssl
from collections.abc import Iterator
from ipaddress import ip_address
from typing import cast

import uvicorn
from starlette.types import ASGIApp

from toolyard.errors import ToolyardError, UsageError
from toolyard.message import Message
from toolyard.web.connection import BoundedHttpProtocol
from toolyard.web.security.keys import MIN_REMOTE_LENGTH
from toolyard.web.tls_acceptor import TlsAcceptor
from toolyard.web.websocket_client import MAX_MESSAGE

EXIT_S = 5  # for responses that are being sent at shutdown
IDLE_S = 75  # longer than clients keep idle connections, so that both sides do not close at once
MAX_OPEN_FILES = 65_536
FIRST_REQUEST_S = 1.0
_LOOK_S = 0.02


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
                ws="websockets-sansio",
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
                "http.cannot_listen_port",
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
            Message(
                "http.remote_not_allowed",
                "{host} can be reached from other machines: pass --allow-remote to allow that",
                host=host,
            )
        )
    if key is not None and len(key) < MIN_REMOTE_LENGTH:
        raise UsageError(
            Message(
                "key.too_short",
                "the key is shorter than {min_remote_length} characters, too short for other machines: make a longer "
                "one",
                min_remote_length=MIN_REMOTE_LENGTH,
            )
        )


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        raise UsageError(
            Message("http.invalid_ip_address", "'{host}' is not an IP address: use one such as 127.0.0.1", host=host)
        ) from None


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
