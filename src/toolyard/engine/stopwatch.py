"""The stopwatch of a call: its run time, without its wait for permission."""

from collections.abc import Iterator
from contextlib import contextmanager

from toolyard.engine.clock import Clock


class Stopwatch:
    """Measures one call, from its construction."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._began, self._waited = clock, clock.monotonic(), 0.0
        self.started: float | None = None  # when its tool began, in seconds since 1970

    @contextmanager
    def exclude_wait(self) -> Iterator[None]:
        since = self._clock.monotonic()
        try:
            yield
        finally:
            self._waited += max(0.0, self._clock.monotonic() - since)

    def mark_started(self) -> None:
        """Note that the tool begins."""
        self.started = self._clock.now().timestamp()

    @property
    def time_ms(self) -> float:
        return _to_ms(self._clock.monotonic() - self._began - self._waited)

    @property
    def waited_ms(self) -> float:
        return _to_ms(self._waited)


def _to_ms(seconds: float) -> float:
    return round(max(0.0, seconds) * 1000, 3)
