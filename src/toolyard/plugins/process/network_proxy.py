"""The HTTP proxy through which a plugin with a list of hosts reaches the network, and nothing else.

It takes ``CONNECT host:port`` for TLS and everything else, and requests with an absolute ``http://`` URI; also with an
``https://`` one, as some clients send it: then the proxy itself speaks TLS and checks the certificate. Host and port
must be declared in ``permissions.network``. The name is looked up once, each of its addresses must be public or
declared itself, and the connection goes to one of the addresses that were checked: a name that leads elsewhere a moment
later changes nothing. A connection serves one request, so each request is checked. Redirects are the client's to
follow, with a request of their own. A refusal is a 403 with the reason as text, a server that cannot be reached a 502,
a request that is none a 400, one connection too many a 503. What passes through a tunnel is not looked at.

Every message is parsed and written anew by h11, so that client and server cannot disagree about where one ends. Host
and port are read strictly: anything two programs could read differently is bad. No credentials, no percent-encoding,
no empty port. An address in one of its numeric forms (``127.1``, ``2130706433``) is the address it is, and an IPv4
address inside an IPv6 one is the IPv4 address.
"""

import asyncio
import functools
import ipaddress
import re
import ssl
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, TypeAlias

import h11

from toolyard.plugins.process.ports import (
    CHUNK,
    Connection,
    ConnectionLimits,
    IdleTimeout,
    close_gracefully,
    open_tcp_connection,
    open_tls_connection,
    relay,
)
from toolyard.process_memory import is_short_of_memory
from toolyard.protocol.json import JsonObject
from toolyard.protocol.manifests.permissions import Address, AllowedHosts, normalize_name, unmap_address
from toolyard.workspace.safe_fetch import Resolve, is_public, parse_ip_address, resolve_host

_LOOKUPS = 4  # at once; a look-up that hangs holds its thread until the system gives up
_ADDRESSES = 4  # of a host are tried
_LINGER_BYTES = 4 * 2**20
OnRefused: TypeAlias = Callable[[str, int, str], None]
"""Is called with the host, the port and the reason of each refusal."""
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
_AUTHORITY = re.compile(r"(?:\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9_.-]+))(?::(?P<port>[0-9]{1,5}))?")
_ABSOLUTE = re.compile(r"(?P<scheme>https?)://(?P<authority>[^/?#]*)(?P<rest>[^#]*)", re.IGNORECASE)
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class ProxyTarget:
    host: str  # a name from ``normalize_name``, or the text of the address
    port: int
    address: Address | None = None  # of a host without a name

    def __str__(self) -> str:
        return f"{self.bracketed_host}:{self.port}"

    @property
    def bracketed_host(self) -> str:
        """The host as it stands in a URI."""
        return f"[{self.host}]" if ":" in self.host else self.host


@dataclass(frozen=True, slots=True)
class AbsoluteUri:
    target: ProxyTarget
    is_https: bool
    path: str  # with the query

    @property
    def host_header(self) -> str:
        is_default = self.target.port == _PORTS["https" if self.is_https else "http"]
        return self.target.bracketed_host if is_default else str(self.target)


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


