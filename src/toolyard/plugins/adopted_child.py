"""A process that an earlier run of this host started and that has outlived it: watched again, by its pid alone.

It is no child of ours: its exit code is not ours to know, and its stderr went to the guardian of its first host. A pid
is believed only together with the moment its process began.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable

from toolyard.plugins.children import GRACE_S
from toolyard.plugins.stderr import StderrRing

_POLL_S = 0.5


class AdoptedChild:
    def __init__(self, pid: int, is_alive: Callable[[], bool]) -> None:
        self.pid, self._is_alive = pid, is_alive
        self.stderr = StderrRing()  # nothing will ever be in it

    async def wait(self) -> int:
        """Wait until the process is gone. Return 0: the exit code of a process that is not our child is unknown."""
        while self._is_alive():  # noqa: ASYNC110 the exit of a process that is not our child cannot be awaited
            await asyncio.sleep(_POLL_S)
        return 0

    def spare(self) -> None:
        """Do nothing: it has outlived one host already."""

    def terminate(self, grace_s: float = GRACE_S) -> "asyncio.Task[None]":
        return asyncio.create_task(self._stop(grace_s))

    async def release(self) -> None:
        """Do nothing: the host holds nothing of it."""

    async def _stop(self, grace_s: float) -> None:
        self._signal(signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                await self.wait()
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        if self._is_alive():  # it leads a session and a group of its own
            with contextlib.suppress(OSError):
                os.killpg(self.pid, number)
