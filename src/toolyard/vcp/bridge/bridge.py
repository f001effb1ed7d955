"""The bridge of an installation: its process is started when it is needed, and again after a crash.

It runs what its owner has switched on and lets run: nothing else is loaded. When that changes, or the code of it, the
process ends as soon as its calls have, and the next call starts another one. After a crash it waits as MCP servers do
(``server_health``): 1, 2, 4, ... 60 s, and after five crashes in a minute until something of its plugins changes.

An installation has one host (``vcp.ownership``): two would run its timers twice, and write its files at the same time.
"""

import asyncio
import contextlib
import logging
import math
import secrets
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from toolyard.confinement.level import measure_confinement
from toolyard.errors import UsageError
from toolyard.message import Message, strip_period
from toolyard.plugins.mcp.server_health import MAX_CRASHES, WITHIN_S, Backoff, ServerLog
from toolyard.plugins.package.plugin import Plugin
from toolyard.plugins.plugin_host import PluginHost
from toolyard.protocol.access import AccessChoice, ConfinementLevel
from toolyard.protocol.envelope import Failure, Reason
from toolyard.protocol.json import Json
from toolyard.protocol.manifests.manifest import PluginType
from toolyard.vcp.bridge.connection import AnswerAsk, BridgeError, Connection, HostServices, Inventory, TakePush
from toolyard.vcp.bridge.launch import NAME, BridgeHost, build_launch
from toolyard.vcp.ownership import own_installation

if TYPE_CHECKING:
    from toolyard.plugins.process.launch import Launch

_HAND_OVER_S = 30.0  # for the calls of a process that is to be replaced
_LOOK_S = 2.0  # between two looks at what is switched on, and at the placeholders
AT_ONCE: Final = 32  # calls in the process
_ON_MESSAGES = (PluginType.MESSAGE_PREPROCESSOR, PluginType.HYBRID_SERVICE)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class BridgeContext:
    """The facts and services of the host that the bridge needs."""

    root: Path  # of the installation
    beside: bool  # VCPToolBox itself runs there
    home: Path
    environ: Mapping[str, str] = field(repr=False)
    port: int  # of this host
    plugins: Callable[[], PluginHost]
    monotonic: Callable[[], float]
    answer: AnswerAsk
    push: TakePush
    keep_secret: Callable[[Iterable[str]], None]


