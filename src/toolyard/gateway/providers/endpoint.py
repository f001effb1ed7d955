"""The address of a model provider, and the headers, key and query parameters of each request to it."""

import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from toolyard.provider_settings import KEY_MARK, ProviderOptions

if TYPE_CHECKING:
    from yarl import URL

_VERSION = re.compile(r"v\d+\w*")
_CHAT = "/chat/completions"
_ANTHROPIC = "api.anthropic.com"  # its chat speaks OpenAI's language, but its list of models does not
_DEPLOYMENTS = "deployments"  # Azure has them where others have a version


class Endpoint:
    def __init__(self, url: str, options: ProviderOptions) -> None:
        self.base, self._options = chat_base(url), options

    @property
    def proxy(self) -> str | None:
        return self._options.proxy

    def address(self, path: str) -> "URL":
        from yarl import URL

        address = URL(f"{self.base}{path}")
        return address.with_query(dict(self._options.query)) if self._options.query else address

    def headers(self, key: str | None) -> dict[str, str]:
        """Return the headers of each request with this key."""
        own = self._options.headers
        made = {"Accept-Encoding": "identity"}
        takes_key = any(KEY_MARK in value for value in own.values())
        if key and not takes_key and "authorization" not in map(str.lower, own):
            made["Authorization"] = f"Bearer {key}"
        return made | {name: value.replace(KEY_MARK, key or "") for name, value in own.items()}

    def list_headers(self, key: str | None) -> dict[str, str]:
        """Return the headers of a request for the list of models."""
        headers = self.headers(key)
        if urlsplit(self.base).hostname != _ANTHROPIC:
            return headers
        headers.pop("Authorization", None)
        return {"anthropic-version": "2023-06-01", **({"x-api-key": key} if key else {}), **headers}


def chat_base(url: str) -> str:
    """Return the address below which ``/chat/completions`` is, from a URL with or without its version."""
    base = url.strip().rstrip("/")
    if base.endswith(_CHAT):
        return base.removesuffix(_CHAT).rstrip("/")
    parts = urlsplit(base).path.split("/")
    is_whole = _DEPLOYMENTS in parts or any(_VERSION.fullmatch(part) for part in parts)
    return base if is_whole else f"{base}/v1"
