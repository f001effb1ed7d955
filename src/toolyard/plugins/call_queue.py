"""The queue of plugin calls: a limit for the host, one for each plugin, first come first served.

A call that finds no room waits; among the plugins that have room the longest waiting call goes first, so a plugin at
its own limit holds up nobody else. When the queue is full, a further call is refused as BUSY at once.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from toolyard.message import Message
from toolyard.protocol.envelope import Failure, Reason

AT_ONCE = 8
AT_ONCE_PER_PLUGIN = 4
MAX_WAITING = 1000


@dataclass(eq=False)
class _PluginQueue:
    """The running and waiting calls of one plugin."""

    running: int = 0
    limit: int = AT_ONCE_PER_PLUGIN
    waiting: "deque[_Waiter]" = field(default_factory=deque)


@dataclass(eq=False)
class _Waiter:
    number: int
    turn: "asyncio.Future[None]"


class CallQueue:
    """The queue of one event loop."""

    def __init__(self, *, at_once: int = AT_ONCE, max_waiting: int = MAX_WAITING) -> None:
        self._at_once, self._max_waiting = at_once, max_waiting
        self._lines: dict[str, _PluginQueue] = {}
        self._running = self._waiting = self._arrived = 0

    @property
    def running(self) -> int:
        return self._running

    @property
    def waiting(self) -> int:
        return self._waiting

    @asynccontextmanager
    async def slot(self, plugin: str, limit: int) -> AsyncIterator[bool]:
        """Hold a slot while the block runs; yields whether the call had to wait. Raises Failure(BUSY) when full."""
        line = self._lines.setdefault(plugin, _PluginQueue())
        line.limit = limit
        at_once = self._has_room(line) and not line.waiting
        if at_once:
            self._running += 1
            line.running += 1
        else:
            await self._wait(plugin, line)
        try:
            yield not at_once
        finally:
            self._running -= 1
            line.running -= 1
            self._admit_waiting()
            if not line.running and not line.waiting:
                self._lines.pop(plugin, None)

    async def _wait(self, plugin: str, line: _PluginQueue) -> None:
        if self._waiting >= self._max_waiting:
            raise Failure(
                Reason.BUSY,
                Message(
                    "{plugin} cannot start: {waiting} calls are waiting already.", plugin=plugin, waiting=self._waiting
                ),
                hint=Message("Try again in a few seconds, or run fewer calls at a time."),
            )
        self._arrived += 1
        waiter = _Waiter(self._arrived, asyncio.get_running_loop().create_future())
        line.waiting.append(waiter)
        self._waiting += 1
        try:
            await waiter.turn
        except asyncio.CancelledError:
            if not waiter.turn.cancelled():  # its turn came as it was cancelled: pass it on
                self._running -= 1
                line.running -= 1
                self._admit_waiting()
            elif waiter in line.waiting:
                line.waiting.remove(waiter)
                self._waiting -= 1
            raise

    def _admit_waiting(self) -> None:
        """Start the waiting calls for which there is room."""
        while self._running < self._at_once:
            ready = [line for line in self._lines.values() if line.waiting and self._has_room(line)]
            if not ready:
                return
            line = min(ready, key=lambda one: one.waiting[0].number)
            waiter = line.waiting.popleft()
            self._waiting -= 1
            if not waiter.turn.cancelled():
                self._running += 1
                line.running += 1
                waiter.turn.set_result(None)

    def _has_room(self, line: _PluginQueue) -> bool:
        return self._running < self._at_once and line.running < line.limit
