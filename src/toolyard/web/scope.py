"""Who may do what: the scopes of keys, and the scope that each address needs.

An address that no rule names needs ``admin``: a route that somebody adds is closed until it is named here.
"""

from enum import StrEnum
from typing import Final


class Scope(StrEnum):
    CHAT = "chat"  # talk to models
    TOOLS = "tools"  # run tools, see what came of them
    APPROVE = "approve"  # answer approvals and change their rules
    ADMIN = "admin"  # everything


ANY: Final = frozenset(Scope)
OPEN: Final = frozenset({"/healthz", "/readyz", "/login", "/login.css"})
CONSOLE_PAGES: Final = (
    "/chat", "/tools", "/activity", "/tasks", "/schedule", "/approvals", "/settings", "/status", "/welcome",
)  # fmt: skip
DRAWING: Final = "/console/draw/"  # what a frame without an origin loads: it can send no cookie, and there is no secret
MEDIA: Final = "/media/"  # a link to a picture is its own permission, which its route checks
CALLBACK: Final = "/plugin-callback/"
PUBLISHED: Final = ("/pw=", "//pw=")  # files that plugins publish; their route checks the key in the address
VCP_CHANNELS: Final = ("/VCPlog/", "/vcpinfo/")
EVENTS: Final = frozenset({Scope.APPROVE, Scope.ADMIN})

PASSED_ON: Final = ("/v1/embeddings", "/v1/completions", "/v1/moderations", "/v1/images", "/v1/audio")  # to a provider

_EXACT = dict.fromkeys(("/", "/docs", "/docs.css", "/openapi.json", "/v1/session", "/logout", "/ws-ticket"), ANY)
_EXACT["/ws"] = EVENTS
_EXACT["/metrics"] = frozenset({Scope.ADMIN})
_EXACT |= dict.fromkeys(("/v1/reply/render", "/v1/reply/media"), frozenset({Scope.CHAT, Scope.TOOLS, Scope.ADMIN}))
_BELOW = {
    "/v1/chat": Scope.CHAT,
    "/v1/chatvcp": Scope.CHAT,
    "/v1/chats": Scope.CHAT,
    "/v1/conversations": Scope.CHAT,
    "/v1/models": Scope.CHAT,
    **dict.fromkeys(PASSED_ON, Scope.CHAT),
    "/v1/interrupt": Scope.CHAT,
    "/v1/tools": Scope.TOOLS,
    "/v1/human": Scope.TOOLS,
    "/v1/tasks": Scope.TOOLS,
    "/v1/schedules": Scope.TOOLS,
    "/v1/schedule_task": Scope.TOOLS,
    "/v1/calls": Scope.TOOLS,
    "/v1/backend": Scope.TOOLS,
    "/mcp": Scope.TOOLS,
    "/v1/approvals": Scope.APPROVE,
}


def needed(path: str) -> frozenset[Scope]:
    """The scopes of which one is enough for ``path``; ``admin`` always is."""
    return _ruled(path) or frozenset({Scope.ADMIN})


def is_nowhere(path: str) -> bool:
    """Whether a person who came here mistyped an address: no rule names it, and no program asks there."""
    return _ruled(path) is None and not path.startswith("/v1/")


def _ruled(path: str) -> frozenset[Scope] | None:
    if path in _EXACT:
        return _EXACT[path]
    if path.startswith(VCP_CHANNELS):
        return EVENTS
    if path.startswith("/console/") or f"/{path.split('/')[1]}" in CONSOLE_PAGES:
        return ANY
    found = next((scope for place, scope in _BELOW.items() if path == place or path.startswith(f"{place}/")), None)
    return None if found is None else frozenset({found, Scope.ADMIN})


def is_open(path: str) -> bool:
    """Whether nobody has to say who they are. A callback says it by its token, which its route checks."""
    return path in OPEN or path.startswith((CALLBACK, DRAWING, MEDIA, *PUBLISHED))