class NetworkProxy:
    def __init__(
        self,
        hosts: Sequence[str],
        *,
        on_refused: OnRefused | None = None,
        resolve: Resolve = resolve_host,
        tls: Callable[[], ssl.SSLContext] = ssl.create_default_context,
        limits: ConnectionLimits | None = None,
    ) -> None:
        """Raises ValueError when an entry of ``hosts`` is none (see ``allowed_hosts``)."""
        self._hosts = tuple(hosts)
        self._allowed = AllowedHosts.parse(hosts)
        self._on_refused = on_refused
        self._resolve = resolve
        self._tls = functools.cache(tls)  # reading the authorities of the system takes a while
        self._limits = limits or ConnectionLimits()
        self._connections = 0
        self._lookups = ThreadPoolExecutor(_LOOKUPS, thread_name_prefix="proxy-lookup")  # idle ones end with the proxy

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        if self._connections >= self._limits.connections:
            writer.write(_ProxyError(HTTPStatus.SERVICE_UNAVAILABLE, "too many connections at once").to_response())
            writer.close()
            return
        client = Connection(reader, writer)
        self._connections += 1
        try:
            with suppress(OSError, h11.ProtocolError):  # of the client; those of a server are answered
                await self._answer(HttpStream(client, h11.SERVER))
            await close_gracefully(client, self._limits.linger_s)
        finally:
            self._connections -= 1
            writer.transport.abort()

    def to_json(self) -> JsonObject:
        return {"hosts": list(self._hosts)}

    async def _answer(self, client: HttpStream) -> None:
        method = b""
        try:
            request = await self._read_request(client)
            if request is None:
                return
            method = request.method
            if method == b"CONNECT":
                await self._open_tunnel(request, client)
            else:
                await self._forward_request(request, client)
                await self._linger(client.connection)
        except _ProxyError as error:
            if client.can_respond:
                await client.connection.send(error.to_response(with_body=method != b"HEAD"))
                await self._linger(client.connection)
            else:
                client.connection.writer.transport.abort()  # half a response is not to look like a whole one

    async def _read_request(self, client: HttpStream) -> h11.Request | None:
        try:
            async with asyncio.timeout(self._limits.head_s):
                return await client.read_request()
        except TimeoutError as error:
            raise _ProxyError(HTTPStatus.REQUEST_TIMEOUT, "the request took too long") from error
        except h11.RemoteProtocolError as error:
            raise _ProxyError(HTTPStatus(error.error_status_hint), f"not a valid HTTP request: {error}") from error

    async def _open_tunnel(self, request: h11.Request, client: HttpStream) -> None:
        try:
            target = parse_authority(request.target.decode("ascii"), None)
        except ValueError as error:
            raise _ProxyError(HTTPStatus.BAD_REQUEST, str(error)) from error
        if not isinstance(client.http.next_event(), h11.EndOfMessage):
            raise _ProxyError(HTTPStatus.BAD_REQUEST, "a CONNECT request has no body")
        upstream = await self._connect(target)
        try:
            await client.send(h11.Response(status_code=200, headers=[], reason=b"Connection established"))
            await upstream.send(client.http.trailing_data[0])  # came before the answer was there
            await relay(client.connection, upstream, self._limits.idle_s)
            await close_gracefully(upstream, self._limits.linger_s)
        finally:
            upstream.writer.transport.abort()

    async def _forward_request(self, request: h11.Request, client: HttpStream) -> None:
        try:
            uri = parse_absolute_uri(request.target.decode("ascii"))
            upstream_request = build_upstream_request(request, uri.host_header, uri.path)
        except ValueError as error:
            raise _ProxyError(HTTPStatus.BAD_REQUEST, str(error)) from error
        upstream = HttpStream(await self._connect(uri.target, with_tls=uri.is_https), h11.CLIENT)
        try:
            async with IdleTimeout(self._limits.idle_s) as idle:
                await forward_exchange(upstream_request, client, upstream, idle)
        except (OSError, h11.ProtocolError) as error:
            raise _ProxyError(HTTPStatus.BAD_GATEWAY, f"the exchange with {uri.target} failed: {error}") from error
        finally:
            upstream.connection.writer.transport.abort()

    async def _connect(self, target: ProxyTarget, *, with_tls: bool = False) -> Connection:
        """Return a connection to one of the addresses that were checked."""
        addresses = (await self._check(target))[:_ADDRESSES]
        context = await asyncio.to_thread(self._tls) if with_tls else None
        problem: OSError = ConnectionError("it has no address")
        for address in addresses:
            try:
                async with asyncio.timeout(self._limits.connect_s / len(addresses)):
                    if context is not None:
                        return await open_tls_connection(str(address), target.port, context, target.host)
                    return await open_tcp_connection(str(address), target.port)
            except OSError as error:
                problem = error
        reason = "it does not answer" if isinstance(problem, TimeoutError) else str(problem)
        raise _ProxyError(HTTPStatus.BAD_GATEWAY, f"{target} cannot be reached: {reason}") from problem

    async def _check(self, target: ProxyTarget) -> list[Address]:
        """Return the addresses of a target, all of which are allowed."""
        if target.address is not None:
            if not self._allowed.allows_address(target.address, target.port):
                raise self._refusal(target, "it is not declared")
            return [target.address]
        if not self._allowed.allows_name(target.host, target.port):
            raise self._refusal(target, "it is not declared")
        addresses = await self._look_up(target)
        for address in addresses:
            if not is_public(address) and not self._allowed.allows_address(address, target.port):
                raise self._refusal(target, f"it leads to {address}, a private address that is not declared itself")
        return addresses

    async def _look_up(self, target: ProxyTarget) -> list[Address]:
        loop = asyncio.get_running_loop()
        if is_short_of_memory():  # a thread may have to be started
            raise _ProxyError(HTTPStatus.SERVICE_UNAVAILABLE, "the server is short of memory")
        try:
            async with asyncio.timeout(self._limits.connect_s):
                texts = await loop.run_in_executor(self._lookups, self._resolve, target.host, target.port)
            return [unmap_address(ipaddress.ip_address(text)) for text in texts]
        except (OSError, ValueError) as error:
            raise _ProxyError(HTTPStatus.BAD_GATEWAY, f"the name {target.host} cannot be looked up") from error

    def _refusal(self, target: ProxyTarget, reason: str) -> "_ProxyError":
        if self._on_refused is not None:
            self._on_refused(target.host, target.port, reason)
        sentence = f"the plugin may not connect to {target}: {reason} (permissions.network in its manifest)"
        return _ProxyError(HTTPStatus.FORBIDDEN, sentence)

    async def _linger(self, client: Connection) -> None:
        """Let the client read its answer: closing on what it still sends would reset the connection before that."""
        room = _LINGER_BYTES
        async with asyncio.timeout(self._limits.linger_s):
            client.end()
            while room > 0 and (data := await client.reader.read(CHUNK)):
                room -= len(data)


