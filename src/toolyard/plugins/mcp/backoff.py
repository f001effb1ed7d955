"""The pause after crashes of a server (R29): 1, 2, 4, ... 60 s; after 5 crashes in 60 s no automatic start."""

from collections import deque
from collections.abc import Callable
from typing import Final

MAX_CRASHES: Final = 5
WITHIN_S: Final = 60.0
LONGEST_S: Final = 60.0


class Backoff:
    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._crashes: deque[float] = deque(maxlen=MAX_CRASHES)
        self.is_failed = False
        self.total = 0  # crashes in all, also those that are forgiven

    def note_crash(self) -> None:
        now = self._monotonic()
        self.total += 1
        if self._crashes and now - self._crashes[-1] > WITHIN_S:
            self._crashes.clear()  # it has worked for long enough since
        self._crashes.append(now)
        self.is_failed = len(self._crashes) == MAX_CRASHES and now - self._crashes[0] <= WITHIN_S

    @property
    def wait_s(self) -> float:
        """The seconds until it may start; 0 when it may now."""
        if not self._crashes:
            return 0.0
        pause = min(LONGEST_S, 2.0 ** (len(self._crashes) - 1))
        return max(0.0, self._crashes[-1] + pause - self._monotonic())

    def reset(self) -> None:
        """Forget all crashes, after a person has asked for it."""
        self._crashes.clear()
        self.is_failed = False
