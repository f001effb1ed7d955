"""The head of a request: everything but its body, as the client sent it, and the checks of its address.

Behind a trusted proxy, client address, scheme and host are those that the proxy names. X-Forwarded-For, -Proto, -Host
and -Prefix are read, and ``Forwarded`` (RFC 7239) in a request without any of them: most proxies pass a client's own
``Forwarded`` on unchanged. Of several values the last is that of the nearest proxy. Below the path of ``public_url``
that path is removed, unless the proxy has done so. What clients make of a base URL is in ``ways_in``.
"""

import base64
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Final, Self
from urllib.parse import parse_qsl, quote, urlsplit

from starlette.types import Scope as AsgiScope

from toolyard.message import Message
from toolyard.protocol.manifests.permissions import unmap_address
from toolyard.web.refusal import Refusal
from toolyard.web.security.ways_in import find_route

MESSAGES_PATH: Final = "/v1/messages"
ANTHROPIC_VERSION: Final = "anthropic-version"  # a header that its clients send with every request
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_SCHEMES = {"ws": "http", "wss": "https"}
_LOCAL = ("127.0.0.1", "localhost", "[::1]")
_EXAMPLE_HOST = "yard.example.org"
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
HEADERS: Final = ("x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-forwarded-prefix")
_NAMES: Final = frozenset(name.encode() for name in (*HEADERS, "forwarded"))
_MAX_HOPS = 32  # that are looked at: a client may send thousands
_FORWARDED_SCHEMES = {"http": "http", "https": "https", "ws": "http", "wss": "https"}
_HOST = re.compile(r"(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?")
_PREFIX = re.compile(r"(?:/[A-Za-z0-9._~-]+)*/?")
_PAIR = re.compile(r'\s*([a-z]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;,"]*))\s*([;,]|$)', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PublicAddress:
    """``https://example.org/yard``: its scheme, its host with a port that is not the default one, and its path."""

    scheme: str
    host: str
    path: str  # "" or a path such as "/yard"
    hosts: frozenset[str]  # the Host headers of requests to it: some proxies add the default port

    @classmethod
    def from_url(cls, url: str) -> Self:
        parts = urlsplit(url)
        names = {parts.netloc} if parts.port else {parts.netloc, parts.netloc + _DEFAULT_PORTS[parts.scheme]}
        return cls(parts.scheme, parts.netloc, parts.path.rstrip("/"), frozenset(names))

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.host}"

    @property
    def url(self) -> str:
        return self.origin + self.path

    def contains(self, path: str) -> bool:
        """Return whether a path begins with that of the address, because a proxy did not remove it."""
        return bool(self.path) and (path == self.path or path.startswith(f"{self.path}/"))


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPolicy:
    """The host names and origins that this server accepts, and the proxies it trusts."""

    hosts: frozenset[str]
    origins: frozenset[str] = frozenset()
    proxies: tuple[IPv4Network | IPv6Network, ...] = ()  # whose forwarding headers are trusted
    public: PublicAddress | None = None

    def is_trusted_proxy(self, address: str) -> bool:
        if not self.proxies:
            return False
        try:
            parsed = unmap_address(ip_address(address))
        except ValueError:
            return False
        return any(parsed in proxy for proxy in self.proxies)


