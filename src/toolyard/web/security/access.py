"""Authentication: by a key in the Authorization header, a browser session, or a ticket for one WebSocket.

Tickets and login links are random, held in memory only, and bounded in number and lifetime. Failed attempts are counted
per address, whatever the path. Valid credentials are accepted before the limit is looked at, so nobody can lock out a
valid key by sending invalid ones from the same address.
"""

import hmac
import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http import HTTPStatus
from math import ceil
from pathlib import Path
from typing import Final, Generic, TypeVar

from toolyard.engine.clock import Clock
from toolyard.message import Message
from toolyard.own_command import FOR_DEFAULT_HOME
from toolyard.vcp.installation import MIN_KEY
from toolyard.web.refusal import Refusal
from toolyard.web.security.keys import PANEL, Keys, hash_secret
from toolyard.web.security.scope import Principal, Scope
from toolyard.web.security.sessions import Sessions, make_csrf_token

TICKET_S: Final = 30.0
LINK_S: Final = 900.0
_MAX_TOKENS = 1000  # of each kind
MAX_PER_ADDRESS: Final = 10
MAX_TOTAL: Final = 100
MAX_ADDRESSES: Final = 10_000
_QUIET_S = 60.0
_LONGEST_S = 60.0
_LONGEST_TOTAL_S = 5.0
_ALL = ""
T = TypeVar("T")


class _TokenStore(Generic[T]):
    """Values under random, unguessable names that expire."""

    def __init__(self, seconds: float, now: Callable[[], float]) -> None:
        self._seconds, self._now = seconds, now
        self._values: OrderedDict[str, tuple[float, T]] = OrderedDict()  # by the hash of the token

    def issue(self, value: T) -> str:
        name = secrets.token_urlsafe(32)
        self._values[hash_secret(name)] = (self._now() + self._seconds, value)
        while len(self._values) > _MAX_TOKENS:
            self._values.popitem(last=False)
        return name

    def peek(self, name: str) -> T | None:
        until, value = self._values.get(hash_secret(name), (0.0, None))
        return value if self._now() < until else None

    def redeem(self, name: str) -> T | None:
        """Return the value of a token and remove it."""
        value = self.peek(name)
        self._values.pop(hash_secret(name), None)
        return value


class Access:
    def __init__(self, keys: Keys, home: Path, clock: Clock, *, panel: tuple[str, str] | None = None) -> None:
        """``panel`` is the name and password of the admin panel of a VCPToolBox installation."""
        self.keys, self._panel = keys, panel
        self._sessions = Sessions(home, keys, lambda: clock.now().timestamp())
        self.limiter = AttemptLimiter(clock.monotonic)
        self._url_key_limiter = AttemptLimiter(
            clock.monotonic
        )  # apart: a page of old links must not lock its owner out
        self._tickets: _TokenStore[Principal] = _TokenStore(TICKET_S, clock.monotonic)
        self._links: _TokenStore[Principal] = _TokenStore(LINK_S, clock.monotonic)

    def authenticate_key(self, text: str, address: str) -> Principal:
        """Return the principal of a key. Raises Refusal: 401 for an invalid key, 429 after too many of them."""
        key = self.keys.find(text)
        if key is None:
            raise self._count_failure(address, Message("the key is invalid"))
        return Principal(key_id=key.id, scopes=key.scopes, offer=key.offer)

    def authenticate_channel(self, given: Iterable[str], address: str) -> Principal:
        """Return the principal of the key in the address of one of VCPToolBox's channels, which may be one of several.

        Raises Refusal as for any other key, in the words that VCPToolBox's people know it by.
        """
        candidates = list(given)
        if text := next((text for text in candidates if self.keys.find(text)), None):
            return self.authenticate_key(text, address)
        if candidates and len(candidates[0]) < MIN_KEY:
            why = Message("the VCP_Key is too short: one of at least {least} characters is needed", least=MIN_KEY)
            raise self._count_failure(address, why)
        raise self._count_failure(address, Message("wrong key: this server has another VCP_Key"))

    def authenticate_panel(self, name: str, password: str, address: str) -> Principal:
        """Return the owner, for VCPToolBox's admin API alone: of its admin panel, or with a key as the password."""
        if (key := self.keys.find(password)) is not None:
            return Principal(key_id=key.id, scopes=key.scopes, offer=key.offer)
        if self._panel is not None and is_same_secret(f"{name}:{password}", ":".join(self._panel)):
            if len(password) >= MIN_KEY:
                return Principal(key_id=PANEL, scopes=frozenset({Scope.ADMIN}))
            why = Message("the AdminPassword is too short: one of at least {least} characters is needed", least=MIN_KEY)
            raise self._count_failure(address, why)
        raise self._count_failure(address, Message("the name or the password is wrong"))

    def authenticate_session(self, name: str, address: str) -> Principal:
        key = self._sessions.find(name)
        if key is None:
            raise self._count_failure(address, Message("the session has expired: sign in again at /login"))
        return Principal(key_id=key.id, scopes=key.scopes, csrf=make_csrf_token(name), session=name, offer=key.offer)

    def has_session(self, name: str) -> bool:
        """Return whether a session is valid. This grants nothing, so it does not count as an attempt."""
        return bool(name) and self._sessions.find(name) is not None

    def authenticate_ticket(self, ticket: str, address: str) -> Principal:
        principal = self._tickets.redeem(ticket)
        if principal is None or not self.is_still_valid(principal):
            raise self._count_failure(
                address, Message("the ticket is invalid: it can be used once, within {seconds:g} s", seconds=TICKET_S)
            )
        return principal

    def check_url_key(self, given: str, right: Iterable[str], address: str) -> bool:
        """Return whether the key in a URL is one of those expected. Raises Refusal(429) after too many failures."""
        same = [is_same_secret(given, key) for key in right]  # all of them, so that the time reveals nothing
        if any(same):
            return True
        _require_attempt(self._url_key_limiter, address)
        self._url_key_limiter.count_failure(address)
        return False

    def missing_credentials(self, address: str) -> Refusal:
        """Return the refusal for a request without credentials. It is no guess, so it does not count as a failure."""
        self._require_attempt(address)
        return _unauthorized_refusal(Message("send the key as 'Authorization: Bearer KEY' or 'x-api-key: KEY'"))

    def make_login_link(self, principal: Principal | None = None) -> str:
        """Return the token of a link that signs a browser in once, with the key of ``principal`` or as the owner."""
        owner = self.keys.all()[0]
        return self._links.issue(principal or Principal(key_id=owner.id, scopes=owner.scopes))

    def sign_in(self, *, link: str = "", key: str = "", address: str) -> str:
        """Start a session with a login link or a key, and return its name."""
        principal = self._links.redeem(link) if link else self.authenticate_key(key, address)
        if principal is None or not self.keys.exists(principal.key_id):
            raise self._count_failure(
                address,
                Message(
                    "the link has already been used or has expired: a link works once, and `{command}` prints a new "
                    "one; or sign in with the key",
                    command=FOR_DEFAULT_HOME.format("login"),  # the path of the home is not for everybody
                ),
            )
        return self._sessions.begin(principal.key_id)

    def sign_out(self, session: str) -> None:
        self._sessions.end(session)

    def make_ticket(self, principal: Principal) -> str:
        return self._tickets.issue(principal)

    def is_still_valid(self, principal: Principal) -> bool:
        """Return whether the key and the session of an open connection still exist."""
        if principal.session and self._sessions.find(principal.session) is None:
            return False
        return self.keys.exists(principal.key_id)

    def _require_attempt(self, address: str) -> None:
        _require_attempt(self.limiter, address)

    def _count_failure(self, address: str, message: str) -> Refusal:
        self._require_attempt(address)
        self.limiter.count_failure(address)
        return _unauthorized_refusal(message)


