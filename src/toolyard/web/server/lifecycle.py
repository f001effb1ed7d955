"""The server: everything that it opens, from its socket to its background work, and how it starts and stops.

A confirmed restore is applied before anything else of the home is read. Background work is restarted when it fails, and
awaited with a time limit when the server stops.
"""

import asyncio
import gc
import logging
import socket
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, Final

from toolyard.config import Config
from toolyard.engine.clock import Clock, SystemClock
from toolyard.engine.ownership import OwnerLock
from toolyard.gateway.media_links import MediaLinks
from toolyard.gateway.protocols.responses.response_turns import ResponseTurns
from toolyard.hosts.open_yard import open_yard
from toolyard.mcp.mount import McpMount
from toolyard.plugins.long_work.static_plugins import StaticValues
from toolyard.plugins.package.environment import PublishKeys
from toolyard.plugins.package.folder_watch import watch_folders
from toolyard.process_memory import is_short_of_memory
from toolyard.protocol.plugin_answers.plugin_output import read_static_value
from toolyard.protocol.store import NewEvent
from toolyard.storage.backup_restore import apply_scheduled
from toolyard.storage.state_file import STATE
from toolyard.threads import use_started_pool
from toolyard.vcp.installation import Installation, read_installation
from toolyard.vcp.ownership import own_installation
from toolyard.web.app import AppParts, make_app
from toolyard.web.feed import Feed
from toolyard.web.idempotency import IdempotentRequests
from toolyard.web.routes.admin import sessions
from toolyard.web.routes.calls import backend_stream
from toolyard.web.routes.calls.events import Pushes
from toolyard.web.routes.plugins import mcp_servers, published, vcp_admin, vcp_plugins
from toolyard.web.routing import Routes
from toolyard.web.security.access import Access
from toolyard.web.security.keys import Keys, make_installation_keys, make_process_key
from toolyard.web.security.owner_key import make_owner_key, read_owner_key
from toolyard.web.security.request_body import BODY_S
from toolyard.web.security.request_head import HostPolicy
from toolyard.web.security.scope import Principal
from toolyard.web.server.certificate import Tls, TlsOptions, choose_tls
from toolyard.web.server.health import GRACE_S, Drain, StateCheck
from toolyard.web.server.listener import (
    EXIT_S,
    HttpsOnly,
    Listener,
    is_loopback,
    is_wildcard,
    list_lan_addresses,
    local_url,
    open_socket,
    raise_file_limit,
    require_safe_address,
)
from toolyard.web.server.logs import JsonFormatter
from toolyard.web.server.metrics import Metrics
from toolyard.web.server.running_server import announce, withdraw
from toolyard.web.server.websocket_client import PING_S
from toolyard.web.settings.live_settings import ListenAddress, SettingsReloader, map_appliers
from toolyard.web.settings.settings_change import reload_config
from toolyard.yard.chat import make_chat
from toolyard.yard.plugin_source import HostOptions

_log = logging.getLogger("toolyard.web")
_SWEEP_S = 3600.0
_RECOVER_S = 30.0
_GC_THRESHOLDS = (3_000, 4, 50)  # larger collections would take so long that every chat feels it
MAX_PAUSE_S: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """The start options of a server."""

    host: str = "127.0.0.1"
    port: int | None = None  # None: the setting; 0: any free port
    allow_remote: bool = False
    safe: bool = False  # without any plugins
    version: str = "unknown"
    grace_s: float = GRACE_S
    ping_s: float = PING_S
    body_s: float = BODY_S
    database: str | None = None  # shared by several hosts
    tls: TlsOptions = field(default_factory=TlsOptions)  # none given: the settings
    listening: socket.socket | None = None  # passed by the service manager, with its host and port above
    clock: Clock = field(default_factory=SystemClock)


