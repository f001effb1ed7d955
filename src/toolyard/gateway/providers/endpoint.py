"""The address of a model provider, and the headers, key and query parameters of each request to it."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from toolyard.gateway.providers.translation import PATHS
from toolyard.provider_settings import KEY_MARK, ProviderOptions, ProviderProtocol

if TYPE_CHECKING:
    from yarl import URL

_VERSION = re.compile(r"v\d+\w*")
_ANTHROPIC = "api.anthropic.com"  # its chat speaks OpenAI's language, but its list of models does not
_VERSION_HEADER: Final = {"anthropic-version": "2023-06-01"}
_BETA = "anthropic-beta"
_WHOLE_LIST = 1000  # Anthropic lists 20 models unless it is asked for more
_DEPLOYMENTS = "deployments"  # Azure has them where others have a version


class Endpoint:
    def __init__(self, url: str, options: ProviderOptions) -> None:
        self.protocol = options.protocol or ProviderProtocol.CHAT
        self.base, self._options = base_address(url, self.protocol), options

    @property
    def proxy(self) -> str | None:
        return self._options.proxy

    def address(self, path: str, **more: str) -> "URL":
        """Return the address of a path below the base; ``more`` are query parameters beside the owner's."""
        from yarl import URL

        address = URL(f"{self.base}{path}")
        query = {**more, **self._options.query}
        return address.with_query(query) if query else address

    def list_address(self) -> "URL":
        """Return the address of the list of models."""
        is_anthropic = self.protocol is ProviderProtocol.ANTHROPIC
        return self.address("/models", limit=str(_WHOLE_LIST)) if is_anthropic else self.address("/models")

    def headers(self, key: str | None) -> dict[str, str]:
        """Return the headers of each request with this key."""
        return self._make_headers(key, is_anthropic=self.protocol is ProviderProtocol.ANTHROPIC)

    def list_headers(self, key: str | None) -> dict[str, str]:
        """Return the headers of a request for the list of models."""
        is_anthropic = self.protocol is ProviderProtocol.ANTHROPIC or urlsplit(self.base).hostname == _ANTHROPIC
        return self._make_headers(key, is_anthropic=is_anthropic)

    def _make_headers(self, key: str | None, *, is_anthropic: bool) -> dict[str, str]:
        own = self._options.headers
        names = frozenset(map(str.lower, own))
        made = {"Accept-Encoding": "identity"} | (_VERSION_HEADER if is_anthropic else {})
        takes_key = any(KEY_MARK in value for value in own.values())
        if key and not takes_key and names.isdisjoint(("authorization", "x-api-key")):
            made |= {"x-api-key": key} if is_anthropic else {"Authorization": f"Bearer {key}"}
        made = {name: value for name, value in made.items() if name.lower() not in names}
        return made | {name: value.replace(KEY_MARK, key or "") for name, value in own.items()}


def add_client_headers(headers: dict[str, str], more: Mapping[str, str]) -> dict[str, str]:
    """Return headers with those of a client beside them: the owner's win, and betas are of both."""
    made, names = dict(headers), {name.lower(): name for name in headers}
    for name, value in more.items():
        known = names.get(name.lower())
        if known is None:
            made[name] = value
        elif name.lower() == _BETA:
            betas = [beta.strip() for beta in f"{made[known]},{value}".split(",")]
            made[known] = ",".join(dict.fromkeys(betas))
    return made


def base_address(url: str, protocol: ProviderProtocol = ProviderProtocol.CHAT) -> str:
    """Return the address below which the paths of a provider are, from a URL with or without its version.

    Anthropic's clients add ``/v1`` to any address, so there only one at the end counts.
    """
    base = url.strip().rstrip("/")
    for path in PATHS.values():
        if base.endswith(path):
            return base.removesuffix(path).rstrip("/")
    parts = urlsplit(base).path.split("/")
    if protocol is ProviderProtocol.ANTHROPIC:
        parts = parts[-1:]
    is_whole = _DEPLOYMENTS in parts or any(_VERSION.fullmatch(part) for part in parts)
    return base if is_whole else f"{base}/v1"
