"""Signals that stop the work of a command."""

import asyncio
import signal
from collections.abc import Callable


class StopSignals:
    """Handler of Ctrl-C and SIGTERM: running work is cancelled, and its result still printed.

    A call may have become a task by then; ``set_handler`` switches what is stopped. A second signal sets ``gave_up``:
    whoever waits for another process stops waiting then.
    """

    def __init__(self, stop: Callable[[], object] = lambda: None) -> None:
        self._is_requested, self._stop = False, stop
        self.gave_up = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._handle_signal)

    def set_handler(self, stop: Callable[[], object]) -> None:
        """Set what a signal does, and do it at once if one came before."""
        self._stop = stop
        if self._is_requested:
            stop()

    def _handle_signal(self) -> None:
        if self._is_requested:
            self.gave_up.set()
        self._is_requested = True
        self._stop()
