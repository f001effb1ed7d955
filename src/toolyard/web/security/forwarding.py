"""Forwarding headers: what a proxy says about a request that it passes on.

X-Forwarded-For, -Proto, -Host and -Prefix are read, and ``Forwarded`` (RFC 7239) in a request without any of them: most
proxies pass a client's own ``Forwarded`` on unchanged. Of several values the last is that of the nearest proxy.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

HEADERS: Final = ("x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-forwarded-prefix")
_NAMES: Final = frozenset(name.encode() for name in (*HEADERS, "forwarded"))
_MAX_HOPS = 32  # that are looked at: a client may send thousands
_SCHEMES = {"http": "http", "https": "https", "ws": "http", "wss": "https"}
_HOST = re.compile(r"(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?")
_PREFIX = re.compile(r"(?:/[A-Za-z0-9._~-]+)*/?")
_PAIR = re.compile(r'\s*([a-z]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;,"]*))\s*([;,]|$)', re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forwarding:
    """The contents of the forwarding headers of one request; empty where they say nothing."""

    scheme: str = ""
    host: str = ""
    prefix: str = ""
    addresses: tuple[str, ...] = ()  # of the client and of proxies, the nearest last; empty texts for hidden ones
    invalid: str = ""  # the name of a header that cannot be understood


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
    known, host = _SCHEMES.get(scheme.lower(), ""), host.lower()
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
    scheme, host = _SCHEMES.get(last.get("proto", "").lower(), ""), last.get("host", "").lower()
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
