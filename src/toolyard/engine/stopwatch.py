"""How long a call runs: what it waits for permission is counted by itself."""

from collections.abc import Iterator
from contextlib import contextmanager

from toolyard.engine.clock import Clock


class Stopwatch:
    """Of one call, from the moment it is made."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._began, self._waited = clock, clock.monotonic(), 0.0
        self.ran: float | None = None  # when its tool began, in seconds since 1970

    @contextmanager
    def waiting(self) -> Iterator[None]:
        since = self._clock.monotonic()
        try:
            yield
        finally:
            self._waited += max(0.0, self._clock.monotonic() - since)

    def runs(self) -> None:
        """Its tool begins."""
        self.ran = self._clock.now().timestamp()

    @property
    def time_ms(self) -> float:
        return _ms(self._clock.monotonic() - self._began - self._waited)

    @property
    def waited_ms(self) -> float:
        return _ms(self._waited)


def _ms(seconds: float) -> float:
    return round(max(0.0, seconds) * 1000, 3)
