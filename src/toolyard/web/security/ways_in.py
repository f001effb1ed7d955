"""The paths that clients make of a base URL, as those of the routes.

Each client adds its own path to the base URL that a person gave it. One that OpenAI's clients take has ``/v1`` and one
that Anthropic's take has none, so it may be missing or be there twice; a slash may end it, and some name the vendor.
All of them lead to the route that was meant: what is left of ``/openai``, ``/anthropic``, ``/v1`` and ``/api/v1`` in
any number, and of a route that was taken for a base URL, is its path below ``/v1``. Rules, limits and logs see that
path alone. Any other path that ends as theirs do is answered with the base URLs.

Claude Code looks first whether its server is there, without a key: that is asked of ``/healthz``.
"""

import re
from typing import Final

from toolyard.web.security.scope import FORWARDED_PATHS

_ROUTES: Final = (
    *("messages", "messages/count_tokens", "chat/completions", "responses", "models"),
    *(path.removeprefix("/v1/") for path in FORWARDED_PATHS),
)
_WITH_REST: Final = ("responses", "models", "images", "audio")  # routes below them as well
_CHATS: Final = "messages|chat/completions|responses"
_WAY: Final = re.compile(
    rf"(?:/+(?:(?:api/+)?v1|openai|anthropic|{_CHATS}))*/+(?P<route>(?:{'|'.join(_ROUTES)})/*|(?:{'|'.join(_WITH_REST)})/.+)"
)
_END: Final = re.compile(rf".*/(?:{_CHATS}|messages/count_tokens)/*")
_PROBES: Final = ("/", "/api/hello")


def find_route(method: str, path: str) -> str:
    """Return the path of the route that a client means."""
    if method == "HEAD" and path in _PROBES:
        return "/healthz"
    if method == "GET" and path.startswith("/chat/"):  # a page of the console
        return path
    way = _WAY.fullmatch(path)
    return f"/v1/{way['route'].rstrip('/')}" if way else path


def is_lost(method: str, path: str) -> bool:
    """Return whether a path that is no route looks like one for chats, below another base URL."""
    return method == "POST" and _END.fullmatch(path) is not None