class _ProxyError(Exception):
    """Raised when the proxy answers a request itself."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason

    def to_response(self, *, with_body: bool = True) -> bytes:
        body = f"Toolyard's proxy: {self.reason}.\n".encode()
        head = (
            f"HTTP/1.1 {self.status.value} {self.status.phrase}\r\nContent-Type: text/plain; charset=utf-8\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        return head.encode() + (body if with_body else b"")


def proxy_variables(port: int) -> dict[str, str]:
    """Return the environment variables by which programs find a proxy on a loopback port."""
    proxy, direct = f"http://127.0.0.1:{port}", "127.0.0.1,localhost,::1"
    values = {"HTTP_PROXY": proxy, "HTTPS_PROXY": proxy, "ALL_PROXY": proxy, "NO_PROXY": direct}
    return values | {name.lower(): value for name, value in values.items()} | {"NODE_USE_ENV_PROXY": "1"}


def parse_authority(text: str, default_port: int | None) -> ProxyTarget:
    """Return the host and port of ``host:port``; without a default port it is required. Raises ValueError."""
    parts = _AUTHORITY.fullmatch(text)
    port = default_port if parts is None or parts["port"] is None else int(parts["port"])
    if parts is None or port is None or not 1 <= port <= 65535:
        raise ValueError("the request target is not of the form host:port")
    if parts["ipv6"] is not None:
        address: Address | None = unmap_address(ipaddress.IPv6Address(parts["ipv6"]))
    else:
        address = parse_ip_address(parts["name"].removesuffix("."))
    if address is not None:
        return ProxyTarget(str(address), port, address)
    name = normalize_name(parts["name"])
    if name is None:
        raise ValueError("the request target names no host")
    return ProxyTarget(name, port)


def parse_absolute_uri(text: str) -> AbsoluteUri:
    """Return the parts of an ``http`` or ``https`` URI. Raises ValueError."""
    parts = _ABSOLUTE.fullmatch(text)
    if parts is None:
        raise ValueError("this is a proxy: ask with CONNECT host:port, or for an absolute http:// URI")
    scheme, rest = parts["scheme"].lower(), parts["rest"]
    path = rest if rest.startswith("/") else f"/{rest}"
    return AbsoluteUri(parse_authority(parts["authority"], _PORTS[scheme]), scheme == "https", path)


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