class Server:
    """A server with ``start`` and ``stop``. Belongs to one event loop."""

    def __init__(self, config: Config, options: ServerOptions = ServerOptions()) -> None:  # noqa: B008 it is frozen
        self.config, self.options = config, options
        require_safe_address(options.host, read_owner_key(config.home), allow_remote=options.allow_remote)
        self._lock = OwnerLock.acquire(config.home)
        try:
            self.config = config = apply_pending_restore(config, options.clock)
            stored = read_owner_key(
                config.home
            )  # only the owner of a home makes its key, and a backup may bring another
            require_safe_address(options.host, stored, allow_remote=options.allow_remote)
            self.is_first_start = stored is None
            self.key = stored or make_owner_key(config.home)
        except BaseException:
            self._lock.release()
            raise
        self.url = ""
        self.tls: Tls | None = None
        self.state_check = StateCheck(None if self._is_shared else config.home / STATE)
        self.drain = Drain()
        self.statics: StaticValues | None = None
        self._background: list[asyncio.Task[None]] = []
        self._ended = asyncio.Event()
        self._plugins_read = asyncio.Event()
        self._opened = AsyncExitStack()  # the Yard, and its membership in a shared database

    async def start(self) -> None:
        """Start listening; requests are answered when this returns."""
        options = self.options
        raise_file_limit()
        use_started_pool()
        try:
            self.installation = self._take_installation()
            self.tls = self._load_tls()
            listening = options.listening or open_socket(
                options.host, self.config.settings.port if options.port is None else options.port
            )
        except BaseException:
            self._lock.release()
            raise
        address = self.address = self._find_address(listening.getsockname()[1])
        self.url = local_url(address.host, address.port, address.scheme)
        self.internal_url = local_url(address.host, address.port)  # plugins and commands need not know a certificate
        try:
            await self.state_check.require_sound()
            await self._assemble()
            await self.yard.vcp.take_approvals()
            await self.feed.start()
            reloading = self._reloading = self._make_reloader()
            self._app = make_app(self.yard, self._make_parts(reloading))
            self._listener = self._make_listener()
            self._serving = asyncio.create_task(self._listener.serve([listening]))
            await self._listener.ready.wait()
            announce(self.config.home, self.internal_url, self.config.project, self.config.vcp)
        except BaseException:
            listening.close()
            await self._opened.aclose()
            self._lock.release()
            raise
        if self.pushes.is_open:
            self._start_background(self.pushes.run, "pushes")  # before the events, to see the first of them
        self._start_background(self.feed.run, "events")
        self._start_background(self._maintain, "recovery")
        self._start_background(self.state_check.run, "state check")
        self._start_background(self.yard.state.schedules.serve, "schedules")
        self._start_background(reloading.run, "settings")
        if self.tls is not None:
            self._start_background(self.tls.watch, "certificate")
        if (bridge := self.yard.vcp.bridge) is not None and not options.safe and not self.config.beside:
            self._start_background(bridge.run, "plugins of VCPToolBox")
        if not options.safe:
            self._start_background(self._announce_plugins, "plugin events")
            self._start_background(self._watch_plugins, "plugins")
        if is_short_of_memory():
            _log.warning("the limit of address space (ulimit -v) leaves no memory for calls: they are refused")
        gc.freeze()  # a full collection, which stops every chat, skips it (bench row "freeze in the server")
        gc.set_threshold(*_GC_THRESHOLDS)

    @property
    def _is_shared(self) -> bool:
        return bool(self.options.database or self.config.settings.database)

    @property
    def is_remote(self) -> bool:
        """True when other machines can reach it."""
        return not is_loopback(self.options.host)

    @property
    def remote_url(self) -> str:
        """The URL for other machines, such as a phone; empty when they cannot reach it."""
        return self.address.remote_url(self._reloading.config)

    def make_login_link(self, base: str = "", principal: Principal | None = None) -> str:
        """Return a URL that signs a browser in once, as the owner or with the key of ``principal``.

        ``base`` is another URL of this server.
        """
        base = base or self._reloading.config.settings.public_url or self.url
        return f"{base}/login?link={self.access.make_login_link(principal)}"

    async def stop(self, hurry: asyncio.Event | None = None) -> None:
        """Shut down: running work has ``grace_s`` to end, unless ``hurry`` is set. A second call does nothing."""
        if self._ended.is_set():
            return
        self._ended.set()
        if self.options.listening is None:
            self.drain.refuses_work = True
        else:
            await self._listener.hand_over()
        self.drain.is_ending = True
        await wait_until_done(self._wait_idle(), self.options.grace_s, hurry)
        await self._cancel_remaining()
        for work in self._background:
            work.cancel()
        await asyncio.wait(self._background)
        if self.statics is not None:
            await self.statics.close()
        await self._mcp.close()
        self._listener.should_exit = True
        await self._serving
        await self._opened.aclose()
        withdraw(self.config.home)
        self._lock.release()

    def _take_installation(self) -> Installation | None:
        """Return the VCPToolBox installation that is used in place, for this server alone. Raises ToolyardError."""
        if self.config.vcp is None:
            return None
        installation = read_installation(self.config.vcp)
        self._opened.enter_context(own_installation(installation.root, is_shared=self.config.beside))
        return installation

    def _load_tls(self) -> Tls | None:
        chosen = choose_tls(self.config, self.options.tls)
        return Tls(self.config, chosen, self.options.host, self.options.clock.now) if chosen else None

    def _find_address(self, port: int) -> ListenAddress:
        host = self.options.host
        lan: tuple[str, ...] = (host,) if self.is_remote else ()
        if is_wildcard(host):
            lan = tuple(address for address in list_lan_addresses() if host == "::" or ":" not in address)
        return ListenAddress(host, port, "http" if self.tls is None else "https", lan)

    def _make_listener(self) -> Listener:
        if self.tls is None:
            return Listener(self._app, ping_s=self.options.ping_s)
        app = HttpsOnly(self._app, sends_hsts=not self.tls.is_self_signed)
        return Listener(app, ping_s=self.options.ping_s, context=self.tls.context)

    async def _assemble(self) -> None:
        clock = self.options.clock
        outside = HostOptions(self._get_callback_base, url=self.internal_url, outlives=True, safe=self.options.safe)
        opened = open_yard(self.config, self.options.database, outside=outside, clock=clock)
        self.yard = await self._opened.enter_async_context(opened)
        there = self.installation
        self.yard.mask.add([self.key, *([there.key, there.vcp_key, *(there.panel or ())[1:]] if there else [])])
        self.publish_keys = PublishKeys(self.config.home)
        self.yard.mask.add_for_logs(self.publish_keys.read_or_make().values())
        more = make_installation_keys(there.key, there.vcp_key) if there else []
        if (bridge := self.yard.vcp.bridge) is not None:
            bridge.is_owned = True
            more.append(make_process_key(bridge.key))
        keys = Keys(self.config.home, self.key, clock.monotonic, more=more)
        self.access = Access(keys, self.config.home, clock, panel=there.panel if there else None)
        self.idempotent = IdempotentRequests(self.yard.state.idempotency, self.drain, self.config.own_command)
        self.feed = Feed(self.yard.state.store, clock)
        self.pushes = Pushes(self.yard, self.feed, is_open=self.config.settings.vcp_channels or there is not None)
        if self.pushes.is_open and not self.options.safe:
            self.yard.nodes.open(changed=self._plugins_read.set)
        self.links = MediaLinks(self.yard.state.media, self.address.public_url(self.config), clock.now)
        self.chat = make_chat(
            self.yard, clock=clock, static=self._static_placeholders, printed=self._static_outputs,
            mask=self.yard.mask, links=self.links,
        )  # fmt: skip
        self.responses = ResponseTurns(self.chat, self.yard.state.responses, self.yard.state.approvals, clock)
        self._mcp = McpMount(
            self.yard,
            mcp_servers.get_caller,
            mcp_servers.can_change_rules,
            self._is_ending,
            lambda: self.links.public_url,
        )

    def _make_parts(self, reloading: SettingsReloader) -> AppParts:
        clock = self.options.clock
        return AppParts(
            version=self.options.version,
            clock=clock,
            access=self.access,
            policy=self.address.make_host_policy(self.config),
            feed=self.feed,
            pushes=self.pushes,
            drain=self.drain,
            idempotent=self.idempotent,
            metrics=Metrics(),
            reloading=reloading,
            cookie=f"toolyard_{self.address.port}",  # browsers send cookies to every port of a machine
            body_s=self.options.body_s,
            chat=self.chat,
            responses=self.responses,
            links=self.links,
            state_check=self.state_check,
            more=(
                published.router(self.yard, self.access, self.publish_keys, self.installation),
                backend_stream.router(self.yard, clock, self.access, self._is_ending),
                mcp_servers.mount_router(self._mcp),
                sessions.login_links_router(self.make_login_link, lambda: self.remote_url, self.access.keys),
                *self._make_vcp_routes(),
            ),
        )

    def _make_vcp_routes(self) -> Iterator[Routes]:
        if self.installation is not None:
            log = vcp_admin.RecentLog(JsonFormatter(self.yard.mask.log_text))
            logger = logging.getLogger("toolyard")
            logger.addHandler(log)
            self._opened.callback(logger.removeHandler, log)
            yield vcp_admin.router(self.yard, self.installation.root, log)
        if (bridge := self.yard.vcp.bridge) is not None:
            yield vcp_plugins.router(bridge, lambda: self.links.public_url)

    def _make_reloader(self) -> SettingsReloader:
        def set_policy(policy: HostPolicy) -> None:
            self._app.policy = policy

        def refresh() -> None:
            if self.statics is not None:
                self.statics.refresh()

        appliers = map_appliers(
            self.yard, self.chat, self.options.clock, self.address, self.links, set_policy=set_policy, refresh=refresh
        )
        return SettingsReloader(self.config, appliers)

    async def _wait_idle(self) -> None:
        await self.drain.wait_idle()
        await self.idempotent.wait_idle()
        await self.chat.wait_for_keyed()
        await self.yard.state.schedules.drain()

    async def _cancel_remaining(self) -> None:
        """Cancel the work that outlasted the grace period; it is still answered."""
        await self.idempotent.close()
        await self.chat.stop_running(EXIT_S)
        await self.responses.close()
        await self.chat.close()
        await self.yard.calls.stop()
        await wait_until_done(self._wait_idle(), EXIT_S)

    def _is_ending(self) -> bool:
        return self.drain.is_ending

    def _static_placeholders(self) -> dict[str, str]:
        values = {name: read_static_value(text) for name, text in self._list_values_of_nodes().items()}
        return {**values, **self._list_values_of_bridge(), **(self.statics.placeholders() if self.statics else {})}

    def _static_outputs(self) -> dict[str, str]:
        own = self.statics.outputs() if self.statics else {}
        return {**self._list_values_of_nodes(), **self._list_values_of_bridge(), **own}

    def _list_values_of_nodes(self) -> dict[str, str]:
        return self.yard.nodes.nodes.placeholders() if self.yard.nodes.nodes is not None else {}

    def _list_values_of_bridge(self) -> Mapping[str, str]:
        return self.yard.vcp.bridge.placeholders if self.yard.vcp.bridge is not None else {}

    async def _get_callback_base(self) -> str:
        return f"{self.internal_url}/plugin-callback/~"

    def _start_background(self, work: Callable[[], Awaitable[Any]], name: str) -> None:
        self._background.append(asyncio.create_task(run_restarting(work, name), name=f"toolyard-{name}"))

    async def _maintain(self) -> None:
        """Periodically recover work of dead processes and remove expired records."""
        passed, fits = _SWEEP_S, True
        while True:
            if not self._is_shared:  # hosts that share a database recover each other by their leases
                await self.yard.plugins.adopt((await self.yard.state.recover()).left)
            await self.responses.resume(self.yard.state.is_alive)  # after their turns and calls
            if passed >= _SWEEP_S or (fits and await self.yard.state.is_over_size_limit()):
                passed = 0.0
                fits = (await self.yard.state.sweep()).fits  # if not, an early sweep would find nothing to remove
            await asyncio.sleep(_RECOVER_S)
            passed += _RECOVER_S

    async def _watch_plugins(self) -> None:
        """Discover plugins, refresh static values, and watch the plugin folders."""
        if self.statics is not None:
            await self.statics.close()
        plugins = self.yard.plugins.plugins
        statics = self.statics = StaticValues(
            self.yard.plugins.host,
            self.yard.state.store,
            self.options.clock.now,
            runs_timers=not self.config.beside,
        )
        await statics.start()

        def changed() -> None:
            plugins.refresh()  # others may have refreshed before, so its result does not matter
            statics.refresh()
            self._plugins_read.set()

        await watch_folders(plugins.watched_folders, changed, stop=self._ended)

    async def _announce_plugins(self) -> None:
        """Send an event each time plugins have changed, whoever noticed it, so that open pages show them."""
        plugins = self.yard.plugins.plugins
        announced = (plugins.version, self.yard.nodes.version())
        while True:
            await self._plugins_read.wait()
            self._plugins_read.clear()
            if (version := (plugins.version, self.yard.nodes.version())) != announced:
                event = NewEvent(type="plugin.changed", at=self.options.clock.now().timestamp())
                await self.yard.state.store.commit([], [event], lasting=False)
                announced = version


