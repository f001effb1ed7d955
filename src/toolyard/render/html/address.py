"""Addresses in a reply: parsed, or refused when they lead nowhere safe.

Only http, https and mailto. The host is the one a browser would contact, in ASCII, so that a name in look-alike letters
does not pass for another; an address that browsers might read differently is refused.
"""

import re
from dataclasses import dataclass

MAX_ADDRESS = 4096
_WEB = re.compile(r"(https?)://([^/?#]*)((?:[/?#].*)?)", re.IGNORECASE)
_MAIL = re.compile(r"mailto:([^?]+@[^?]+)(?:\?.*)?", re.IGNORECASE)
_UNSAFE = re.compile(r"[\x00-\x20\x7f-\xa0\\<>\"`{}|^\u200b-\u200f\u2028-\u202f\u2060-\u206f\u3000\ufeff\ud800-\udfff]")
_HOST = re.compile(r"(?:[a-z0-9_](?:[a-z0-9_.-]{0,251}[a-z0-9_.])?|\[[0-9a-f:.]{2,45}\])(?::[0-9]{1,5})?")


@dataclass(frozen=True, slots=True)
class Address:
    href: str
    host: str  # of a mail address, all of it

    @property
    def is_web(self) -> bool:
        return not self.href.startswith("mailto:")


def parse_address(url: str) -> Address | None:
    url = url.strip()
    if len(url) > MAX_ADDRESS or _UNSAFE.search(url):
        return None
    mail = _MAIL.fullmatch(url)
    if mail:
        return Address(f"mailto:{url[7:]}", mail[1])
    web = _WEB.fullmatch(url)
    host = _to_ascii(web[2].rpartition("@")[2]) if web else None
    return Address(f"{web[1].lower()}://{host}{web[3]}", host) if web and host else None


def parse_remote_address(url: str) -> Address | None:
    """Return the address of remote media; one without a scheme means https."""
    address = parse_address(f"https:{url.strip()}" if url.strip().startswith("//") else url)
    return address if address and address.is_web else None


def _to_ascii(host: str) -> str | None:
    if "xn--" in host.lower() or not host.isascii():
        name, colon, port = host.partition(":")
        try:
            name = name[:253].encode("idna").decode("ascii")
            name.encode("ascii").decode("idna")  # an ASCII name may still be invalid
        except UnicodeError:
            return None
        host = name + colon + port
    host = host.lower()
    return host if _HOST.fullmatch(host) else None