class Bridge:
    """The bridge of one event loop; questions may be asked before there is one."""

    def __init__(self, context: BridgeContext) -> None:
        self._context = context
        self.key = secrets.token_urlsafe(32)  # of its plugins at this server, for as long as this host runs
        context.keep_secret([self.key])
        self._backoff = Backoff(context.monotonic)
        self._log = ServerLog(context.home, NAME, prefix="")
        self._connection: Connection | None = None
        self._launch: Launch | None = None
        self._seen: Hashable = None  # of the plugins, when the launch was made
        self._opening = asyncio.Lock()
        self.is_owned = False  # by the server around it
        self._owned = contextlib.ExitStack()
        self._closed = False
        self.slots = asyncio.Semaphore(AT_ONCE)
        self.placeholders: Mapping[str, str] = {}  # the values that its plugins give, as of the last look

    def list_plugins(self) -> list[Plugin]:
        """Return the plugins that are switched on and may run in a process that they share."""
        return [
            plugin
            for plugin in self._context.plugins().plugins.all
            if plugin.is_in_process and plugin.may_run and plugin.access is not AccessChoice.STRICT
        ]

    @property
    def inventory(self) -> Inventory | None:
        """The plugins that the running process has loaded; None when none runs."""
        connection = self._connection
        return connection.inventory if connection is not None and not connection.ended.done() else None

    @property
    def pid(self) -> int | None:
        connection = self._connection
        return connection.pid if connection is not None and not connection.ended.done() else None

    @property
    def level(self) -> ConfinementLevel:
        """The confinement level of the process that was started last."""
        return measure_confinement(self._launch.profile if self._launch else None).level

    async def connect(self) -> Connection:
        """Return a process with what is switched on now. Raises Failure."""
        host, connection = self._context.plugins(), self._connection
        seen = (host.plugins.version, host.policy)
        if connection is not None and seen == self._seen and not connection.ended.done():
            return connection
        async with self._opening:
            plugins = self.list_plugins()
            if not plugins:
                message = Message("No plugin that lives in VCPToolBox's process is switched on.")
                raise Failure(Reason.DENIED, message)
            launch = build_launch(self._build_host(), plugins)
            connection = self._connection
            if connection is not None and (connection.ended.done() or launch != self._launch):
                await self._replace(connection, has_changed=launch != self._launch)
            if self._connection is None:
                self._connection = await self._open(launch, plugins)
            self._launch, self._seen = launch, seen
            return self._connection

    async def preprocess(self, choose: Callable[[Sequence[str]], Sequence[str]], messages: list[Json]) -> list[Json]:
        """Return messages as preprocessors leave them; ``choose`` takes those to run from all, in their order.

        Nothing is started where none is switched on. Raises Failure or BridgeError.
        """
        if not any(plugin.manifest and plugin.manifest.type in _ON_MESSAGES for plugin in self.list_plugins()):
            return messages
        connection = await self.connect()
        names = choose(connection.inventory.preprocessors)
        return await connection.preprocess(names, messages, {}) if names else messages

    async def run(self) -> None:
        """Keep it running while something is switched on, until cancelled: services work without any call."""
        told, known = "", None
        while not self._closed:
            try:
                if self.list_plugins():
                    connection = await self.connect()
                    if connection is not known:
                        known = connection
                        _log_problems(connection.inventory)
                    values = await connection.list_placeholders()
                    self.placeholders = {name: value for name, value in values.items() if isinstance(value, str)}
                elif self._connection is not None:
                    await self._stop_unused()
                told = ""
            except (Failure, BridgeError) as error:
                text = error.message if isinstance(error, Failure) else str(error)
                if text != told:  # once for each reason, not once for each try
                    _log.warning("VCPToolBox's plugins do not run: %s", text)
                told = text
            await asyncio.sleep(_LOOK_S)

    async def _stop_unused(self) -> None:
        async with self._opening:
            if self._connection is not None and not self.list_plugins():
                await self._replace(self._connection, has_changed=True)
                self.placeholders = {}

    async def close(self) -> None:
        """Stop it; bounded."""
        self._closed = True
        async with self._opening:
            if self._connection is not None:
                await self._connection.close()
            self._owned.close()

    async def _replace(self, connection: Connection, *, has_changed: bool) -> None:
        """Let go of a process that has ended, or is to end because something of it has changed."""
        if connection.has_crashed:
            self._backoff.note_crash()
        if has_changed:
            self._backoff.reset()
            if not connection.ended.done():
                waits = [asyncio.ensure_future(connection.idle.wait()), connection.ended]
                await asyncio.wait(waits, timeout=_HAND_OVER_S, return_when=asyncio.FIRST_COMPLETED)
                waits[0].cancel()
        await connection.close()
        self._connection = None
        self._owned.close()

    async def _open(self, launch: "Launch", plugins: Sequence[Plugin]) -> Connection:
        if self._closed:
            raise Failure(Reason.CANCELLED, Message("This Toolyard is closing."))
        self._require_startable()
        await asyncio.to_thread(self._own)
        host = self._context.plugins()
        self._log.clear_last_lines()
        try:
            child = await host.starter.spawn(launch, {})
            connection = Connection(
                child, host.children, HostServices(self._context.answer, self._context.push, self._log.add)
            )
            await connection.start([plugin.folder.name for plugin in plugins])
        except Failure as failure:
            self._owned.close()
            self._backoff.note_crash()
            raise self._add_last_lines(failure) from failure
        except BaseException:
            self._owned.close()
            raise
        return connection

    def _own(self) -> None:
        """Own the installation while the process runs, unless the server around it does. Raises Failure."""
        if self._context.beside:
            message = Message("VCPToolBox itself runs this plugin: Toolyard was started beside it.")
            raise Failure(Reason.BUSY, message, hint=Message("Call it there, or stop VCPToolBox and start anew."))
        if self.is_owned:
            return
        try:
            self._owned.enter_context(own_installation(self._context.root, is_shared=False))
        except UsageError as error:
            message = Message("VCPToolBox's plugins cannot run here: {why}.", why=strip_period(str(error)))
            raise Failure(Reason.BUSY, message) from error

    def _build_host(self) -> BridgeHost:
        context, host = self._context, self._context.plugins()
        return BridgeHost(
            root=context.root,
            home=context.home,
            environ=context.environ,
            policy=host.policy,
            port=context.port,
            key=self.key,
            network=host.network,
            add_packages=host.add_packages,
        )

    def _require_startable(self) -> None:
        if self._backoff.is_failed:
            message = Message(
                "The process of VCPToolBox's plugins has crashed {max_crashes} times in {within_s:g} s and is not "
                "started again. It last said: {output}",
                max_crashes=MAX_CRASHES,
                within_s=WITHIN_S,
                output=self._log.last_lines or Message("nothing"),
            )
            hint = Message(
                "Its owner finds more in {log}; a change of its plugins starts it again.", log=self._log.path
            )
            raise Failure(Reason.START_FAILED, message, hint=hint)
        if (wait_s := self._backoff.wait_s) > 0:
            message = Message(
                "The process of VCPToolBox's plugins has just crashed; it is started again in {wait_s:.1f} s.",
                wait_s=wait_s,
            )
            after = math.ceil(wait_s)
            raise Failure(Reason.BUSY, message, hint=Message("Try again then."), context={"retry_after_s": after})

    def _add_last_lines(self, failure: Failure) -> Failure:
        message = failure.message
        if self._log.last_lines:
            message = Message("{message} It said: {output}", message=message, output=self._log.last_lines)
        hint = Message("Its owner finds more in {log}.", log=self._log.path)
        return Failure(failure.reason or Reason.START_FAILED, message, hint=hint)


def _log_problems(inventory: Inventory) -> None:
    for name, why in inventory.problems.items():
        _log.warning("VCPToolBox could not load %s: %s", name, why.split("\n")[0])
