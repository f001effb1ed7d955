"""The one way to fetch a URL that somebody gave us (S-70, S-71).

Only http and https, without credentials in the URL. The name is resolved once, every address it has must be a public
one, and the connection goes to that very address, while Host, SNI and the certificate stay those of the name: a name
that leads elsewhere after the check changes nothing. Each of at most ``MAX_REDIRECTS`` redirects is checked the same
way. Size and time are capped, the time from the first connection to the last byte. Proxies of the environment are not
used. What is returned is the whole body, never a part of it.
"""

import http.client
import ipaddress
import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import SplitResult, quote, unquote, urljoin, urlsplit

from toolyard.message import Message
from toolyard.protocol.envelope import ErrorCode, Failure, Reason
from toolyard.protocol.tool import Checkpoint

MAX_FETCH_BYTES = 20 * 1024 * 1024
MAX_FETCH_S = 50.0  # less than a tool has, so that the answer is ours and not the runner's
MAX_REDIRECTS = 3
_CONNECT_S = 10.0
_CHUNK = 64 * 1024
_REDIRECTS = (301, 302, 303, 307, 308)
_GONE = (404, 410)
Resolve: TypeAlias = Callable[[str, int], Sequence[str]]
"""From a host name and a port to the addresses it has, as text. Raises OSError."""
Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
_PORTS = {"http": 80, "https": 443}
_NAME = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*\.?")
_PATH = "/%:@!$&'()*+,;=~-._"  # what may stand in a path as it is
_QUERY = _PATH + "?"
_UNICAST = ipaddress.IPv6Network("2000::/3")  # all of IPv6 that is given out for public use
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


@dataclass(frozen=True, slots=True)
class SafeUrl:
    """A URL that may be fetched: http or https, no credentials, a host in ASCII."""

    url: str  # without its fragment
    scheme: str
    host: str
    port: int
    target: str  # what the request line asks for

    @classmethod
    def parse(cls, url: str) -> "SafeUrl":
        """Raises Failure when the URL is none that may be fetched; the message never repeats the URL itself."""
        try:
            parts = urlsplit(url)
            port = parts.port
            host = parts.hostname or ""
            host = host if host.isascii() else host.encode("idna").decode()  # so wide digits are digits from here on
        except ValueError as error:  # a UnicodeError is one as well
            raise _url_failure(Message("it is no URL")) from error
        if parts.scheme not in _PORTS:
            raise _url_failure(Message("only http and https are fetched"))
        if parts.username is not None or parts.password is not None:
            raise _url_failure(Message("it carries a user name or a password"))
        if not _NAME.fullmatch(host) and parse_ip_address(host) is None:
            raise _url_failure(Message("it names no host"))
        whole = parts._replace(fragment="").geturl()
        return cls(whole, parts.scheme, host, port or _PORTS[parts.scheme], _build_request_target(parts))

    def resolve_redirect(self, location: str) -> "SafeUrl":
        try:
            return SafeUrl.parse(urljoin(self.url, location))
        except ValueError as error:
            raise _url_failure(Message("it redirects to what is no URL")) from error

    @property
    def authority(self) -> str:
        """The value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def file_name(self) -> str:
        """The last name of the path, or nothing."""
        return unquote(urlsplit(self.url).path.rstrip("/").rpartition("/")[2], errors="replace")


@dataclass(frozen=True, slots=True)
class FetchedBody:
    content: bytes
    source: SafeUrl  # where it was in the end
    mime: str  # as the server says; empty when it does not
    charset: str = ""  # as the server says


def resolve_host(host: str, port: int) -> Sequence[str]:
    infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in infos))


def is_public(address: Address) -> bool:
    """Return whether an address belongs to everybody's network; one that carries another one is judged by that."""
    is_global = address.is_global and not address.is_multicast
    if isinstance(address, ipaddress.IPv4Address):
        return is_global and not address.is_reserved
    inner = address.ipv4_mapped or address.sixtofour  # 6to4 is global or not, by the version of Python
    if address in _NAT64:
        inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return is_public(inner) if inner is not None else is_global and address in _UNICAST


