"""Whether the server takes work, and how much of it is under way, so that it can end."""

import asyncio
from http import HTTPStatus
from typing import Final

from toolyard.web.refusal import Refusal

GRACE_S: Final = 20.0


class Drain:
    """Around each request that runs: ``with drain:``."""

    def __init__(self) -> None:
        self.ending = False
        self.storage_fault = ""  # why the last write failed; empty: it did not
        self.worked = False  # since that was last looked at: it may be over
        self._running = 0
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def running(self) -> int:
        return self._running

    @property
    def problem(self) -> str:
        """Why no new work is taken; empty: it is."""
        return "the server is ending" if self.ending else self.storage_fault

    def __enter__(self) -> None:
        """A request begins."""
        self._running += 1
        self._idle.clear()

    def __exit__(self, *_: object) -> None:
        self._running -= 1
        if not self._running:
            self._idle.set()

    def require_open(self) -> None:
        if self.ending:
            raise Refusal(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "the server is ending: try again when it is back",
                headers={"Retry-After": "5"},
            )

    async def idle(self) -> None:
        """Until no request is running."""
        await self._idle.wait()
