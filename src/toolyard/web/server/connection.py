"""The HTTP protocol of one connection: bounds on request heads and connections, buffered writes, notice of disconnects.

Uvicorn bounds neither size nor time of a request head; without a bound anybody on this machine could hold its memory
and its open files. It also writes the head and the body of a response separately; what is written in one iteration of
the event loop is sent together, because each write costs a good part of a request.

Connections take at most half of the files that the process may open, and leave some where these are few: the rest is
for the state, providers and plugin starts. One connection more closes another that is idle; if none is, its request is
answered with 503.
"""

import asyncio
import logging
import resource
from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import Any, Final, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEAD: Final = 64 * 1024
HEAD_S: Final = 30.0
MAX_BUFFERED: Final = 64 * 1024
DISCONNECTION: Final = "toolyard.disconnection"  # key of the ASGI scope
_TLS_HANDSHAKE = b"\x16\x03"
_log = logging.getLogger("toolyard.web")
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_TOO_MANY = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 5\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_RESERVED = 96  # files of a server that runs 8 plugins at once (58 measured), with some to spare
_MIN_CONNECTIONS = 8
_REFUSED_S = 1.0  # for the request of a connection that is one too many
_MAX_REFUSED = 16  # of these at a time; further ones are closed at once
_MAX_LOOKED_AT = 1000  # connections, for one that is idle
_TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class Disconnection:
    """The disconnect of a client, with a callback for it: a task that waits for it would cost more."""

    __slots__ = ("_callback", "_is_disconnected")

    def __init__(self) -> None:
        self._is_disconnected = False
        self._callback: Callable[[], None] | None = None

    def set_callback(self, do: Callable[[], None] | None) -> None:
        """Call ``do`` when the client disconnects, or now if it has; None removes the callback."""
        self._callback = do
        if self._is_disconnected and do is not None:
            do()

    def notify(self) -> None:
        self._is_disconnected = True
        if self._callback is not None:
            self._callback()


class BufferedTransport:
    """A transport that sends what was written at the end of a loop iteration, or when the buffer is full."""

    __slots__ = ("_chunks", "_loop", "_size", "_transport", "is_closing")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._chunks: list[bytes] = []
        self._size = 0
        self.is_closing = transport.is_closing

    def write(self, data: bytes) -> None:
        if not self._chunks:
            self._loop.call_soon(self.flush)
        self._chunks.append(data)
        self._size += len(data)
        if self._size >= MAX_BUFFERED:
            self.flush()

    def close(self) -> None:
        self.flush()
        self._transport.close()

    def flush(self) -> None:
        if self._chunks:
            data, self._chunks, self._size = b"".join(self._chunks), [], 0
            self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class _Pipeline(list[Any]):
    """The queue of pipelined requests, nearly always empty. An empty deque takes 760 bytes."""

    def appendleft(self, one: object) -> None:
        self.insert(0, one)


class BoundedHttpProtocol(HttpToolsProtocol):
    """Closes the connection when a request head exceeds ``MAX_HEAD`` bytes or takes longer than ``head_s``."""

    __slots__ = (
        "_disconnection",
        "_head_bytes",
        "_in_head",
        "_is_refused",
        "_out",
        "_timer",
    )  # in the __dict__ of the base class they would take a kilobyte

    head_s = HEAD_S
    is_tls_noted = False  # of all connections

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._head_bytes = 0
        self._in_head, self._is_refused = True, False
        self._timer: asyncio.TimerHandle | None = None
        self._disconnection = Disconnection()
        self.pipeline = cast("deque[Any]", _Pipeline())

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._out = BufferedTransport(transport, self.loop)
        over = len(self.connections) - _max_connections()
        if over >= 0 and not self._close_idle_connection():
            self._is_refused = True
        super().connection_made(cast("asyncio.Transport", self._out))
        if over >= _MAX_REFUSED:
            self.transport.close()
        else:
            self._start_head_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_head_timer()
        super().connection_lost(exc)
        self._disconnection.notify()

    def data_received(self, data: bytes) -> None:
        if self._in_head:
            if not self._head_bytes and data.startswith(_TLS_HANDSHAKE):
                self._warn_about_tls()
            self._head_bytes += len(data)
        super().data_received(data)
        if self._in_head and self._head_bytes > MAX_HEAD:
            self._refuse(_TOO_LARGE)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        cast("dict[str, object]", self.scope)[DISCONNECTION] = self._disconnection
        self._in_head = True
        if self._timer is None:
            self._start_head_timer()

    def on_headers_complete(self) -> None:
        self._in_head, self._head_bytes = False, 0
        self._stop_head_timer()
        if self._is_refused:
            self._refuse(_TOO_MANY)
        else:
            super().on_headers_complete()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        if not self.pipeline:
            self.flow.resume_reading()  # the body is complete: only a disconnect can follow

    def on_response_complete(self) -> None:
        self._out.flush()  # the client need not wait for the log
        super().on_response_complete()

    @property
    def is_idle(self) -> bool:
        """True after a response, until the next request begins."""
        cycle = cast("Any", self.cycle)  # None before the first request
        return cycle is not None and cycle.response_complete and not self._head_bytes

    def _close_idle_connection(self) -> bool:
        """Close a connection that waits for its next request, so that there is room for this one; False if none is."""
        looked_at = islice(self.connections, _MAX_LOOKED_AT)
        idle = next((one for one in looked_at if isinstance(one, BoundedHttpProtocol) and one.is_idle), None)
        if idle is None:
            return False
        idle.transport.close()
        self.connections.discard(idle)  # it does not count from here on
        return True

    @classmethod
    def _warn_about_tls(cls) -> None:
        if not cls.is_tls_noted:
            cls.is_tls_noted = True
            _log.warning(
                "a client speaks TLS to this port, which serves plain HTTP: use http:// for it, also in a proxy's "
                "configuration, and https:// for the proxy"
            )

    def _start_head_timer(self) -> None:
        seconds = _REFUSED_S if self._is_refused else self.head_s
        self._timer = self.loop.call_later(seconds, self._refuse, _TOO_MANY if self._is_refused else _TOO_SLOW)

    def _stop_head_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refuse(self, answer: bytes) -> None:
        self._stop_head_timer()
        if not self.transport.is_closing():
            self.transport.write(answer)
            self.transport.close()


def _max_connections() -> int:
    """Return how many connections may be open: a chat needs two, one of them to its provider."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 2**31 if soft == resource.RLIM_INFINITY else max(_MIN_CONNECTIONS, min(soft // 2, soft - _RESERVED))
