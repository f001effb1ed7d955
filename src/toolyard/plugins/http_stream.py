"""HTTP/1.1 messages on a connection, and the copying of one exchange from one connection to another.

Every message is parsed and written anew by h11, so that client and server cannot disagree about where one ends.
"""

import asyncio
from contextlib import suppress
from typing import Final

import h11

from toolyard.plugins.stream_relay import CHUNK, Connection, IdleTimeout

MAX_HEAD: Final = 64 * 1024
_FRAMING = frozenset({b"content-length", b"transfer-encoding"})
_HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"upgrade",
    }
)
Headers = list[tuple[bytes, bytes]]


class HttpStream:
    """One side of an HTTP exchange: the client's, to which this process is the server, or the server's."""

    def __init__(self, connection: Connection, role: type[h11.SERVER] | type[h11.CLIENT]) -> None:
        self.connection = connection
        self.http = h11.Connection(role, max_incomplete_event_size=MAX_HEAD)

    @property
    def can_respond(self) -> bool:
        """True until a response has begun."""
        return self.http.our_state in (h11.IDLE, h11.SEND_RESPONSE)

    async def read_request(self) -> h11.Request | None:
        """Return the head of a request; None when the client has nothing to ask. Raises h11.RemoteProtocolError."""
        room = MAX_HEAD
        while (event := self.http.next_event()) is h11.NEED_DATA:
            if not room:
                raise h11.RemoteProtocolError("the head of the request is too large", error_status_hint=431)
            data = await self.connection.reader.read(room)
            room -= len(data)
            self.http.receive_data(data)
        return event if isinstance(event, h11.Request) else None

    async def read_event(self) -> object:
        while (event := self.http.next_event()) is h11.NEED_DATA:
            self.http.receive_data(await self.connection.reader.read(CHUNK))
        return event

    async def send(self, event: h11.Event) -> None:
        await self.connection.send(self.http.send(event) or b"")


async def forward_exchange(request: h11.Request, client: HttpStream, upstream: HttpStream, idle: IdleTimeout) -> None:
    """Send a request with its body to the server, and its one response to the client.

    Raises OSError or h11.ProtocolError when a side fails.
    """
    await upstream.send(request)
    body = asyncio.create_task(_copy_request_body(client, upstream, idle))
    try:
        await _copy_response(client, upstream, idle)
    finally:  # a server may answer before it has read everything
        body.cancel()
        await asyncio.gather(body, return_exceptions=True)


async def _copy_request_body(client: HttpStream, upstream: HttpStream, idle: IdleTimeout) -> None:
    try:
        while isinstance(event := await client.read_event(), h11.Data):
            idle.restart()
            with suppress(ConnectionError):  # the server reads no further; its answer may be there all the same
                await upstream.send(event)
            idle.restart()
        with suppress(ConnectionError):
            await upstream.send(h11.EndOfMessage())
    except (h11.ProtocolError, OSError):
        upstream.connection.writer.transport.abort()  # half a body is no request


async def _copy_response(client: HttpStream, upstream: HttpStream, idle: IdleTimeout) -> None:
    while True:
        event = await upstream.read_event()
        idle.restart()
        match event:
            case h11.InformationalResponse():
                headers = remove_hop_by_hop(list(event.headers))
                await client.send(h11.InformationalResponse(status_code=event.status_code, headers=headers))
            case h11.Response():
                headers = [*remove_hop_by_hop(list(event.headers)), *_keep_length(list(event.headers))]
                headers.append((b"connection", b"close"))
                await client.send(h11.Response(status_code=event.status_code, headers=headers, reason=event.reason))
            case h11.Data():
                await client.send(event)
            case h11.EndOfMessage():
                await client.send(h11.EndOfMessage())
                return
            case _:
                raise h11.RemoteProtocolError("the server ended the connection without a response")
        idle.restart()


def build_upstream_request(request: h11.Request, host_header: str, target: str) -> h11.Request:
    """Return a client's request as its server gets it. Raises ValueError when its length can be read in two ways."""
    received = list(request.headers)
    framing: Headers = [(name, value) for name, value in received if name in _FRAMING]
    if len(framing) > 1:
        raise ValueError("the request has both a content-length and a transfer-encoding")
    others = [(name, value) for name, value in remove_hop_by_hop(received) if name != b"host"]
    headers = [(b"host", host_header.encode()), *others, *framing, (b"connection", b"close")]
    return h11.Request(method=request.method, target=target, headers=headers)


def remove_hop_by_hop(headers: Headers) -> Headers:
    """Return the headers that are meant for the other end; those that say where a body ends are not among them."""
    named = {name.strip().lower() for header, value in headers if header == b"connection" for name in value.split(b",")}
    removed = named | _HOP_BY_HOP | _FRAMING
    return [(name, value) for name, value in headers if name not in removed]


def _keep_length(headers: Headers) -> Headers:
    """Return the length of a response's body; of a chunked one h11 writes the framing itself."""
    framing = [(name, value) for name, value in headers if name in _FRAMING]
    return [] if any(name == b"transfer-encoding" for name, _ in framing) else framing