def make_host_policy(
    host: str,
    port: int,
    *,
    hosts: Iterable[str] = (),
    origins: Iterable[str] = (),
    proxies: Sequence[str] = (),
    public_url: str | None = None,
) -> HostPolicy:
    """Return a policy of the loopback names, the listening address and the configured ones."""
    own = f"[{host}]" if ":" in host else host
    public = PublicAddress.from_url(public_url) if public_url else None
    names = {f"{name}:{port}" for name in (*_LOCAL, own)} | {name.lower() for name in hosts}
    return HostPolicy(
        hosts=frozenset(names | (public.hosts if public else frozenset())),
        origins=frozenset(origin.lower() for origin in origins),  # as browsers send them
        proxies=tuple(ip_network(proxy, strict=False) for proxy in proxies),
        public=public,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Forwarding:
    """The contents of the forwarding headers of one request; empty where they say nothing."""

    scheme: str = ""
    host: str = ""
    prefix: str = ""
    addresses: tuple[str, ...] = ()  # of the client and of proxies, the nearest last; empty texts for hidden ones
    invalid: str = ""  # the name of a header that cannot be understood


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestHead:
    method: str
    path: str
    query: str
    headers: Sequence[tuple[bytes, bytes]]  # lower-case names, undecoded: most are never read
    address: str
    scheme: str
    host: str = ""
    raw_path: bytes = b"/"
    prefix: str | None = ""  # the path below which a client reaches this server; None: only a proxy knows
    public: PublicAddress | None = None  # of the server
    peer: str = ""  # the address of the connection, which may be a proxy's
    forwarding: Forwarding | None = None  # of a trusted proxy

    @property
    def base(self) -> str:
        """The address of ``/`` for links on a page at this path; it ends with a slash."""
        if self.prefix is None:
            return "../" * self.raw_path.count(b"/", 1) or "./"
        return f"{self.prefix}/"

    def get(self, name: str) -> str:
        """Return a header, empty without one; repeated ones are joined with a comma."""
        return _join_header(self.headers, name.encode("latin-1"))

    def query_value(self, name: str) -> str:
        return next((value for key, value in parse_qsl(self.query) if key == name), "")

    def cookie(self, name: str) -> str:
        pairs = (part.strip().partition("=") for part in self.get("cookie").split(";"))
        return next((value for key, _, value in pairs if key == name), "")

    @property
    def key(self) -> str:
        """The bearer key of the Authorization header, or that of ``x-api-key``, as Anthropic's clients send it."""
        kind, _, key = self.get("authorization").partition(" ")
        return (key.strip() if kind.lower() == "bearer" else "") or self.get("x-api-key").strip()

    @property
    def basic_credentials(self) -> tuple[str, str] | None:
        """The name and the password of Basic authentication; None without them."""
        kind, _, text = self.get("authorization").partition(" ")
        if kind.lower() != "basic":
            return None
        try:
            name, _, password = base64.b64decode(text.strip(), validate=True).decode().partition(":")
        except ValueError:
            return "", ""
        return name, password

    @property
    def speaks_messages(self) -> bool:
        """True for a client of Anthropic's Messages: it reads errors in that shape."""
        return self.path.startswith(MESSAGES_PATH) or bool(self.get(ANTHROPIC_VERSION))

    @property
    def content_type(self) -> str:
        return self.get("content-type").partition(";")[0].strip().lower()

    @property
    def has_body(self) -> bool:
        return self.get("content-length") not in ("", "0") or bool(self.get("transfer-encoding"))

    @property
    def is_safe(self) -> bool:
        return self.method in SAFE_METHODS

    @property
    def accepts_page(self) -> bool:
        return "text/html" in self.get("accept")

    @property
    def is_page_request(self) -> bool:
        """True for a browser that asks for a page."""
        return self.method == "GET" and self.accepts_page


def _join_header(headers: Sequence[tuple[bytes, bytes]], name: bytes) -> str:
    return ", ".join([value.decode("latin-1") for one, value in headers if one == name])


def read_head(scope: AsgiScope, policy: HostPolicy) -> RequestHead:
    """Return the head of a request as its client sent it."""
    websocket = scope["type"] == "websocket"
    scheme: str = scope["scheme"]
    peer = (scope.get("client") or ("", 0))[0]
    head = RequestHead(
        method="WEBSOCKET" if websocket else scope["method"],
        path=scope["path"],
        query=scope["query_string"].decode("latin-1"),
        headers=scope["headers"],
        address=peer,
        scheme=_SCHEMES.get(scheme, scheme),
        host=_join_header(scope["headers"], b"host").lower(),
        raw_path=scope.get("raw_path") or quote(scope["path"]).encode(),
        public=policy.public,
        peer=peer,
    )
    if policy.is_trusted_proxy(peer):
        head = _apply_forwarding(head, policy)
    head = head if head.public is None else _apply_public_address(head, head.public)
    path = find_route(head.method, head.path)
    return head if path == head.path else replace(head, path=path, raw_path=quote(path).encode())


def apply_head(head: RequestHead, scope: AsgiScope) -> None:
    """Put the path and the client of a head into the scope, for the routes."""
    if scope["path"] != head.path:
        scope["path"], scope["raw_path"] = head.path, head.raw_path
    if head.address != head.peer:
        scope["client"] = (head.address, 0)


def require_address(head: RequestHead, policy: HostPolicy) -> None:
    """Refuse other host names, against DNS rebinding (S-42), and what a trusted proxy cannot mean."""
    forwarding = head.forwarding
    if forwarding is not None and forwarding.invalid:
        raise Refusal(
            HTTPStatus.BAD_REQUEST,
            Message(
                "the proxy at {proxy} sent a header {name} that cannot be understood: correct its configuration",
                proxy=head.peer,
                name=forwarding.invalid,
            ),
        )
    if head.host not in policy.hosts:
        raise Refusal(HTTPStatus.MISDIRECTED_REQUEST, _describe_unknown_host(head, policy))
    if policy.public and forwarding and head.accepts_page:
        _require_same_address(head, forwarding, policy.public)


def _describe_unknown_host(head: RequestHead, policy: HostPolicy) -> Message:
    """Return which setting lets a host in; a proxy in front is named, if there seems to be one."""
    forwarding = read_forwarding(head.get)  # of a proxy that is not trusted it is worth a hint, no more
    is_hidden = head.forwarding is None and has_forwarding(head.headers)
    name = forwarding.host if is_hidden and forwarding.host else head.host
    example = f"{forwarding.scheme or head.scheme}://{name if is_host(name) else _EXAMPLE_HOST}"
    if is_hidden:
        return Message(
            "a proxy at {proxy} passed on a request for the host name '{host}', which this server does not know: if "
            'it is yours, set public_url = "{example}", and trusted_proxies = ["{proxy}"] if the proxy is yours too',
            proxy=head.peer,
            host=head.host[:100],
            example=example[:120] + (policy.public.path if policy.public else ""),
        )
    return Message(
        "this server does not know the host name '{host}': if it is yours, set public_url = \"{example}\", or add the "
        "name to allowed_hosts",
        host=head.host[:100],
        example=example[:120],
    )


def _require_same_address(head: RequestHead, forwarding: Forwarding, public: PublicAddress) -> None:
    """Refuse a page when a trusted proxy names another scheme or path than ``public_url``: signing in would fail."""
    if head.host not in public.hosts:
        return
    other_scheme = forwarding.scheme not in ("", public.scheme)
    if not other_scheme and forwarding.prefix in ("", public.path):
        return
    raise Refusal(
        HTTPStatus.BAD_REQUEST,
        Message(
            "the proxy at {proxy} says that it was asked for {seen}, but public_url is {public}: open {public}; if you "
            "did, let the proxy send X-Forwarded-Proto and X-Forwarded-Prefix as its clients see them, or correct "
            "public_url",
            proxy=head.peer,
            seen=f"{forwarding.scheme or public.scheme}://{head.host}{forwarding.prefix or public.path}/",
            public=f"{public.url}/",
        ),
    )


def _apply_forwarding(head: RequestHead, policy: HostPolicy) -> RequestHead:
    """Return the head as the client sent it to a trusted proxy."""
    forwarding = read_forwarding(head.get)
    return replace(
        head,
        scheme=forwarding.scheme or head.scheme,
        host=forwarding.host or head.host,
        prefix=forwarding.prefix,
        address=_find_client_address(forwarding.addresses, policy) or head.peer,
        forwarding=forwarding,
    )


def _apply_public_address(head: RequestHead, public: PublicAddress) -> RequestHead:
    """Return the head without the path of the public address, and with its scheme if that is where it came from."""
    is_below = public.contains(head.path)
    is_public = head.host in public.hosts or head.get("origin").lower() == public.origin
    known = public.path if is_below or is_public else head.prefix or None
    head = replace(
        head, scheme=public.scheme if is_public else head.scheme, prefix=known if public.path else head.prefix
    )
    if not is_below:
        return head
    path, encoded = head.path[len(public.path) :] or "/", public.path.encode()
    raw = head.raw_path[len(encoded) :] or b"/" if head.raw_path.startswith(encoded) else quote(path).encode()
    return replace(head, path=path, raw_path=raw)


def _find_client_address(addresses: Sequence[str], policy: HostPolicy) -> str:
    """Return the last address that is no trusted proxy; empty when a hop before it is hidden."""
    for address in reversed(addresses):
        if not address or not policy.is_trusted_proxy(address):
            return address
    return addresses[0] if addresses else ""


def is_host(text: str) -> bool:
    """Return whether a text can be the host of a URL, with or without a port."""
    return bool(_HOST.fullmatch(text))


def has_forwarding(headers: Sequence[tuple[bytes, bytes]]) -> bool:
    """Return whether a request with these headers has passed a proxy that says so."""
    return not _NAMES.isdisjoint([name for name, _ in headers])


def read_forwarding(get: Callable[[str], str]) -> Forwarding:
    """Read the forwarding headers of a request. ``get`` returns a header, empty without one."""
    if not any(get(name) for name in HEADERS):
        return _read_forwarded(get("forwarded"))
    scheme, host, prefix = (_last_value(get(name)) for name in HEADERS[1:])
    known, host = _FORWARDED_SCHEMES.get(scheme.lower(), ""), host.lower()
    invalid = [
        *(["X-Forwarded-Proto"] if scheme and not known else []),
        *(["X-Forwarded-Host"] if host and not is_host(host) else []),
        *(["X-Forwarded-Prefix"] if not _PREFIX.fullmatch(prefix) else []),
    ]
    if invalid:
        return Forwarding(invalid=invalid[0])
    hops = get("x-forwarded-for").split(",")[-_MAX_HOPS:]
    addresses = tuple(_parse_node(hop) for hop in hops if hop.strip())
    return Forwarding(scheme=known, host=host, prefix=prefix.rstrip("/"), addresses=addresses)


def _last_value(header: str) -> str:
    return header.rpartition(",")[2].strip()


def _read_forwarded(header: str) -> Forwarding:
    elements = list(_parse_elements(header))
    if not header.strip():
        return Forwarding()
    last = elements[-1] if elements else None
    if not last:
        return Forwarding(invalid="Forwarded")
    scheme, host = _FORWARDED_SCHEMES.get(last.get("proto", "").lower(), ""), last.get("host", "").lower()
    if ("proto" in last and not scheme) or (host and not is_host(host)):
        return Forwarding(invalid="Forwarded")
    addresses = tuple(_parse_node(one.get("for", "")) for one in elements[-_MAX_HOPS:])
    return Forwarding(scheme=scheme, host=host, addresses=addresses)


def _parse_elements(header: str) -> Iterator[dict[str, str]]:
    """Yield the parameters of each element of a ``Forwarded`` header; an empty one where it cannot be understood."""
    element: dict[str, str] = {}
    start = 0
    while start < len(header):
        pair = _PAIR.match(header, start)
        if pair is None:
            yield {}
            return
        quoted, token, end = pair[2], pair[3], pair[4]
        element[pair[1].lower()] = re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else token
        start = pair.end()
        if end == "," or start >= len(header):
            yield element
            element = {}


def _parse_node(text: str) -> str:
    """Return the IP address of a hop, without its port; empty for a hidden or an unknown one."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        return str(ip_address(text))
    except ValueError:
        return ""
