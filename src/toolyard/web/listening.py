"""Listening: the socket, the HTTP server on it, and whether the address is a safe one."""

import asyncio
import contextlib
import errno
import logging
import resource
import socket
from collections.abc import Iterator
from ipaddress import ip_address

import uvicorn
from starlette.types import ASGIApp

from toolyard.errors import ToolyardError, UsageError
from toolyard.web.connection import BoundedHttp
from toolyard.web.keys import LONG
from toolyard.web.sockets import MAX_MESSAGE

EXIT_S = 5  # for answers that are being sent when the server ends
IDLE_S = 75  # a client lets go of a connection that nobody uses before the server does: else they meet halfway
MOST_FILES = 65_536


class Listener(uvicorn.Server):
    """Leaves signals to whoever started it, and says when it listens."""

    def __init__(self, app: ASGIApp, *, ping_s: float) -> None:
        log = logging.getLogger("uvicorn.error")
        log.setLevel(logging.WARNING)  # its lines would carry whole addresses
        log.addFilter(_is_fault)
        super().__init__(
            uvicorn.Config(
                app,
                http=BoundedHttp,
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

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()


def _is_fault(record: logging.LogRecord) -> bool:
    """The HTTP server takes every WebSocket that is refused for a fault of the application."""
    return record.msg != "ASGI callable returned without completing handshake."


def make_room() -> None:
    """Take as many open files as the system gives: a chat needs two connections, and most systems begin at 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(MOST_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(ValueError, OSError):  # some systems give less than they say
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # By its protocol asyncio knows a TCP socket, and sends each answer without waiting for more of it.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(2048)
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        other = "; end what listens there, or name another with --port" if error.errno == errno.EADDRINUSE else ""
        raise ToolyardError(f"cannot listen on {host} port {port}: {error.strerror or error}{other}") from error
    return listening


def require_safe(host: str, key: str | None, *, allow_remote: bool) -> None:
    """Only this machine, unless the owner says so and the key cannot be guessed (S-41)."""
    if is_loopback(host):
        return
    if not allow_remote:
        raise UsageError(f"{host} is reached from other machines: say --allow-remote if that is meant")
    if key is not None and len(key) < LONG:
        raise UsageError(f"the key is shorter than {LONG} characters, too short for other machines: make a longer one")


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        raise UsageError(f"'{host}' is not an address: write one such as 127.0.0.1") from None


def url_of(host: str, port: int) -> str:
    """The address by which this machine reaches it."""
    if host in ("0.0.0.0", "::"):  # noqa: S104 compared, not bound
        host = "127.0.0.1" if host != "::" else "::1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
