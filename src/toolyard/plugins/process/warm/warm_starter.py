"""Warm starts where possible, cold ones elsewhere: never later, never with another result.

The first call of a launch starts cold and makes what the next ones use: a fork server for Python, a standby for Node
and for Python that is unfit for forking. A launch is what it is by its command, folder, environment, limits and
version, and by which variables a call adds: when one of them changes, what was made for it before ends.

Fork servers are bounded in number and memory, and ended when idle. A launch whose server is not ready, is too old or
does not work has none: its call starts cold. One that proves unfit is not tried again; one that breaks is tried twice
more.
"""

import asyncio
from collections.abc import Hashable, Mapping
from dataclasses import replace

from toolyard import process_numbers
from toolyard.plugins.process.children import Children
from toolyard.plugins.process.cold_starter import ColdStarter
from toolyard.plugins.process.launch import ChildProcess, Launch, Starter
from toolyard.plugins.process.warm.fork_server import ForkServer, ServerState
from toolyard.plugins.process.warm.prestarted_process import FOLDER, Interpreter, WarmCommand, parse_warm_command
from toolyard.plugins.process.warm.standby_pool import StandbyPool

_MAX_LAUNCHES = 1024
MAX_SERVERS = 16
MAX_BYTES = 1 << 30
IDLE_S = 300.0
SLOW_S = 0.5  # a server that takes longer to make ...
SLOW_IDLE_S = 3600.0  # ... is kept longer: the call that finds none pays for it
_REMEMBERED = 1024  # launches that cannot be forked
_TRIES = 3


class WarmStarter:
    """The starter of one event loop. ``close`` it before ``children``."""

    def __init__(self, children: Children, cold: ColdStarter, *, enabled: bool = True) -> None:
        self._children = children
        self.cold: Starter = cold
        self._enabled = enabled and process_numbers.AVAILABLE
        self._pools: tuple[ForkServers, StandbyPool] | None = None
        self._current: dict[Hashable, Hashable] = {}  # command and folder -> the launch it is now

    @property
    def servers(self) -> "ForkServers":
        return self._parts()[0]

    @property
    def standbys(self) -> StandbyPool:
        return self._parts()[1]

    async def spawn(self, launch: Launch, per_call: Mapping[str, str]) -> ChildProcess:
        """Start a child for one call; ``per_call`` is added to the environment. Raises Failure(START_FAILED)."""
        if not (self._enabled and launch.warm):
            return await self.cold.spawn(launch, per_call)
        key = self.launch_key(launch, per_call)
        child = await self.servers.fork_child(key, per_call) or self.standbys.take(key, per_call)
        if child is None:
            child = await self.cold.spawn(launch, per_call)
            if self._children.number_of(child.pid):  # without numbers nothing of ours would end with the host
                self._prepare(key, _build_warm_launch(launch, per_call))
        return child

    async def close(self) -> None:
        """End what waits; what runs is left to ``children``."""
        self._enabled = False
        if self._pools:
            for part in self._pools:
                await part.close()

    def _parts(self) -> "tuple[ForkServers, StandbyPool]":
        if self._pools is None:
            self._pools = (ForkServers(self._children), StandbyPool(self._children))
        return self._pools

    def launch_key(self, launch: Launch, per_call: Mapping[str, str]) -> Hashable:
        """Return the identity of a launch; processes made for an older one of the same command end."""
        place = (launch.argv, launch.cwd)
        key = (
            *place, tuple(sorted(launch.environment.items())), launch.profile, launch.limits, launch.version, *per_call,
        )  # fmt: skip
        before = self._current.get(place)
        if before != key:
            self._current[place] = key
            if before is not None:
                self.servers.drop(before)
                self.standbys.drop(before)
            if len(self._current) > _MAX_LAUNCHES:
                self._current.pop(next(iter(self._current)))
        return key

    def _prepare(self, key: Hashable, launch: Launch) -> None:
        recipe = parse_warm_command(launch)
        if recipe is None or not self._enabled:
            return
        if recipe.interpreter is Interpreter.NODE or self.servers.unfit_reason(key):
            self.standbys.prepare(key, recipe, launch)
        else:
            self.servers.prepare(key, recipe, launch)


def _build_warm_launch(launch: Launch, per_call: Mapping[str, str]) -> Launch:
    """Return a launch whose process may read the programs of this package that prepare it."""
    profile = launch.profile and replace(launch.profile, read=(*launch.profile.read, FOLDER))
    return replace(launch, environment={**launch.environment, **per_call}, profile=profile)


