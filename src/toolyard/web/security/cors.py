"""Cross-origin requests (CORS): served origins, preflights and response headers.

Served are the origins in ``allowed_origins``, and on routes that need a key those of programs: desktop applications,
extensions and local files. A program's origin proves nothing, since every web page can get the origin ``null`` from a
sandboxed frame. The key is what protects: a page can send only one that it knows. For the same reason credentials are
never allowed, and the session cookie is accepted from pages of this server alone.

Starlette's ``CORSMiddleware`` cannot say this: its origins are the same for every path and for the life of the server,
while ours depend on whether the path needs a key and change with the settings; its list of headers has no prefixes; and
it answers preflights by itself, before the Host of the request is checked (S-42). What it shares with this module is
the names of four headers; the refusal of other origins (S-43, S-44) is not its task at all.
"""

import re
from collections.abc import Iterator
from http import HTTPStatus
from typing import Final

from toolyard.message import Message
from toolyard.web.refusal import Refusal
from toolyard.web.security.request_head import HostPolicy, RequestHead
from toolyard.web.security.scope import PathRule

Headers = list[tuple[bytes, bytes]]

# A browser gives no page of the web an origin with another scheme than http or https.
_APP_ORIGIN: Final = re.compile(r"(?!(?:https?|wss?):)[a-z][a-z0-9+.-]*://[^\s,/?#@*]*")
_APP_HOSTS: Final = frozenset({"http://tauri.localhost", "https://tauri.localhost"})  # Tauri on Windows and Android
_WEB_ORIGIN: Final = re.compile(r"https?://[a-z0-9.:\[\]_-]{1,100}")
_METHODS: Final = b"GET, POST, PUT, PATCH, DELETE"
_MAX_AGE_S: Final = b"600"
# Headers that clients send with a key; a wildcard would leave out Authorization. ``api-key`` is among them, so that a
# client that sends it gets an error that says what to send instead.
_HEADER_NAMES: Final = frozenset(
    {
        *("accept", "accept-language", "authorization", "cache-control", "content-type", "pragma", "user-agent"),
        *("api-key", "x-api-key", "idempotency-key", "last-event-id", "x-request-id", "x-requested-with"),
        *("http-referer", "x-title", "baggage", "traceparent", "tracestate"),
    }
)
_HEADER_PREFIXES: Final = ("x-stainless-", "x-toolyard-", "mcp-", "openai-", "anthropic-")


def is_allowed_origin(head: RequestHead, policy: HostPolicy) -> bool:
    """Return whether the request comes from a page of another origin that the owner has allowed."""
    return bool(policy.origins) and head.get("origin").lower() in policy.origins


def is_app_origin(origin: str) -> bool:
    """Return whether ``origin`` is that of a program, such as ``null``, ``app://...`` or ``chrome-extension://...``."""
    return origin == "null" or origin.lower() in _APP_HOSTS or bool(_APP_ORIGIN.fullmatch(origin.lower()))


def is_served_origin(head: RequestHead, policy: HostPolicy, rule: PathRule) -> bool:
    """Return whether a page of another origin may send this request and read its answer, with a key."""
    origin = head.get("origin")
    if not origin:
        return False
    return is_allowed_origin(head, policy) or (is_app_origin(origin) and not rule.is_public)


def is_own_page(head: RequestHead, policy: HostPolicy) -> bool:
    """Return whether the request comes from a page of this server, or from no page at all."""
    origin = head.get("origin").lower()
    if not origin or origin == f"{head.scheme}://{head.host}":
        return True
    return policy.public is not None and origin == policy.public.origin


def require_origin(head: RequestHead, policy: HostPolicy, rule: PathRule) -> None:
    """Refuse unsafe methods and WebSockets from pages of other origins (S-43, S-44)."""
    if head.is_safe or is_allowed_origin(head, policy):
        return
    if head.method != "WEBSOCKET" and is_served_origin(head, policy, rule):
        return  # the key is checked next: nothing else is open to this origin
    if not is_own_page(head, policy) or head.get("sec-fetch-site") in ("cross-site", "same-site"):
        raise Refusal(HTTPStatus.FORBIDDEN, _describe_foreign_page(head))


def _describe_foreign_page(head: RequestHead) -> Message:
    """Return which setting lets the page in; behind a proxy it may well be one of this server."""
    origin = head.get("origin")
    if not _WEB_ORIGIN.fullmatch(origin) or head.get("sec-fetch-site") in ("cross-site", "same-site"):
        return Message("pages of other origins may not do this: add the origin to allowed_origins to allow it")
    return Message(
        "the page is at {origin}, but this server was asked as {own}: if {origin} is a proxy in front of it, set "
        "public_url to that; a page of another server needs its origin in allowed_origins",
        origin=origin,
        own=f"{head.scheme}://{head.host}",
    )


def is_preflight(head: RequestHead, policy: HostPolicy, rule: PathRule) -> bool:
    """Return whether the request is a CORS preflight of a served origin."""
    return head.method == "OPTIONS" and is_served_origin(head, policy, rule)


def preflight_headers(head: RequestHead) -> Headers:
    """Return the headers of a preflight beside ``response_headers``: methods, headers, private network access."""
    headers = [(b"access-control-allow-methods", _METHODS), (b"access-control-max-age", _MAX_AGE_S)]
    if names := ", ".join(_list_allowed_names(head.get("access-control-request-headers"))):
        headers.append((b"access-control-allow-headers", names.encode("latin-1")))
    if head.get("access-control-request-private-network") == "true":
        headers.append((b"access-control-allow-private-network", b"true"))
    return headers


def response_headers(head: RequestHead, policy: HostPolicy, rule: PathRule) -> Headers:
    """Return the headers that let a page of a served origin read a response with all of its headers."""
    if not is_served_origin(head, policy, rule):
        return []
    return [
        (b"access-control-allow-origin", head.get("origin").encode("latin-1")),
        (b"access-control-expose-headers", b"*"),  # a wildcard, because no credentials are allowed
        (b"vary", b"origin"),
    ]


def _list_allowed_names(requested: str) -> Iterator[str]:
    for part in requested.split(","):
        name = part.strip().lower()
        if name in _HEADER_NAMES or name.startswith(_HEADER_PREFIXES):
            yield name
