"""Cross-origin requests (CORS): the origins that are served, preflights, and the headers that make answers readable.

Served are the origins that the owner has named (``allowed_origins``), and on routes that need a key those of programs:
desktop applications, extensions and local files. A program's origin proves nothing, since every web page can get the
origin ``null`` from a sandboxed frame. What protects is the key: a page can send only one that it knows. For the same
reason credentials are never allowed, and the session cookie counts for pages of this server alone.
"""

import re
from collections.abc import Iterator
from http import HTTPStatus
from typing import Final

from toolyard.web.head import Head, Neighbourhood
from toolyard.web.refusal import Refusal
from toolyard.web.scope import is_open

Headers = list[tuple[bytes, bytes]]

# A browser gives no page of the web an origin with another scheme than http or https.
_APP_ORIGIN: Final = re.compile(r"(?!(?:https?|wss?):)[a-z][a-z0-9+.-]*://[^\s,/?#@*]*")
_APP_HOSTS: Final = frozenset({"http://tauri.localhost", "https://tauri.localhost"})  # Tauri on Windows and Android
_METHODS: Final = b"GET, POST, PUT, PATCH, DELETE"
_MAX_AGE_S: Final = b"600"
# Headers that clients send with a key; a wildcard would leave out Authorization. Keys under other names are among them,
# so that a client which sends one is told what to send instead of failing without words.
_HEADER_NAMES: Final = frozenset(
    {
        *("accept", "accept-language", "authorization", "cache-control", "content-type", "pragma", "user-agent"),
        *("api-key", "x-api-key", "idempotency-key", "last-event-id", "x-request-id", "x-requested-with"),
        *("http-referer", "x-title", "baggage", "traceparent", "tracestate"),
    }
)
_HEADER_PREFIXES: Final = ("x-stainless-", "x-toolyard-", "mcp-", "openai-")


def is_allowed_origin(head: Head, near: Neighbourhood) -> bool:
    """Return whether the request comes from a page of another origin that the owner has allowed."""
    return bool(near.origins) and head.get("origin").lower() in near.origins


def is_app_origin(origin: str) -> bool:
    """Return whether ``origin`` is that of a program, such as ``null``, ``app://...`` or ``chrome-extension://...``."""
    return origin == "null" or origin.lower() in _APP_HOSTS or bool(_APP_ORIGIN.fullmatch(origin.lower()))


def is_served_origin(head: Head, near: Neighbourhood) -> bool:
    """Return whether a page of another origin may send this request and read its answer, with a key."""
    origin = head.get("origin")
    if not origin:
        return False
    return is_allowed_origin(head, near) or (is_app_origin(origin) and not is_open(head.path))


def is_own_page(head: Head) -> bool:
    """Return whether the request comes from a page of this server, or from no page at all."""
    origin = head.get("origin").lower()
    return not origin or origin == f"{head.scheme}://{head.get('host').lower()}"


def require_origin(head: Head, near: Neighbourhood) -> None:
    """Refuse what changes anything, and every WebSocket, when it comes from a page of somebody else (S-43, S-44)."""
    if head.is_safe or is_allowed_origin(head, near):
        return
    if head.method != "WEBSOCKET" and is_served_origin(head, near):
        return  # the key is asked for next: nothing else opens to this origin
    if not is_own_page(head) or head.get("sec-fetch-site") in ("cross-site", "same-site"):
        raise Refusal(HTTPStatus.FORBIDDEN, "a page of another origin may not do this: set allowed_origins if it may")


def is_preflight(head: Head, near: Neighbourhood) -> bool:
    """Return whether a browser asks, without a key, if a page may send a request."""
    return head.method == "OPTIONS" and is_served_origin(head, near)


def preflight_headers(head: Head) -> Headers:
    """Return what a preflight is told beside ``answer_headers``: methods, headers, and the way to a private network."""
    headers = [(b"access-control-allow-methods", _METHODS), (b"access-control-max-age", _MAX_AGE_S)]
    if names := ", ".join(_allowed_names(head.get("access-control-request-headers"))):
        headers.append((b"access-control-allow-headers", names.encode("latin-1")))
    if head.get("access-control-request-private-network") == "true":
        headers.append((b"access-control-allow-private-network", b"true"))
    return headers


def answer_headers(head: Head, near: Neighbourhood) -> Headers:
    """Return what lets a page of a served origin read an answer, good or bad, with all of its headers."""
    if not is_served_origin(head, near):
        return []
    return [
        (b"access-control-allow-origin", head.get("origin").encode("latin-1")),
        (b"access-control-expose-headers", b"*"),  # a wildcard, because no credentials are allowed
        (b"vary", b"origin"),
    ]


def _allowed_names(requested: str) -> Iterator[str]:
    for part in requested.split(","):
        name = part.strip().lower()
        if name in _HEADER_NAMES or name.startswith(_HEADER_PREFIXES):
            yield name
