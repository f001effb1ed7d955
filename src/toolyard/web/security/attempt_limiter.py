"""Rate limit of failed logins, per address and in total.

After ``MAX_PER_ADDRESS`` failures less than a minute apart, an address has to wait 1 s, then 2, 4, ... up to a minute
with each further one; after ``MAX_TOTAL`` every address has to wait, at most 5 s. Only failed attempts are counted and
refused. At most ``MAX_ADDRESSES`` addresses are remembered.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

MAX_PER_ADDRESS: Final = 10
MAX_TOTAL: Final = 100
MAX_ADDRESSES: Final = 10_000
_QUIET_S = 60.0
_LONGEST_S = 60.0
_LONGEST_TOTAL_S = 5.0
_ALL = ""


@dataclass(slots=True)
class _Attempts:
    failed: int = 0
    last: float = 0.0
    until: float = 0.0


class AttemptLimiter:
    """Counts failures; ``now`` returns monotonic seconds."""

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