class SafeFetch:
    def __init__(
        self,
        *,
        max_bytes: int = MAX_FETCH_BYTES,
        max_s: float = MAX_FETCH_S,
        resolve: Resolve = resolve_host,
        allowed: Callable[[Address], bool] = is_public,  # only tests, whose server is on this machine, bring another
        tls: Callable[[], ssl.SSLContext] = ssl.create_default_context,
    ) -> None:
        self._max_bytes, self._max_s = max_bytes, max_s
        self._resolve, self._allowed, self._tls = resolve, allowed, tls

    def fetch(self, url: str, checkpoint: Checkpoint) -> FetchedBody:
        """The whole body that ``url`` leads to; raises Failure."""
        place = SafeUrl.parse(url)
        with _Deadline(self._max_s) as deadline:
            for _ in range(MAX_REDIRECTS + 1):
                checkpoint()
                with (
                    _explain_errors(place, deadline),
                    closing(self._connect(place, deadline)) as connection,
                    closing(_send_request(connection, place)) as response,
                ):
                    location = response.getheader("Location") if response.status in _REDIRECTS else None
                    if location is None:
                        content = self._read_body(response, place, checkpoint)
                        deadline.require_time()  # else the end of the body may be our own doing
                        charset = response.headers.get_content_charset() or ""
                        return FetchedBody(content, place, _read_mime(response), charset)
                place = place.resolve_redirect(location)
        raise Failure(
            ErrorCode.EXECUTION_ERROR,
            Message(
                "The URL redirects more than {max_redirects} times, in the end to '{host}'.",
                max_redirects=MAX_REDIRECTS,
                host=place.host,
            ),
            hint=Message("Use the address where the file really is."),
        )

    def _connect(self, place: SafeUrl, deadline: "_Deadline") -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection(place.host, place.port)
        try:
            connection.sock = _connect_to_any(self._resolve_addresses(place), place.port, min(_CONNECT_S, self._max_s))
            deadline.watch(connection.sock)
            connection.sock.settimeout(self._max_s)
            if place.scheme == "https":
                connection.sock = secured = self._tls().wrap_socket(
                    connection.sock, server_hostname=place.host, do_handshake_on_connect=False
                )
                deadline.watch(secured)
                secured.do_handshake()
        except OSError:
            connection.close()
            raise
        return connection

    def _resolve_addresses(self, place: SafeUrl) -> list[str]:
        """All addresses of the host. All must be allowed: which of them is used is not for us to choose."""
        number = parse_ip_address(place.host)
        try:
            texts = self._resolve(place.host, place.port) if number is None else [str(number)]
            addresses = [ipaddress.ip_address(address) for address in texts]
        except (OSError, ValueError) as error:
            raise _fetch_failure(place, Message("its name is not known")) from error
        if not addresses:
            raise _fetch_failure(place, Message("its name has no address"))
        if not all(map(self._allowed, addresses)):
            raise Failure(
                ErrorCode.ACCESS_DENIED,
                Message(
                    "'{host}' is not on the public network: private and local addresses are not fetched from.",
                    host=place.host,
                ),
                hint=Message("Use a public address."),
            )
        return list(map(str, addresses))

    def _read_body(self, response: http.client.HTTPResponse, place: SafeUrl, checkpoint: Checkpoint) -> bytes:
        _require_success(response, place)
        expected = response.length
        if expected is not None and expected > self._max_bytes:
            raise self._too_large_failure(place)
        content = bytearray()
        while expected is None or len(content) < expected:
            checkpoint()
            chunk = response.read1(_CHUNK)
            if not chunk:
                break
            content += chunk
            if len(content) > self._max_bytes:
                raise self._too_large_failure(place)
        if expected is not None and len(content) < expected:
            raise http.client.IncompleteRead(b"", expected - len(content))
        return bytes(content)

    def _too_large_failure(self, place: SafeUrl) -> Failure:
        return Failure(
            Reason.TOO_LARGE,
            Message(
                "'{host}' sends more than {limit} bytes: nothing was kept.", host=place.host, limit=self._max_bytes
            ),
            hint=Message("Fetch it with a program made for large files."),
        )


def _connect_to_any(addresses: Sequence[str], port: int, timeout_s: float) -> socket.socket:
    """A connection to the first address that answers."""
    *others, last = addresses
    for address in others:
        with suppress(OSError):
            return socket.create_connection((address, port), timeout_s)
    return socket.create_connection((last, port), timeout_s)


