"""The bridge of an installation: its process is started when it is needed, and again after a crash.

It runs what its owner has switched on and lets run: nothing else is loaded. When that changes, or the code of it, the
process ends as soon as its calls have, and the next call starts another one. After a crash it waits as MCP servers do
(``server_health``): 1, 2, 4, ... 60 s, and after five crashes in a minute until somebody allows a plugin again.
"""

import asyncio
import math
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from toolyard.message import Message
from toolyard.plugins.mcp.server_health import MAX_CRASHES, WITHIN_S, Backoff, ServerLog
from toolyard.plugins.package.plugin import Plugin
from toolyard.plugins.plugin_host import PluginHost
from toolyard.protocol.envelope import Failure, Reason
from toolyard.vcp.bridge.connection import AnswerAsk, Connection, HostServices, Inventory, TakePush
from toolyard.vcp.bridge.launch import NAME, BridgeHost, build_launch

if TYPE_CHECKING:
    from toolyard.plugins.process.launch import Launch

_HAND_OVER_S: Final = 30.0  # for the calls of a process that is to be replaced
AT_ONCE: Final = 32  # calls in the process
# plugins that search VCPToolBox's knowledge base, which takes seconds and memory to open
_NEED_STORE: Final = frozenset({"RAGDiaryPlugin", "DailyNote", "DailyNoteManager", "LightMemo", "AgentDream"})


@dataclass(frozen=True, slots=True, kw_only=True)
class BridgeContext:
    """The facts and services of the host that the bridge needs."""

    root: Path  # of the installation
    home: Path
    environ: Mapping[str, str] = field(repr=False)
    port: int
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
        self._opening = asyncio.Lock()
        self._closed = False
        self.slots = asyncio.Semaphore(AT_ONCE)
        self.port = context.port
        self.changes = 0  # how often its plugins said that tools or placeholders have changed

    def list_plugins(self) -> list[Plugin]:
        """Return the plugins that are switched on and may run."""
        return [plugin for plugin in self._context.plugins().plugins.all if plugin.is_in_process and plugin.may_run]

    @property
    def inventory(self) -> Inventory | None:
        """What the running process has loaded; None when none runs."""
        connection = self._connection
        return connection.inventory if connection is not None and not connection.ended.done() else None

    @property
    def pid(self) -> int | None:
        connection = self._connection
        return connection.pid if connection is not None and not connection.ended.done() else None

    async def connect(self) -> Connection:
        """Return a process with what is switched on now. Raises Failure."""
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
                self._launch = launch
            return self._connection

    async def close(self) -> None:
        """Stop it; bounded."""
        self._closed = True
        if self._connection is not None:
            await self._connection.close()

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

    async def _open(self, launch: "Launch", plugins: Sequence[Plugin]) -> Connection:
        if self._closed:
            raise Failure(Reason.CANCELLED, Message("This Toolyard is closing."))
        self._require_startable()
        host = self._context.plugins()
        self._log.clear_last_lines()
        child = await host.starter.spawn(launch, {})
        services = HostServices(self._context.answer, self._context.push, self._note_change, self._log.add)
        connection = Connection(child, host.children, services)
        try:
            needs_store = any(plugin.name in _NEED_STORE or _wants_store(plugin) for plugin in plugins)
            await connection.start([plugin.folder.name for plugin in plugins], with_store=needs_store)
        except Failure as failure:
            self._backoff.note_crash()
            raise self._add_last_lines(failure) from failure
        return connection

    def _build_host(self) -> BridgeHost:
        context, host = self._context, self._context.plugins()
        return BridgeHost(
            root=context.root,
            home=context.home,
            environ=context.environ,
            policy=host.policy,
            port=self.port,
            key=self.key,
            network=host.network,
        )

    def _note_change(self) -> None:
        self.changes += 1

    def _require_startable(self) -> None:
        if self._backoff.is_failed:
            message = Message(
                "The process of VCPToolBox's plugins has crashed {max_crashes} times in {within_s:g} s and is not "
                "started again. It last said: {output}",
                max_crashes=MAX_CRASHES,
                within_s=WITHIN_S,
                output=self._log.last_lines or Message("nothing"),
            )
            hint = Message("Its owner finds more in {log}; a change of its plugins starts it again.", log=self._log.path)
            raise Failure(Reason.START_FAILED, message, hint=hint)
        if (wait_s := self._backoff.wait_s) > 0:
            message = Message(
                "The process of VCPToolBox's plugins has just crashed; it is started again in {wait_s:.1f} s.",
                wait_s=wait_s,
            )
            context = {"retry_after_s": math.ceil(wait_s)}
            raise Failure(Reason.BUSY, message, hint=Message("Try again then."), context=context)

    def _add_last_lines(self, failure: Failure) -> Failure:
        message = failure.message
        if self._log.last_lines:
            message = Message("{message} It said: {output}", message=message, output=self._log.last_lines)
        hint = Message("Its owner finds more in {log}.", log=self._log.path)
        return Failure(failure.reason or Reason.START_FAILED, message, hint=hint)


def _wants_store(plugin: Plugin) -> bool:
    return plugin.manifest is not None and plugin.manifest.fields.get("requiresKnowledgeBaseManager") is True
