"""Draining: the count of running requests, and whether new ones are accepted."""

import asyncio
from http import HTTPStatus
from typing import Final

from toolyard.message import Message
from toolyard.web.refusal import Refusal

GRACE_S: Final = 20.0


class Drain:
    """The state of a server that accepts work or is shutting down. Each request runs in ``with drain:``."""

    def __init__(self) -> None:
        self.is_ending = False
        self.refuses_work = False  # a server whose socket goes to the next one gets no new requests to refuse
        self.storage_fault = ""  # why the last write failed; empty: it did not
        self.has_new_writes = False  # since the fault was last checked: it may be over
        self._running = 0
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def running_count(self) -> int:
        return self._running

    @property
    def problem(self) -> str:
        """The reason why no new work is accepted; empty when it is."""
        if self.refuses_work:
            return Message("the server is shutting down")
        return self.storage_fault

    def __enter__(self) -> None:
        """A request begins."""
        self._running += 1
        self._idle.clear()

    def __exit__(self, *_: object) -> None:
        self._running -= 1
        if not self._running:
            self._idle.set()

    def require_open(self) -> None:
        if self.refuses_work:
            raise Refusal(
                HTTPStatus.SERVICE_UNAVAILABLE,
                Message("the server is shutting down: try again when it is back"),
                headers={"Retry-After": "5"},
            )

    async def wait_idle(self) -> None:
        """Wait until no request is running."""
        await self._idle.wait()
