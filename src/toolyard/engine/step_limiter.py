"""Limits the steps of one event-loop iteration, so that many busy chats do not block everything else.

At most ``AT_ONCE`` of them take a step in one iteration of the event loop; the rest wait, in order, for the next ones.
"""

import asyncio
from collections import deque
from typing import Final

AT_ONCE: Final = 32


class StepLimiter:
    """A limiter of one event loop."""

    def __init__(self) -> None:
        self._left = AT_ONCE
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._counting = False

    async def step(self) -> None:
        """Return when the next step may be taken: nearly always at once."""
        if not self._counting:
            self._counting = True
            asyncio.get_running_loop().call_soon(self._begin_round)
        if self._left > 0 and not self._waiting:
            self._left -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        await turn

    def _begin_round(self) -> None:
        """Begin another iteration of the loop."""
        self._left = AT_ONCE
        while self._waiting and self._left > 0:
            turn = self._waiting.popleft()
            if not turn.done():  # it may have been cancelled
                turn.set_result(None)
                self._left -= 1
        self._counting = bool(self._waiting)
        if self._counting:
            asyncio.get_running_loop().call_soon(self._begin_round)
