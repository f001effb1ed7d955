"""The API keys of one model provider: used in turn; a refused key rests for a while."""

from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Final

from toolyard.gateway.faults import ChatFault

REFUSED_S: Final = 300.0  # rest of a refused key
BUSY_S: Final = 30.0  # rest of a rate-limited key, unless the provider names another
MAX_REST_S: Final = 600.0
_REFUSED = {f"upstream_{status.value}" for status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)}
_BUSY = f"upstream_{HTTPStatus.TOO_MANY_REQUESTS.value}"


def is_about_key(fault: ChatFault) -> bool:
    """Return whether another key may be accepted where this one was refused."""
    return fault.code in _REFUSED or fault.code == _BUSY


class KeyRing:
    """The keys in their order; without any key, requests carry none."""

    def __init__(self, keys: Sequence[str], now: Callable[[], float]) -> None:
        self._keys: tuple[str | None, ...] = tuple(dict.fromkeys(keys)) or (None,)
        self._now = now
        self._next = 0
        self._rests: dict[str | None, float] = {}  # until when

    def all(self) -> tuple[str | None, ...]:
        return self._keys

    def in_order(self) -> list[str | None]:
        """Return the keys for one request: active ones in turn, then resting ones by the end of their rest."""
        if len(self._keys) == 1:
            return [self._keys[0]]
        begin, self._next = self._next, (self._next + 1) % len(self._keys)
        now = self._now()
        turned = self._keys[begin:] + self._keys[:begin]
        return sorted(turned, key=lambda key: max(self._rests.get(key, 0.0) - now, 0.0))

    def rest(self, key: str | None, fault: ChatFault) -> None:
        """Let a key rest that a provider did not take."""
        seconds = REFUSED_S if fault.code in _REFUSED else BUSY_S
        if fault.code == _BUSY and fault.retry_after.isdecimal():
            seconds = min(float(fault.retry_after), MAX_REST_S)
        self._rests[key] = self._now() + seconds
