"""A server: a Yard that others reach, from its first breath to its last.

It is ready as soon as it listens; plugins are looked for after that, beside the event loop's other work. At its end it
takes no new work but callbacks, waits ``GRACE_S`` for what runs, cancels the rest, and leaves every row settled.
"""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from toolyard.config import Config
from toolyard.engine.clock import Clock, SystemClock
from toolyard.engine.ownership import OwnerLock
from toolyard.gateway.assemble import make_chat
from toolyard.gateway.media_link import MediaLinks
from toolyard.hosts.yard import open_yard
from toolyard.mcp.mount import McpMount
from toolyard.plugin_source import Outside
from toolyard.plugins.folder_watch import watch_folders
from toolyard.plugins.publish_keys import PublishKeys
from toolyard.plugins.static_plugins import StaticValues
from toolyard.storage.state_file import STATE
from toolyard.web.access import Access
from toolyard.web.app import Parts, make_app
from toolyard.web.background import kept, until
from toolyard.web.bodies import BODY_S
from toolyard.web.brought_back import brought_back
from toolyard.web.drain import GRACE_S, Drain
from toolyard.web.feed import Feed
from toolyard.web.head import Neighbourhood
from toolyard.web.idempotent_runs import IdempotentRuns
from toolyard.web.keys import Keys, make_key, stored_key
from toolyard.web.listening import EXIT_S, Listener, is_loopback, listen, make_room, require_safe, url_of
from toolyard.web.live import Place, live
from toolyard.web.metrics import Metrics
from toolyard.web.presence import announce, withdraw
from toolyard.web.pushes import Pushes
from toolyard.web.reloading import Reloading
from toolyard.web.routes import backend, mcp, published
from toolyard.web.sockets import PING_S
from toolyard.web.state_check import StateCheck