async def run_restarting(work: Callable[[], Awaitable[Any]], name: str, *, pause_s: float = 1.0) -> None:
    """Run ``work`` until it returns, restarting it after a failure with a backoff of 1, 2, 4, ... up to 60 s."""
    while True:
        try:
            await work()
        except Exception:  # noqa: BLE001 a background failure must not end the server
            _log.exception("%s failed and restarts in %g s", name, pause_s)
        else:
            return
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, MAX_PAUSE_S)


async def wait_until_done(work: Awaitable[None], seconds: float, hurry: asyncio.Event | None = None) -> None:
    """Wait until ``work`` is done, ``seconds`` have passed, or ``hurry`` is set."""
    waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(work)]
    if hurry is not None:
        waits.append(asyncio.ensure_future(hurry.wait()))
    await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()
    await asyncio.gather(*waits, return_exceptions=True)


def apply_pending_restore(config: Config, clock: Clock) -> Config:
    """Apply a pending restore and return the settings, reloaded if there was one. Raises StorageError, ConfigError."""
    aside = config.home / f"before-restore-{clock.now().strftime('%Y%m%d-%H%M%S')}"
    contents = apply_scheduled(config.home, aside)
    if contents is None:
        return config
    _log.warning("a backup was restored: the previous files are in %s", contents.aside)
    return reload_config(config)
