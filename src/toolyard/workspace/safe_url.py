"""A URL that may be fetched, taken apart, and which addresses are everybody's (S-70)."""

import ipaddress
import re
import socket
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import SplitResult, quote, unquote, urljoin, urlsplit

from toolyard.message import Message
from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

_PORTS = {"http": 80, "https": 443}
_NAME = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*\.?")
_PATH = "/%:@!$&'()*+,;=~-._"  # what may stand in a path as it is
_QUERY = _PATH + "?"
_UNICAST = ipaddress.IPv6Network("2000::/3")  # all of IPv6 that is given out for public use
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


def is_public(address: Address) -> bool:
    """Return whether an address belongs to everybody's network; one that carries another one is judged by that."""
    is_global = address.is_global and not address.is_multicast
    if isinstance(address, ipaddress.IPv4Address):
        return is_global and not address.is_reserved
    inner = address.ipv4_mapped or address.sixtofour  # 6to4 is global or not, by the version of Python
    if address in _NAT64:
        inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return is_public(inner) if inner is not None else is_global and address in _UNICAST


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
            raise _url_failure(Message("fetch.not_a_url", "it is no URL")) from error
        if parts.scheme not in _PORTS:
            raise _url_failure(Message("fetch.only_http", "only http and https are fetched"))
        if parts.username is not None or parts.password is not None:
            raise _url_failure(Message("fetch.has_credentials", "it carries a user name or a password"))
        if not _NAME.fullmatch(host) and parse_ip_address(host) is None:
            raise _url_failure(Message("fetch.no_host", "it names no host"))
        whole = parts._replace(fragment="").geturl()
        return cls(whole, parts.scheme, host, port or _PORTS[parts.scheme], _build_request_target(parts))

    def resolve_redirect(self, location: str) -> "SafeUrl":
        try:
            return SafeUrl.parse(urljoin(self.url, location))
        except ValueError as error:
            raise _url_failure(Message("fetch.redirects_to_no_url", "it redirects to what is no URL")) from error

    @property
    def authority(self) -> str:
        """The value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def file_name(self) -> str:
        """The last name of the path, or nothing."""
        return unquote(urlsplit(self.url).path.rstrip("/").rpartition("/")[2], errors="replace")


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
        Message("fetch.url_cannot_fetched", "The URL cannot be fetched: {why}.", why=why),
        hint=Message("hint.url_form", "Use a URL such as https://example.com/a.txt."),
    )
