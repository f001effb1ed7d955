"""Standby interpreters: started, and waiting at a gate before the first line of the plugin's script.

The number for one launch follows its use: one after its first call, one more each time that none was ready, up to
``MAX_PER_LAUNCH``; none when it was not called for ``IDLE_S``. All launches together have ``MAX_PROCESSES`` and
``MAX_BYTES``. Only one that waits at the gate is used: it has taken the byte that was put into its stdin. If two in a
row die before that, the launch is not tried again.
"""

import asyncio
import fcntl
import os
import termios
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from toolyard.plugins.process.children import Children
from toolyard.plugins.process.cold_starter import ColdChild
from toolyard.plugins.process.launch import Launch
from toolyard.plugins.process.warm.prestarted_process import (
    PrestartedProcess,
    WarmCommand,
    bind_to_call,
    encode_variables,
)

MAX_PROCESSES = 8
MAX_PER_LAUNCH = 4
MAX_BYTES = 1 << 29
IDLE_S = 120.0
_REFILL_S = 0.05  # the call that has just begun goes first
_DEATHS = 2
_NOTHING = b"\0" * 4


@dataclass(slots=True)
class _LaunchPool:
    """The standby processes of one launch."""

    recipe: WarmCommand
    launch: Launch
    used: float
    target: int = 1
    deaths: int = 0
    refill: asyncio.TimerHandle | None = None
    waiting: list[PrestartedProcess] = field(default_factory=list)


class StandbyPool:
    def __init__(self, children: Children) -> None:
        self._children = children
        self._loop = asyncio.get_running_loop()
        self._pools: dict[Hashable, _LaunchPool] = {}
        self._ending: set[PrestartedProcess] = set()
        self._idle: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def pids(self) -> list[int]:
        return [one.pid for row in self._pools.values() for one in row.waiting]

    def count_ready(self, key: Hashable) -> int:
        """Return how many wait at the gate."""
        row = self._pools.get(key)
        return sum(_is_at_gate(one) for one in row.waiting) if row else 0

    def take(self, key: Hashable, per_call: Mapping[str, str]) -> ColdChild | None:
        """Return one as the child of this call. None: start it cold."""
        row = self._pools.get(key)
        if row is None:
            return None
        row.used = self._loop.time()
        self._refill_later(key)
        for one in [one for one in row.waiting if _is_at_gate(one)]:
            row.waiting.remove(one)
            child = self._bind(one, row.launch, per_call)
            if child:
                row.deaths = 0
                return child
        row.target = min(row.target + 1, MAX_PER_LAUNCH)
        return None

    def prepare(self, key: Hashable, recipe: WarmCommand, launch: Launch) -> None:
        """Have one ready for the next call of this launch."""
        if key not in self._pools:
            self._pools[key] = _LaunchPool(recipe, launch, self._loop.time())
            self._refill_later(key)
        if self._idle is None:
            self._idle = self._loop.call_later(IDLE_S / 4, self._end_idle)

    def drop(self, key: Hashable) -> None:
        row = self._pools.pop(key, None)
        if row is None:
            return
        if row.refill:
            row.refill.cancel()
        for one in row.waiting:
            self._kill(one)

    async def close(self) -> None:
        self._closed = True
        if self._idle:
            self._idle.cancel()
        for key in list(self._pools):
            self.drop(key)
        await asyncio.gather(*(one.wait_ended() for one in self._ending))

    def _bind(self, one: PrestartedProcess, launch: Launch, per_call: Mapping[str, str]) -> ColdChild | None:
        if bind_to_call(self._children, one.pid, launch.limits, lambda: _open_gate(one.pipes[0], per_call)):
            self._children.hold_ports(one.pid, one.ports)
            return ColdChild(one.pid, *one.hand_over())
        self._kill(one)
        return None

    def _refill_later(self, key: Hashable) -> None:
        row = self._pools.get(key)
        if row and row.refill is None and not self._closed:
            row.refill = self._loop.call_later(_REFILL_S, self._refill, key)

    def _refill(self, key: Hashable) -> None:
        row = self._pools.get(key)
        if row is None:
            return
        row.refill = None
        if row.deaths >= _DEATHS:
            return
        while len(row.waiting) < row.target and self._has_room():
            try:
                one = PrestartedProcess(row.recipe.standby_argv(), row.launch, self._children)
                os.write(one.pipes[0], b"?")
            except (OSError, ValueError):
                row.deaths = _DEATHS
                return
            one.on_death = lambda one=one: self._on_exit(key, one)  # type: ignore[misc]
            row.waiting.append(one)

    def _has_room(self) -> bool:
        waiting = [one for row in self._pools.values() for one in row.waiting]
        return len(waiting) < MAX_PROCESSES and sum(one.resident_bytes for one in waiting) < MAX_BYTES

    def _on_exit(self, key: Hashable, one: PrestartedProcess) -> None:
        self._ending.discard(one)
        row = self._pools.get(key)
        if row and one in row.waiting:
            row.waiting.remove(one)
            row.deaths += 1
            self._refill_later(key)

    def _kill(self, one: PrestartedProcess) -> None:
        self._ending.add(one)
        one.kill()

    def _end_idle(self) -> None:
        self._idle = None
        oldest = self._loop.time() - IDLE_S
        for key in [key for key, row in self._pools.items() if row.used < oldest]:
            self.drop(key)
        if self._pools:
            self._idle = self._loop.call_later(IDLE_S / 4, self._end_idle)


def _is_at_gate(one: PrestartedProcess) -> bool:
    return not one.exited.is_set() and fcntl.ioctl(one.pipes[0], termios.FIONREAD, _NOTHING) == _NOTHING


def _open_gate(stdin: int, per_call: Mapping[str, str]) -> None:
    """Write what opens the gate: a length, and the call's environment variables. Raises OSError."""
    variables = encode_variables(per_call)
    os.set_blocking(stdin, False)
    os.write(stdin, len(variables).to_bytes(4, "big") + variables)
