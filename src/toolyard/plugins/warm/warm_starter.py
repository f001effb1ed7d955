"""Warm starts where possible, cold ones elsewhere: never later, never with another result.

The first call of a launch starts cold and makes what the next ones use: a fork server for Python, a standby for Node
and for Python that is unfit for forking. A launch is what it is by its command, folder, environment, limits and
version, and by which variables a call adds: when one of them changes, what was made for it before ends.
"""

from collections.abc import Hashable, Mapping
from dataclasses import replace

from toolyard import process_numbers
from toolyard.plugins.children import Children
from toolyard.plugins.cold_starter import ColdStarter
from toolyard.plugins.launch import ChildProcess, Launch, Starter
from toolyard.plugins.warm.fork_servers import ForkServers
from toolyard.plugins.warm.standby_pool import StandbyPool
from toolyard.plugins.warm.warm_command import FOLDER, Interpreter, parse_warm_command

_MAX_LAUNCHES = 1024


class WarmStarter:
    """The starter of one event loop. ``close`` it before ``children``."""

    def __init__(self, children: Children, cold: ColdStarter, *, enabled: bool = True) -> None:
        self._children = children
        self.cold: Starter = cold
        self._enabled = enabled and process_numbers.AVAILABLE
        self._pools: tuple[ForkServers, StandbyPool] | None = None
        self._current: dict[Hashable, Hashable] = {}  # command and folder -> the launch it is now

    @property
    def servers(self) -> ForkServers:
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

    def _parts(self) -> tuple[ForkServers, StandbyPool]:
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
