"""Access rights: the scopes of a key, the paths that require them, and the principal of a request, who has them.

A route says its scope where it is defined (``web.routing``); ``AccessRules`` are those of all routes. What no route has
named requires ``admin``: a new path is closed until somebody opens it.

The middleware authenticates each request and puts its principal into the ASGI scope. Everything behind it, routes,
WebSockets and the MCP server alike, asks ``get_principal``.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from toolyard.message import Message
from toolyard.protocol.records.audit_record import Actor
from toolyard.settings import OfferMode
from toolyard.web.refusal import Refusal

CALLBACK_PREFIX: Final = "/plugin-callback/"
PUBLISHED_PREFIXES: Final = ("/pw=", "//pw=")  # files that plugins publish; their route checks the key in the URL
NODE_PREFIX: Final = "/vcp-distributed-server/"
VCP_CHANNELS: Final = ("/VCPlog/", "/vcpinfo/", NODE_PREFIX)
VCP_ADMIN: Final = "/admin_api/"
VCP_PLUGINS: Final = ("/api/plugins/", VCP_ADMIN)  # routes of plugins that live in VCPToolBox's process
FORWARDED_PATHS: Final = (
    "/v1/embeddings",
    "/v1/completions",
    "/v1/moderations",
    "/v1/images",
    "/v1/audio",
)  # passed to a provider
PRINCIPAL: Final = "toolyard.principal"  # key of the ASGI scope


class Scope(StrEnum):
    CHAT = "chat"  # use models
    TOOLS = "tools"  # run tools, see their results
    APPROVE = "approve"  # answer approvals and change their rules
    NODE = "node"  # be a node, whose tools chats may use
    ADMIN = "admin"  # everything


ANY_KEY: Final = frozenset(Scope)
PUBLIC: Final[frozenset[Scope]] = frozenset()  # no key is needed; the route may check a token or a signature itself
EVENT_SCOPES: Final = frozenset({Scope.APPROVE, Scope.ADMIN})
_ADMIN: Final = frozenset({Scope.ADMIN})


class PathRule(NamedTuple):
    """The rule that says who may use a path."""

    scopes: frozenset[Scope]  # one is enough; ``admin`` always is
    is_known: bool  # whether some route has named it

    @property
    def is_public(self) -> bool:
        return not self.scopes


_CLOSED: Final = PathRule(_ADMIN, is_known=False)


class AccessRules:
    """The rules of all routes: who may use which path. A rule that ends with ``*`` covers all that begins so."""

    def __init__(self, rules: Iterable[Mapping[str, frozenset[Scope]]]) -> None:
        merged = {path: PathRule(scopes, is_known=True) for some in rules for path, scopes in some.items()}
        beginnings = sorted((path for path in merged if path.endswith("*")), key=len, reverse=True)
        self._paths = merged
        self._beginnings = [(path[:-1], merged[path]) for path in beginnings]  # the longest, most exact one first

    def find(self, path: str) -> PathRule:
        exact = self._paths.get(path)
        if exact is not None:
            return exact
        return next((rule for beginning, rule in self._beginnings if path.startswith(beginning)), _CLOSED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """An authenticated client: its key, its scopes, and the session it came with."""

    key_id: str
    scopes: frozenset[Scope]
    csrf: str = ""  # of a browser session; empty for a key, which no other site can make a browser send
    session: str = field(default="", repr=False)
    offer: OfferMode | None = None  # the offer mode of the key
    address: str = ""  # of the client

    @property
    def caller(self) -> str:
        return f"key:{self.key_id}"

    @property
    def actor(self) -> Actor:
        return Actor(name=self.caller, way="session" if self.session else "key", address=self.address)

    @property
    def is_admin(self) -> bool:
        return Scope.ADMIN in self.scopes

    def has_any_scope(self, needed: frozenset[Scope]) -> bool:
        return self.is_admin or bool(self.scopes & needed)

    @property
    def can_approve(self) -> bool:
        """True if it may answer approvals and change their rules."""
        return self.has_any_scope(frozenset({Scope.APPROVE}))

    @property
    def caller_filter(self) -> str | None:
        """The caller whose records it may see; None for all callers."""
        return None if self.is_admin else self.caller

    def can_see(self, caller: str) -> bool:
        """Return whether it may see the records of a caller."""
        return self.is_admin or caller == self.caller


def get_principal(scope: Mapping[str, Any]) -> Principal:
    """Return the principal in an ASGI scope. Raises Refusal without one."""
    principal = scope.get(PRINCIPAL)
    if not isinstance(principal, Principal):
        raise Refusal(
            HTTPStatus.UNAUTHORIZED, Message("send the key as 'Authorization: Bearer KEY' or 'x-api-key: KEY'")
        )
    return principal
