"""Who is asking: a key in the Authorization header, the session of a browser, or a ticket for one WebSocket.

Tickets and login links are random, kept here and nowhere else, and bounded in number and time. Failures count for the
address they come from, whatever the path. What is right is let in first: the limit answers wrong attempts alone, so
nobody can lock out a right key by sending wrong ones from the same address.
"""

import hmac
import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from math import ceil
from pathlib import Path
from typing import Final, Generic, TypeVar

from toolyard.engine.clock import Clock
from toolyard.protocol.offer import OfferMode
from toolyard.web.failures import Failures
from toolyard.web.keys import Keys, digest
from toolyard.web.refusal import Refusal
from toolyard.web.scope import Scope
from toolyard.web.sessions import Sessions, csrf_of

TICKET_S: Final = 30.0
LINK_S: Final = 900.0
_MOST = 1000  # of each kind

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """Somebody who got in."""

    key_id: str
    scopes: frozenset[Scope]
    csrf: str = ""  # of a browser's session; empty: they sent a key, which no other site can make a browser do
    session: str = field(default="", repr=False)
    offer: OfferMode | None = None  # how the key has tools offered

    @property
    def caller(self) -> str:
        return f"key:{self.key_id}"

    @property
    def is_admin(self) -> bool:
        return Scope.ADMIN in self.scopes

    def may(self, needed: frozenset[Scope]) -> bool:
        return self.is_admin or bool(self.scopes & needed)


class _Once(Generic[T]):
    """Values under random names that nobody can guess, for a time."""

    def __init__(self, seconds: float, now: Callable[[], float]) -> None:
        self._seconds, self._now = seconds, now
        self._kept: OrderedDict[str, tuple[float, T]] = OrderedDict()  # by the hash of the name

    def put(self, value: T) -> str:
        name = secrets.token_urlsafe(32)
        self._kept[digest(name)] = (self._now() + self._seconds, value)
        while len(self._kept) > _MOST:
            self._kept.popitem(last=False)
        return name

    def get(self, name: str) -> T | None:
        until, value = self._kept.get(digest(name), (0.0, None))
        return value if self._now() < until else None

    def take(self, name: str) -> T | None:
        """The value, which is then gone."""
        value = self.get(name)
        self._kept.pop(digest(name), None)
        return value


class Access:
    def __init__(self, keys: Keys, home: Path, clock: Clock) -> None:
        self.keys = keys
        self._sessions = Sessions(home, keys, lambda: clock.now().timestamp())
        self.failures = Failures(clock.monotonic)
        self._address_failures = Failures(clock.monotonic)  # apart: a page of old links must not lock its owner out
        self._tickets: _Once[Visitor] = _Once(TICKET_S, clock.monotonic)
        self._links: _Once[Visitor] = _Once(LINK_S, clock.monotonic)

    def by_key(self, text: str, address: str) -> Visitor:
        """Raises Refusal: 401 for a wrong key, 429 when there were too many."""
        key = self.keys.find(text)
        if key is None:
            raise self._wrong(address, "the key is not valid")
        return Visitor(key_id=key.id, scopes=key.scopes, offer=key.offer)

    def by_session(self, name: str, address: str) -> Visitor:
        key = self._sessions.find(name)
        if key is None:
            raise self._wrong(address, "the session has ended: sign in again at /login")
        return Visitor(key_id=key.id, scopes=key.scopes, csrf=csrf_of(name), session=name, offer=key.offer)

    def is_session(self, name: str) -> bool:
        """Whether a browser that says so is signed in. Asking counts as no attempt: nothing opens."""
        return bool(name) and self._sessions.find(name) is not None

    def by_ticket(self, ticket: str, address: str) -> Visitor:
        visitor = self._tickets.take(ticket)
        if visitor is None or not self.still_in(visitor):
            raise self._wrong(address, f"the ticket is not valid: it is good once, for {TICKET_S:g} s")
        return visitor

    def check_address_key(self, given: str, right: str | None, address: str) -> bool:
        """Return whether the key in an address is the right one. Raises Refusal(429) after too many wrong ones."""
        if right is not None and same(given, right):
            return True
        _let_try(self._address_failures, address)
        self._address_failures.failed(address)
        return False

    def by_nothing(self, address: str) -> Refusal:
        """What somebody is told who shows nothing at all: no guess, so it does not count."""
        self._let_try(address)
        return _unauthorized("send the key as 'Authorization: Bearer KEY'")

    def link(self) -> str:
        """The name of a link that signs a browser in once, as the owner."""
        owner = self.keys.all()[0]
        return self._links.put(Visitor(key_id=owner.id, scopes=owner.scopes))

    def sign_in(self, *, link: str = "", key: str = "", address: str) -> str:
        """A new session, by a link or by a key."""
        visitor = self._links.take(link) if link else self.by_key(key, address)
        if visitor is None:
            raise self._wrong(address, "the link has been used or is too old: sign in with the key")
        return self._sessions.begin(visitor.key_id)

    def sign_out(self, session: str) -> None:
        self._sessions.end(session)

    def ticket(self, visitor: Visitor) -> str:
        return self._tickets.put(visitor)

    def still_in(self, visitor: Visitor) -> bool:
        """Whether a connection that stays open may stay open."""
        if visitor.session and self._sessions.find(visitor.session) is None:
            return False
        return self.keys.exists(visitor.key_id)

    def _let_try(self, address: str) -> None:
        _let_try(self.failures, address)

    def _wrong(self, address: str, message: str) -> Refusal:
        self._let_try(address)
        self.failures.failed(address)
        return _unauthorized(message)


def _let_try(failures: Failures, address: str) -> None:
    wait_s = failures.wait_s(address)
    if wait_s > 0:
        seconds = str(ceil(wait_s))
        raise Refusal(
            HTTPStatus.TOO_MANY_REQUESTS,
            f"too many attempts failed: try again in {seconds} s",
            headers={"Retry-After": seconds},
        )


def _unauthorized(message: str) -> Refusal:
    return Refusal(HTTPStatus.UNAUTHORIZED, message, headers={"WWW-Authenticate": "Bearer"})


def same(left: str, right: str) -> bool:
    """Whether two secrets are the same, in constant time."""
    return hmac.compare_digest(digest(left), digest(right))
