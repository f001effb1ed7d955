"""Failed attempts to get in, counted for each address and for all together; too many, and wrong ones have to wait.

``MANY`` failures of one address, none a minute after the other, make it wait 1 s, then 2, 4, ... up to a minute with
each further one; ``MANY_OF_ALL`` make everybody wait, but no longer than 5 s. Only wrong attempts are counted and
refused so. At most ``MAX_ADDRESSES`` are remembered.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

MANY: Final = 10
MANY_OF_ALL: Final = 100
MAX_ADDRESSES: Final = 10_000
_QUIET_S = 60.0
_LONGEST_S = 60.0
_LONGEST_OF_ALL_S = 5.0
_ALL = ""


@dataclass(slots=True)
class _Tries:
    failed: int = 0
    last: float = 0.0
    until: float = 0.0


class Failures:
    """``now`` tells seconds that never jump."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._tries: OrderedDict[str, _Tries] = OrderedDict()
        self.total = 0

    def wait_s(self, address: str) -> float:
        """How long this address still has to wait; 0 when it may try."""
        now = self._now()
        return max(0.0, *(tries.until - now for name in (address, _ALL) if (tries := self._tries.get(name))), 0.0)

    def failed(self, address: str) -> None:
        self.total += 1
        self._count(address, MANY, _LONGEST_S)
        self._count(_ALL, MANY_OF_ALL, _LONGEST_OF_ALL_S)

    def _count(self, name: str, many: int, longest_s: float) -> None:
        now = self._now()
        tries = self._tries.setdefault(name, _Tries())
        self._tries.move_to_end(name)
        if now > max(tries.last, tries.until) + _QUIET_S:
            tries.failed = 0
        tries.failed += 1
        tries.last = now
        if tries.failed >= many:
            tries.until = now + min(2.0 ** min(tries.failed - many, 10), longest_s)
        while len(self._tries) > MAX_ADDRESSES:
            self._tries.popitem(last=False)
