"""Scopes: what a key may do, and which scopes each path requires.

A path without a rule requires ``admin``: a new route is closed until it is named here.
"""

from enum import StrEnum
from typing import Final


class Scope(StrEnum):
    CHAT = "chat"  # use models
    TOOLS = "tools"  # run tools, see their results
    APPROVE = "approve"  # answer approvals and change their rules
    ADMIN = "admin"  # everything


ALL_SCOPES: Final = frozenset(Scope)
SERVICE_WORKER: Final = "/service-worker.js"  # public, so that a browser whose session has ended still updates it
PUBLIC_PATHS: Final = frozenset({"/healthz", "/readyz", "/login", "/login.css", "/login.js", SERVICE_WORKER})
CONSOLE_PAGES: Final = (
    "/chat", "/tools", "/activity", "/tasks", "/schedule", "/approvals", "/settings", "/status", "/audit",
    "/welcome", "/providers",
)  # fmt: skip
DRAWING_PREFIX: Final = "/console/draw/"  # loaded by a frame without an origin, which sends no cookie; nothing secret
INSTALL_PREFIX: Final = "/console/install/"  # manifests and icons: the system loads them without a cookie
MEDIA_PREFIX: Final = "/media/"  # the route checks the signature of a link
CALLBACK_PREFIX: Final = "/plugin-callback/"
PUBLISHED_PREFIXES: Final = ("/pw=", "//pw=")  # files that plugins publish; their route checks the key in the URL
VCP_CHANNELS: Final = ("/VCPlog/", "/vcpinfo/")
EVENT_SCOPES: Final = frozenset({Scope.APPROVE, Scope.ADMIN})

FORWARDED_PATHS: Final = (
    "/v1/embeddings",
    "/v1/completions",
    "/v1/moderations",
    "/v1/images",
    "/v1/audio",
)  # passed to a provider

_SCOPES_OF_PATHS = dict.fromkeys(
    ("/", "/docs", "/docs.css", "/openapi.json", "/v1/session", "/logout", "/ws-ticket"), ALL_SCOPES
)
_SCOPES_OF_PATHS["/ws"] = EVENT_SCOPES
_SCOPES_OF_PATHS["/metrics"] = frozenset({Scope.ADMIN})
_SCOPES_OF_PATHS |= dict.fromkeys(
    ("/v1/reply/render", "/v1/reply/media"), frozenset({Scope.CHAT, Scope.TOOLS, Scope.ADMIN})
)
_SCOPES_OF_PREFIXES = {
    "/v1/chat": Scope.CHAT,
    "/v1/chatvcp": Scope.CHAT,
    "/v1/chats": Scope.CHAT,
    "/v1/conversations": Scope.CHAT,
    "/v1/assistants": Scope.CHAT,
    "/v1/attachments": Scope.CHAT,
    "/v1/models": Scope.CHAT,
    **dict.fromkeys(FORWARDED_PATHS, Scope.CHAT),
    "/v1/interrupt": Scope.CHAT,
    "/v1/tool-summaries": Scope.TOOLS,
    "/v1/tools": Scope.TOOLS,
    "/v1/project": Scope.TOOLS,
    "/v1/human": Scope.TOOLS,
    "/v1/tasks": Scope.TOOLS,
    "/v1/schedules": Scope.TOOLS,
    "/v1/schedule_task": Scope.TOOLS,
    "/v1/calls": Scope.TOOLS,
    "/v1/backend": Scope.TOOLS,
    "/mcp": Scope.TOOLS,
    "/v1/approvals": Scope.APPROVE,
}


def required_scopes(path: str) -> frozenset[Scope]:
    """Return the scopes of which one is enough for ``path``; ``admin`` always is."""
    return _find_scopes(path) or frozenset({Scope.ADMIN})


def is_unknown_path(path: str) -> bool:
    """Return whether a path has no rule and is none of the API, so that a person may have mistyped it."""
    return _find_scopes(path) is None and not path.startswith("/v1/")


def _find_scopes(path: str) -> frozenset[Scope] | None:
    if path in _SCOPES_OF_PATHS:
        return _SCOPES_OF_PATHS[path]
    if path.startswith(VCP_CHANNELS):
        return EVENT_SCOPES
    if path.startswith(("/console/", "/docs/")) or f"/{path.split('/')[1]}" in CONSOLE_PAGES:
        return ALL_SCOPES
    required = next(
        (scope for place, scope in _SCOPES_OF_PREFIXES.items() if path == place or path.startswith(f"{place}/")), None
    )
    return None if required is None else frozenset({required, Scope.ADMIN})


def is_public(path: str) -> bool:
    """Return whether a path needs no key. Routes of callbacks and links check their own tokens."""
    return path in PUBLIC_PATHS or path.startswith(
        (CALLBACK_PREFIX, DRAWING_PREFIX, INSTALL_PREFIX, MEDIA_PREFIX, *PUBLISHED_PREFIXES)
    )
