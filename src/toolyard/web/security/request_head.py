"""The head of a request: everything but its body, and the checks of Host and proxies."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from ipaddress import ip_address, ip_network
from urllib.parse import parse_qsl

from starlette.types import Scope as AsgiScope

from toolyard.message import Message
from toolyard.web.refusal import Refusal

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_SCHEMES = {"ws": "http", "wss": "https"}
_LOCAL = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPolicy:
    """The host names and origins that this server accepts, and the proxies it trusts."""

    hosts: frozenset[str]
    origins: frozenset[str] = frozenset()
    proxies: tuple[str, ...] = ()  # addresses or networks whose forwarding headers are trusted

    def is_trusted_proxy(self, address: str) -> bool:
        try:
            return any(ip_address(address) in ip_network(proxy, strict=False) for proxy in self.proxies)
        except ValueError:
            return False


def make_host_policy(
    host: str, port: int, *, hosts: Iterable[str] = (), origins: Iterable[str] = (), proxies: Sequence[str] = ()
) -> HostPolicy:
    """Return a policy of the loopback names, the listening address and the configured ones."""
    own = f"[{host}]" if ":" in host else host
    names = {f"{name}:{port}" for name in (*_LOCAL, own)} | {name.lower() for name in hosts}
    pages = frozenset(origin.lower() for origin in origins)  # as browsers send them
    return HostPolicy(hosts=frozenset(names), origins=pages, proxies=tuple(proxies))


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestHead:
    method: str
    path: str
    query: str
    headers: Sequence[tuple[bytes, bytes]]  # lower-case names, undecoded: most are never read
    address: str
    scheme: str

    def get(self, name: str) -> str:
        """Return a header, empty without one; repeated ones are joined with a comma."""
        encoded = name.encode("latin-1")
        return ", ".join([value.decode("latin-1") for one, value in self.headers if one == encoded])

    def query_value(self, name: str) -> str:
        return next((value for key, value in parse_qsl(self.query) if key == name), "")

    def cookie(self, name: str) -> str:
        pairs = (part.strip().partition("=") for part in self.get("cookie").split(";"))
        return next((value for key, _, value in pairs if key == name), "")

    @property
    def bearer_key(self) -> str:
        """The bearer key of the Authorization header, empty without one."""
        kind, _, key = self.get("authorization").partition(" ")
        return key.strip() if kind.lower() == "bearer" else ""

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
    def is_page_request(self) -> bool:
        """True for a browser that asks for a page."""
        return self.method == "GET" and "text/html" in self.get("accept")


def read_head(scope: AsgiScope, policy: HostPolicy) -> RequestHead:
    websocket = scope["type"] == "websocket"
    scheme: str = scope["scheme"]
    head = RequestHead(
        method="WEBSOCKET" if websocket else scope["method"],
        path=scope["path"],
        query=scope["query_string"].decode("latin-1"),
        headers=scope["headers"],
        address=(scope.get("client") or ("", 0))[0],
        scheme=_SCHEMES.get(scheme, scheme),
    )
    return _apply_forwarded_headers(head, policy) if policy.proxies and policy.is_trusted_proxy(head.address) else head


def require_host(head: RequestHead, policy: HostPolicy) -> None:
    """Refuse other host names, against DNS rebinding (S-42)."""
    host = head.get("host").lower()
    if host not in policy.hosts:
        raise Refusal(
            HTTPStatus.MISDIRECTED_REQUEST,
            Message(
                "http.host_not_allowed",
                "unknown host name {host!r}: use the address of this server, or add the name to allowed_hosts",
                host=host[:100],
            ),
        )


def _apply_forwarded_headers(head: RequestHead, policy: HostPolicy) -> RequestHead:
    """Return the head as the client sent it to a trusted proxy."""
    scheme = head.get("x-forwarded-proto").strip().lower() or head.scheme
    address = _find_client_address(head.get("x-forwarded-for"), policy) or head.address
    return replace(head, scheme=_SCHEMES.get(scheme, scheme), address=address)


def _find_client_address(header: str, policy: HostPolicy) -> str:
    """Return the last address in X-Forwarded-For that is no trusted proxy."""
    hops = [hop.strip() for hop in header.split(",") if hop.strip()]
    for hop in reversed(hops):
        try:
            ip_address(hop)
        except ValueError:
            return ""
        if not policy.is_trusted_proxy(hop):
            return hop
    return hops[0] if hops else ""
