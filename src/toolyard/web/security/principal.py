"""The principal of a request: who is asking, and what they may do.

The middleware authenticates each request and puts its principal into the ASGI scope. Everything behind it, routes,
WebSockets and the MCP server alike, asks ``get_principal``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

from toolyard.message import Message
from toolyard.protocol.records.audit_record import Actor
from toolyard.settings import OfferMode
from toolyard.web.refusal import Refusal
from toolyard.web.security.scope import Scope

PRINCIPAL: Final = "toolyard.principal"  # key of the ASGI scope


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
