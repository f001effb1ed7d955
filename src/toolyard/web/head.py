"""The head of a request: everything about it but its body, read once and judged before the body is."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from ipaddress import ip_address, ip_network
from urllib.parse import parse_qsl

from starlette.types import Scope as AsgiScope

from toolyard.web.refusal import Refusal

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_SCHEMES = {"ws": "http", "wss": "https"}
_LOCAL = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbourhood:
    """Under which names this server is reached, from which pages, and through which proxies."""

    hosts: frozenset[str]
    origins: frozenset[str] = frozenset()
    proxies: tuple[str, ...] = ()  # addresses or networks whose forwarding headers are believed

    def trusts(self, address: str) -> bool:
        try:
            return any(ip_address(address) in ip_network(proxy, strict=False) for proxy in self.proxies)
        except ValueError:
            return False


def neighbourhood(
    host: str, port: int, *, hosts: Iterable[str] = (), origins: Iterable[str] = (), proxies: Sequence[str] = ()
) -> Neighbourhood:
    """The names of this machine with the port, those that were given, and the address that is listened on."""
    own = f"[{host}]" if ":" in host else host
    names = {f"{name}:{port}" for name in (*_LOCAL, own)} | {name.lower() for name in hosts}
    pages = frozenset(origin.lower() for origin in origins)  # as browsers write them
    return Neighbourhood(hosts=frozenset(names), origins=pages, proxies=tuple(proxies))


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    method: str
    path: str
    query: str
    headers: Sequence[tuple[bytes, bytes]]  # with small names, as they came: most of them nobody asks for
    address: str
    scheme: str

    def get(self, name: str) -> str:
        """One that comes twice is joined with a comma."""
        wanted = name.encode("latin-1")
        return ", ".join([value.decode("latin-1") for one, value in self.headers if one == wanted])

    def asked(self, name: str) -> str:
        return next((value for key, value in parse_qsl(self.query) if key == name), "")

    def cookie(self, name: str) -> str:
        pairs = (part.strip().partition("=") for part in self.get("cookie").split(";"))
        return next((value for key, _, value in pairs if key == name), "")

    @property
    def bearer_key(self) -> str:
        """The key of the Authorization header; empty when there is none."""
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
        return self.method in SAFE

    @property
    def wants_page(self) -> bool:
        """Whether a person looks at the answer, in a browser."""
        return self.method == "GET" and "text/html" in self.get("accept")


def read_head(scope: AsgiScope, near: Neighbourhood) -> Head:
    websocket = scope["type"] == "websocket"
    scheme: str = scope["scheme"]
    head = Head(
        method="WEBSOCKET" if websocket else scope["method"],
        path=scope["path"],
        query=scope["query_string"].decode("latin-1"),
        headers=scope["headers"],
        address=(scope.get("client") or ("", 0))[0],
        scheme=_SCHEMES.get(scheme, scheme),
    )
    return _behind_proxy(head, near) if near.proxies and near.trusts(head.address) else head


def require_host(head: Head, near: Neighbourhood) -> None:
    """A page that has made its own name point to this machine is told nothing (S-42)."""
    host = head.get("host").lower()
    if host not in near.hosts:
        raise Refusal(
            HTTPStatus.MISDIRECTED_REQUEST,
            f"this server does not go by the name {host[:100]!r}: use its own address, or set allowed_hosts",
        )


def _behind_proxy(head: Head, near: Neighbourhood) -> Head:
    """As the client sent it to a proxy that is trusted."""
    scheme = head.get("x-forwarded-proto").strip().lower() or head.scheme
    address = _forwarded(head.get("x-forwarded-for"), near) or head.address
    return replace(head, scheme=_SCHEMES.get(scheme, scheme), address=address)


def _forwarded(header: str, near: Neighbourhood) -> str:
    """The last address that no trusted proxy wrote about itself."""
    hops = [hop.strip() for hop in header.split(",") if hop.strip()]
    for hop in reversed(hops):
        try:
            ip_address(hop)
        except ValueError:
            return ""
        if not near.trusts(hop):
            return hop
    return hops[0] if hops else ""
