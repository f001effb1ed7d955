"""The public address: where people reach the server, from the setting ``public_url``."""

from dataclasses import dataclass
from typing import Self
from urllib.parse import urlsplit

_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


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
