"""One connection of a client: how large and how slow the head of a request may be, how answers are sent, who has left.

The HTTP server bounds no head. Without a bound anybody on this machine could hold its memory and its open files. It
writes the head and the body of an answer one after the other; what is written in one round of the event loop goes out
together, because each write costs both sides as much as a good part of a request.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEAD: Final = 64 * 1024
HEAD_S: Final = 30.0
MAX_HELD: Final = 64 * 1024
DEPARTURE: Final = "toolyard.departure"  # where the scope of a request has it
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class Departure:
    """Whether the client of a connection has left, and what is done then: a task that waits for it would cost more."""

    __slots__ = ("_done", "_then")

    def __init__(self) -> None:
        self._done = False
        self._then: Callable[[], None] | None = None

    def then(self, do: Callable[[], None] | None) -> None:
        """Do this when the client leaves, or now if it has; nothing any more with None."""
        self._then = do
        if self._done and do is not None:
            do()

    def happens(self) -> None:
        self._done = True
        if self._then is not None:
            self._then()


class Gathered:
    """A transport that sends at the end of a round what was written in it; sooner when told, or when it is much."""

    __slots__ = ("_held", "_loop", "_size", "_transport", "is_closing")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._held: list[bytes] = []
        self._size = 0
        self.is_closing = transport.is_closing

    def write(self, data: bytes) -> None:
        if not self._held:
            self._loop.call_soon(self.flush)
        self._held.append(data)
        self._size += len(data)
        if self._size >= MAX_HELD:
            self.flush()

    def close(self) -> None:
        self.flush()
        self._transport.close()

    def flush(self) -> None:
        if self._held:
            data, self._held, self._size = b"".join(self._held), [], 0
            self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class _Line(list[Any]):
    """Requests that wait for the one before: hardly ever one. A deque takes 760 bytes even when it is empty."""

    def appendleft(self, one: object) -> None:
        self.insert(0, one)


class BoundedHttp(HttpToolsProtocol):
    """Closes when a head is larger than ``MAX_HEAD``, or not there ``head_s`` after it, or the connection, began."""

    __slots__ = (
        "_departure",
        "_head_bytes",
        "_in_head",
        "_out",
        "_timer",
    )  # in the base's dict they would take a kilobyte

    head_s = HEAD_S

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._head_bytes = 0
        self._in_head = True
        self._timer: asyncio.TimerHandle | None = None
        self._departure = Departure()
        self.pipeline = cast("deque[Any]", _Line())

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._out = Gathered(transport, self.loop)
        super().connection_made(cast("asyncio.Transport", self._out))
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)
        self._departure.happens()

    def data_received(self, data: bytes) -> None:
        if self._in_head:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._in_head and self._head_bytes > MAX_HEAD:
            self._refuse(_TOO_LARGE)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        cast("dict[str, object]", self.scope)[DEPARTURE] = self._departure
        self._in_head = True
        if self._timer is None:
            self._wait_for_head()

    def on_headers_complete(self) -> None:
        self._in_head, self._head_bytes = False, 0
        self._stop_waiting()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        if not self.pipeline:
            self.flow.resume_reading()  # the body is here: what may still be read is that the client leaves

    def on_response_complete(self) -> None:
        self._out.flush()  # what is left to do, such as the log, is not for the client to wait for
        super().on_response_complete()

    def _wait_for_head(self) -> None:
        self._timer = self.loop.call_later(self.head_s, self._refuse, _TOO_SLOW)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refuse(self, answer: bytes) -> None:
        self._stop_waiting()
        if not self.transport.is_closing():
            self.transport.write(answer)
            self.transport.close()
