"""The host and port that a proxy request asks for, read strictly: anything two programs could read differently is bad.

No credentials, no percent-encoding, no empty port. An address in one of its numeric forms (``127.1``, ``2130706433``)
is the address it is, and an IPv4 address inside an IPv6 one is the IPv4 address.
"""

import ipaddress
import re
from dataclasses import dataclass

from toolyard.protocol.manifests.allowed_hosts import Address, normalize_name, unmap_address
from toolyard.workspace.safe_url import parse_ip_address

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
