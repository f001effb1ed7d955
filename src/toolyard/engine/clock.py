"""The clock: the one source of time, which tests replace."""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """Return the wall clock time, with its zone."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never jump, for durations and deadlines."""
        ...


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC).astimezone()

    def monotonic(self) -> float:
        return time.monotonic()


def read_boot_time() -> float:
    """Return seconds that also pass while the machine sleeps, where it can tell."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)