def _send_request(connection: http.client.HTTPConnection, place: SafeUrl) -> http.client.HTTPResponse:
    connection.putrequest("GET", place.target, skip_host=True, skip_accept_encoding=True)
    connection.putheader("Host", place.authority)
    connection.putheader("User-Agent", "Toolyard")
    connection.putheader("Accept", "*/*")
    connection.putheader("Accept-Encoding", "identity")  # nothing to unpack, so nothing to blow up
    connection.putheader("Connection", "close")
    connection.endheaders()
    return connection.getresponse()


def _require_success(response: http.client.HTTPResponse, place: SafeUrl) -> None:
    if response.status != http.client.OK:
        raise Failure(
            ErrorCode.NOT_FOUND if response.status in _GONE else ErrorCode.EXECUTION_ERROR,
            Message("'{host}' answered {status}: nothing was fetched.", host=place.host, status=response.status),
            hint=Message("Check the URL."),
        )
    packed = response.getheader("Content-Encoding", "")
    if packed.strip().lower() not in ("", "identity"):
        raise _fetch_failure(
            place, Message("it packs what it sends ({packing}) although asked not to", packing=packed[:40])
        )


def _read_mime(response: http.client.HTTPResponse) -> str:
    return response.headers.get_content_type() if response.getheader("Content-Type") else ""


class _Deadline:
    """Ends the connection it watches when the time is over, wherever that is: a server that drips cannot hold us."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.over = seconds, False
        self._watched: socket.socket | None = None
        self._guard = threading.Lock()
        self._timer = threading.Timer(seconds, self._end_connection)
        self._timer.daemon = True

    def __enter__(self) -> "_Deadline":
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    def watch(self, connected: socket.socket) -> None:
        with self._guard:
            self._watched = connected
        self.require_time()

    def require_time(self) -> None:
        if self.over:
            raise TimeoutError

    def _end_connection(self) -> None:
        with self._guard:
            self.over = True
            if self._watched is not None:
                with suppress(OSError):  # it is closed already
                    self._watched.shutdown(socket.SHUT_RDWR)


@contextmanager
def _explain_errors(place: SafeUrl, deadline: _Deadline) -> Iterator[None]:
    """Turn errors of the block into Failures."""
    try:
        yield
    except (OSError, http.client.HTTPException) as error:
        if deadline.over or isinstance(error, TimeoutError):
            raise Failure(
                ErrorCode.TIMEOUT,
                Message(
                    "'{host}' did not answer in full in time ({seconds:g} s at most): nothing was kept.",
                    host=place.host,
                    seconds=deadline.seconds,
                ),
                hint=Message("Try again later."),
            ) from error
        raise _fetch_failure(place, _describe_error(error)) from error


def _describe_error(error: OSError | http.client.HTTPException) -> str:
    match error:
        case ssl.SSLCertVerificationError():
            return Message("its certificate is not valid ({problem})", problem=error.verify_message)
        case http.client.IncompleteRead():
            return Message("it broke off in the middle")
        case OSError():
            return error.strerror or str(error) or type(error).__name__
        case _:
            return Message("it does not answer in HTTP ({error})", error=type(error).__name__)


def _fetch_failure(place: SafeUrl, why: str) -> Failure:
    return Failure(
        ErrorCode.EXECUTION_ERROR,
        Message("Nothing was fetched from '{host}': {why}.", host=place.host, why=why),
        hint=Message("Check the URL and try again."),
    )


def parse_ip_address(host: str) -> Address | None:
    """The address that a host without a name is, also in the short and numeric forms that systems accept."""
    try:
        return ipaddress.ip_address(unquote(host))
    except ValueError:
        pass
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except (OSError, ValueError):  # a ValueError for a NUL
        return None


def _build_request_target(parts: SplitResult) -> str:
    query = quote(parts.query, safe=_QUERY)
    return quote(parts.path or "/", safe=_PATH) + (f"?{query}" if query else "")


def _url_failure(why: str) -> Failure:
    return Failure(
        ErrorCode.INVALID_PARAM,
        Message("The URL cannot be fetched: {why}.", why=why),
        hint=Message("Use a URL such as https://example.com/a.txt."),
    )