class ForkServers:
    def __init__(self, children: Children) -> None:
        self._children = children
        self._loop = asyncio.get_running_loop()
        self._servers: dict[Hashable, ForkServer] = {}  # the one used last is the last one
        self._leaving: set[ForkServer] = set()
        self._used: dict[Hashable, float] = {}
        self._failures: dict[Hashable, int] = {}
        self._unfit: dict[Hashable, str] = {}
        self._idle: asyncio.TimerHandle | None = None

    @property
    def pids(self) -> list[int]:
        return [server.process.pid for server in self._servers.values()]

    @property
    def spares(self) -> list[int]:
        """The pids of the children that were forked ahead."""
        return [pid for server in self._servers.values() for pid in server.spares]

    def unfit_reason(self, key: Hashable) -> str:
        """Return why this launch cannot be forked, as far as that is known; empty otherwise."""
        return self._unfit.get(key, "")

    def mark_unfit(self, key: Hashable, reason: str) -> None:
        self._unfit[key] = reason
        if len(self._unfit) > _REMEMBERED:
            self._unfit.pop(next(iter(self._unfit)))

    def is_hopeless(self, key: Hashable) -> bool:
        """Return whether the server program does not run in this interpreter."""
        return self._failures.get(key, 0) >= _TRIES

    def is_ready(self, key: Hashable) -> bool:
        server = self._servers.get(key)
        return server is not None and server.state is ServerState.READY

    async def fork_child(self, key: Hashable, per_call: Mapping[str, str]) -> ChildProcess | None:
        server = self._servers.get(key)
        if server is None:
            return None
        self._servers[key] = self._servers.pop(key)
        self._used[key] = self._loop.time()
        return await server.fork_child(per_call)

    def prepare(self, key: Hashable, recipe: WarmCommand, launch: Launch) -> None:
        """Start a server in the background, unless there is one or it is known to be useless."""
        if key in self._servers or key in self._unfit or self.is_hopeless(key):
            return
        try:
            server = ForkServer(recipe, launch, self._children, lambda: self._on_change(key, server))
        except (OSError, ValueError):
            self._fail(key)
            return
        self._servers[key] = server
        self._used[key] = self._loop.time()
        self._trim()
        if self._idle is None:
            self._idle = self._loop.call_later(IDLE_S / 4, self._end_idle)

    def drop(self, key: Hashable) -> None:
        """Retire the server of a launch that is out of date."""
        server = self._servers.pop(key, None)
        self._used.pop(key, None)
        if server:
            self._leaving.add(server)
            server.retire()
            self._leaving = {one for one in self._leaving if not one.process.exited.is_set()}

    async def close(self) -> None:
        if self._idle:
            self._idle.cancel()
        servers = {*self._servers.values(), *self._leaving}
        self._servers.clear()
        await asyncio.gather(*(server.close() for server in servers))

    def _on_change(self, key: Hashable, server: ForkServer) -> None:
        if self._servers.get(key) is not server:  # it was dropped, and there may be another one by now
            return
        if server.state is ServerState.READY and not server.is_retired:
            self._trim()
            return
        if server.state is ServerState.UNFIT:
            self.mark_unfit(key, server.reason or "its imports fail")
        elif server.state is ServerState.BROKEN:
            self._fail(key)
        self.drop(key)

    def _fail(self, key: Hashable) -> None:
        self._failures[key] = self._failures.get(key, 0) + 1
        if len(self._failures) > _REMEMBERED:
            self._failures.pop(next(iter(self._failures)))

    def _trim(self) -> None:
        """Retire the least recently used servers until the rest are within the limits."""
        sizes = {key: server.process.resident_bytes for key, server in self._servers.items()}
        for key in list(self._servers):
            if len(self._servers) <= MAX_SERVERS and sum(sizes.values()) <= MAX_BYTES:
                return
            sizes.pop(key)
            self.drop(key)

    def _end_idle(self) -> None:
        self._idle = None
        for key, used in list(self._used.items()):
            if self._loop.time() - used > self._idle_s(key):
                self.drop(key)
        if self._servers:
            self._idle = self._loop.call_later(IDLE_S / 4, self._end_idle)

    def _idle_s(self, key: Hashable) -> float:
        server = self._servers.get(key)
        return SLOW_IDLE_S if server and server.warmup_s > SLOW_S else IDLE_S