@dataclass(slots=True)
class _Attempts:
    failed: int = 0
    last: float = 0.0
    until: float = 0.0


class AttemptLimiter:
    """Counts failed attempts, per address and in total; only they are refused. ``now`` returns monotonic seconds.

    After ``MAX_PER_ADDRESS`` failures less than a minute apart, an address has to wait 1 s, then 2, 4, ... up to a
    minute with each further one; after ``MAX_TOTAL`` every address has to wait, at most 5 s. At most ``MAX_ADDRESSES``
    addresses are remembered.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._attempts: OrderedDict[str, _Attempts] = OrderedDict()
        self.total = 0

    def wait_s(self, address: str) -> float:
        """Return how long this address has to wait; 0 when it may try."""
        now = self._now()
        return max(0.0, *(tries.until - now for name in (address, _ALL) if (tries := self._attempts.get(name))), 0.0)

    def count_failure(self, address: str) -> None:
        self.total += 1
        self._count(address, MAX_PER_ADDRESS, _LONGEST_S)
        self._count(_ALL, MAX_TOTAL, _LONGEST_TOTAL_S)

    def _count(self, name: str, many: int, longest_s: float) -> None:
        now = self._now()
        tries = self._attempts.setdefault(name, _Attempts())
        self._attempts.move_to_end(name)
        if now > max(tries.last, tries.until) + _QUIET_S:
            tries.failed = 0
        tries.failed += 1
        tries.last = now
        if tries.failed >= many:
            tries.until = now + min(2.0 ** min(tries.failed - many, 10), longest_s)
        while len(self._attempts) > MAX_ADDRESSES:
            self._attempts.popitem(last=False)


def _require_attempt(failures: AttemptLimiter, address: str) -> None:
    wait_s = failures.wait_s(address)
    if wait_s > 0:
        seconds = str(ceil(wait_s))
        raise Refusal(
            HTTPStatus.TOO_MANY_REQUESTS,
            Message("too many failed attempts: try again in {seconds} s", seconds=seconds),
            headers={"Retry-After": seconds},
        )


def _unauthorized_refusal(message: str) -> Refusal:
    headers = {"WWW-Authenticate": "Bearer", "x-should-retry": "false"}  # Claude Code would try again for a minute
    return Refusal(HTTPStatus.UNAUTHORIZED, message, headers=headers)


def is_same_secret(left: str, right: str) -> bool:
    """Compare two secrets in constant time."""
    return hmac.compare_digest(hash_secret(left), hash_secret(right))