_SWEEP_S = 3600.0
_RECOVER_S = 30.0
_GARBAGE = (3_000, 4, 50)  # more of it at once would take so long that every chat feels it


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a server is started."""

    host: str = "127.0.0.1"
    port: int | None = None  # None: as the settings say; 0: any that is free
    allow_remote: bool = False
    safe: bool = False  # without any plugins
    version: str = "unknown"
    grace_s: float = GRACE_S
    ping_s: float = PING_S
    body_s: float = BODY_S
    database: str | None = None  # of many hosts
    clock: Clock = field(default_factory=SystemClock)


class Server:
    """``start`` it, and ``stop`` it. Belongs to one event loop."""

    def __init__(self, config: Config, options: Options = Options()) -> None:  # noqa: B008 it is frozen
        self.config, self.options = config, options
        require_safe(options.host, stored_key(config.home), allow_remote=options.allow_remote)
        self._lock = OwnerLock.acquire(config.home)
        try:
            self.config = config = brought_back(config, options.clock)
            stored = stored_key(config.home)  # only the owner of a home makes its key, and a backup may bring another
            require_safe(options.host, stored, allow_remote=options.allow_remote)
            self.is_first_start = stored is None
            self.key = stored or make_key(config.home)
        except BaseException:
            self._lock.release()
            raise
        self.url = ""
        self.state_check = StateCheck(None if self._is_one_of_many else config.home / STATE)
        self.drain = Drain()
        self.statics: StaticValues | None = None
        self._works: list[asyncio.Task[None]] = []
        self._ended = asyncio.Event()
        self._opened = AsyncExitStack()  # the Yard, and what it needs to be one of many

    async def start(self) -> None:
        """Listen; when this returns, requests are answered."""
        options = self.options
        make_room()
        try:
            listening = listen(options.host, self.config.settings.port if options.port is None else options.port)
        except BaseException:
            self._lock.release()
            raise
        port = listening.getsockname()[1]
        self.url = url_of(options.host, port)
        try:
            await self.state_check.require_sound()
            await self._assemble(Place(options.host, port))
            await self.feed.start()
            reloading = self._reloading(port)
            self._edge = make_app(self.yard, self._parts(port, reloading))
            self._listener = Listener(self._edge, ping_s=options.ping_s)
            self._serving = asyncio.create_task(self._listener.serve([listening]))
            await self._listener.ready.wait()
            announce(self.config.home, self.url, self.config.project)
        except BaseException:
            listening.close()
            await self._opened.aclose()
            self._lock.release()
            raise
        if self.pushes.is_open:
            self._begin(self.pushes.run, "pushes")  # before the events: it begins with the first of them
        self._begin(self.feed.run, "events")
        self._begin(self._look_after, "recovery")
        self._begin(self.state_check.run, "state check")
        self._begin(self.yard.schedules.serve, "schedules")
        self._begin(reloading.run, "settings")
        if not options.safe:
            self._begin(self._keep_plugins, "plugins")
        gc.freeze()  # what is loaded by now stays: looking through it again and again would hold up every chat
        gc.set_threshold(*_GARBAGE)

    @property
    def _is_one_of_many(self) -> bool:
        return bool(self.options.database or self.config.settings.database)

    @property
    def is_remote(self) -> bool:
        """Whether other machines reach it."""
        return not is_loopback(self.options.host)

    def link(self) -> str:
        """An address that signs a browser in once."""
        return f"{self.url}/login?link={self.access.link()}"

    async def stop(self, hurry: asyncio.Event | None = None) -> None:
        """End: no new work from now on; what runs has the grace to end, unless ``hurry`` is set. Twice is harmless."""
        if self._ended.is_set():
            return
        self._ended.set()
        self.drain.ending = True
        await until(self._quiet(), self.options.grace_s, hurry)
        await self._cancel_the_rest()
        for work in self._works:
            work.cancel()
        await asyncio.wait(self._works)
        if self.statics is not None:
            await self.statics.close()
        await self._mcp.close()
        self._listener.should_exit = True
        await self._serving
        await self._opened.aclose()
        withdraw(self.config.home)
        self._lock.release()

    async def _assemble(self, place: Place) -> None:
        clock = self.options.clock
        outside = Outside(self._callback_base, url=self.url, outlives=True, safe=self.options.safe)
        opened = open_yard(self.config, self.options.database, outside=outside, clock=clock)
        self.yard = await self._opened.enter_async_context(opened)
        self.yard.mask.add([self.key])
        self.publish_keys = PublishKeys(self.config.home)
        self.yard.mask.add_for_logs(self.publish_keys.read_or_make().values())
        self.access = Access(Keys(self.config.home, self.key, clock.monotonic), self.config.home, clock)
        self.runs = IdempotentRuns(self.yard.idempotency, self.drain)
        self.feed = Feed(self.yard.store, clock)
        self.pushes = Pushes(self.yard, self.feed, is_open=self.config.settings.vcp_channels)
        self.links = MediaLinks(self.yard.media, place.public_url(self.config), clock.now)
        self.chat = make_chat(self.yard, clock=clock, static=self._static, mask=self.yard.mask, links=self.links)
        self._mcp = McpMount(self.yard, mcp.caller_of, mcp.may_rule, self._is_ending, lambda: self.links.public_url)

    def _parts(self, port: int, reloading: Reloading) -> Parts:
        clock = self.options.clock
        return Parts(
            version=self.options.version,
            clock=clock,
            access=self.access,
            near=Place(self.options.host, port).near(self.config),
            feed=self.feed,
            pushes=self.pushes,
            drain=self.drain,
            runs=self.runs,
            metrics=Metrics(),
            reloading=reloading,
            cookie=f"toolyard_{port}",  # browsers send cookies to every port of a machine
            body_s=self.options.body_s,
            chat=self.chat,
            links=self.links,
            state_check=self.state_check,
            more=(
                published.router(self.yard, self.access, self.publish_keys),
                backend.router(self.yard, clock, self.access, self._is_ending),
                mcp.router(self._mcp),
            ),
        )

    def _reloading(self, port: int) -> Reloading:
        def move(near: Neighbourhood) -> None:
            self._edge.near = near

        def refresh() -> None:
            if self.statics is not None:
                self.statics.refresh()

        place = Place(self.options.host, port)
        takes = live(self.yard, self.chat, self.options.clock, place, self.links, move=move, refresh=refresh)
        return Reloading(self.config, takes)

    async def _quiet(self) -> None:
        await self.drain.idle()
        await self.runs.idle()
        await self.yard.schedules.drain()

    async def _cancel_the_rest(self) -> None:
        """What the grace was too short for ends as cancelled, and is answered."""
        await self.runs.close()
        await self.chat.close()
        await self.yard.stop_calls()
        await until(self._quiet(), EXIT_S)

    def _is_ending(self) -> bool:
        return self.drain.ending

    def _static(self) -> dict[str, str]:
        return self.statics.placeholders() if self.statics else {}

    async def _callback_base(self) -> str:
        return f"{self.url}/plugin-callback/~"

    def _begin(self, work: Callable[[], Awaitable[Any]], name: str) -> None:
        self._works.append(asyncio.create_task(kept(work, name), name=f"toolyard-{name}"))

    async def _look_after(self) -> None:
        """Settle what dead processes left, and forget what was kept long enough, now and again."""
        passed, fits = _SWEEP_S, True
        while True:
            if not self._is_one_of_many:  # else the hosts do it together, by their leases
                await self.yard.plugins.adopt((await self.yard.recover()).left)
            if passed >= _SWEEP_S or (fits and await self.yard.has_outgrown_its_limit()):
                passed = 0.0
                fits = (await self.yard.sweep()).fits  # if not, an early sweep would find nothing to forget
            await asyncio.sleep(_RECOVER_S)
            passed += _RECOVER_S

    async def _keep_plugins(self) -> None:
        """Find the plugins, keep the values of static ones, and see changes in their folders."""
        if self.statics is not None:
            await self.statics.close()
        plugins = self.yard.plugins.plugins
        statics = self.statics = StaticValues(self.yard.plugins.host, self.yard.store, self.options.clock.now)
        await statics.start()

        def changed() -> None:
            plugins.refresh()  # others may have done so before, so what it says does not count
            statics.refresh()

        await watch_folders(plugins.watched_folders, changed, stop=self._ended)
