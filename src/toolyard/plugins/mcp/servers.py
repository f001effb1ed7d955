"""The MCP servers of a Yard: the configured ones, the allowed ones, and the connections to those that run.

A server is started by the first call of one of its tools and stays until ``close``. One that crashes is started again
by the next call, not before its pause is over (R29). Nothing runs that the owner has not allowed as it is now; tools
that a server adds or changes wait for a review, and the others go on.
"""

import asyncio
import math
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from toolyard.dialects.mcp_config import ServerDeclaration
from toolyard.message import Message, join_messages, join_sentences
from toolyard.own_command import FOR_DEFAULT_HOME, OwnCommand
from toolyard.plugins.advice import AccessDenial, find_denial
from toolyard.plugins.mcp.declarations import ConfiguredServer, Declarations, fill_variables
from toolyard.plugins.mcp.definition import ToolDefinition, ToolListing
from toolyard.plugins.mcp.output_check import OutputChecker
from toolyard.plugins.mcp.pins import PendingTools, Pin, Pins, ToolGate, describe_pending, find_pending
from toolyard.plugins.mcp.server_access import effective_server_access, list_server_links
from toolyard.plugins.mcp.server_health import MAX_CRASHES, WITHIN_S, Backoff, ServerLog
from toolyard.plugins.package.config_env import is_secret_name
from toolyard.plugins.package.plugin_access import (
    ConfinementPolicy,
    describe_access,
    describe_links,
    describe_missing_paths,
    list_missing_paths,
)
from toolyard.plugins.package.trust import NO_LINKS
from toolyard.plugins.process.network_services import NetworkServices
from toolyard.protocol.access import ANY_HOST, Access
from toolyard.protocol.envelope import Failure, Reason

if TYPE_CHECKING:
    from toolyard.plugins.mcp.server_connection import Connection
    from toolyard.plugins.process.children import Children
    from toolyard.plugins.process.launch import Starter

AT_ONCE: Final = 8  # calls to one server


class ServerState(StrEnum):
    READY = "ready"  # allowed, and started when it is needed
    RUNNING = "running"
    DISABLED = "disabled"
    NEEDS_REVIEW = "needs_review"
    CHANGED = "changed"  # its command is another one, or some of its tools wait for a review
    FAILED = "failed"  # it crashed too often


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerContext:
    """The facts and services of the host that the servers need."""

    home: Path
    project: Path
    environ: Mapping[str, str] = field(repr=False)
    secret_keys: Collection[str]
    keep_secret: Callable[[Iterable[str]], None]
    monotonic: Callable[[], float]
    policy: ConfinementPolicy
    own_command: OwnCommand = FOR_DEFAULT_HOME
    network: NetworkServices = field(default_factory=NetworkServices)
    processes: "Callable[[], tuple[Children, Starter]]"  # asked when the first program is started


@dataclass(eq=False)
class _Server:
    log: ServerLog
    backoff: Backoff
    gate: ToolGate
    turn: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)
    connection: "Connection | None" = None
    review: str = ""  # the one that its crashes came after
    launch: str = ""  # the command it was started with


class McpServers:
    """The servers of one event loop; most questions may be asked before there is one."""

    def __init__(self, context: ServerContext) -> None:
        self.context = context
        self.declarations = Declarations(context.project, context.home)
        self.pins = Pins(context.home)
        self._pending = PendingTools(context.home)
        self.outputs = OutputChecker(context.processes, context.monotonic, context.project)
        self._servers: dict[str, _Server] = {}
        self._closed = False

    def iter_allowed(self) -> Iterator[tuple[ConfiguredServer, tuple[ToolDefinition, ...]]]:
        """Yield the servers that may run, with their allowed tools; some of these may be withheld."""
        for entry in self.declarations.all():
            pin = self._find_pin(entry)
            if pin is not None:
                yield entry, pin.definitions

    def version(self) -> tuple[Hashable, Hashable]:
        """Return a value that changes with ``iter_allowed``, and one that changes with the withheld tools."""
        allowed = self.declarations.version(), self.pins.version()
        return allowed, tuple((name, tuple(one.gate.status.withheld)) for name, one in self._servers.items())

    def require_allowed(self, name: str, tool: str) -> None:
        """Raise Failure when a tool is withheld, as far as its server has shown it."""
        server = self._servers.get(name)
        if server is not None:
            server.gate.require_allowed(tool)

    def is_withheld(self, name: str, tool: str) -> bool:
        """Return whether an allowed tool may not be called, as far as its server has shown it."""
        server = self._servers.get(name)
        return server is not None and tool in server.gate.status.withheld

    def pending_changes(self, entry: ConfiguredServer) -> tuple[str, ...]:
        """Return the tools of a server that wait for a review, as far as known: "added x", "changed y"."""
        server = self._servers.get(entry.name)
        if server is not None and server.gate.has_listing:
            return server.gate.status.pending
        pin = self._find_pin(entry)
        return describe_pending(pin, self._pending.get(entry)) if pin else ()

    def revoke(self, entry: ConfiguredServer) -> None:
        """Remove the permission of a server, and what waits for a review. Raises ConfigError."""
        self.pins.revoke(entry)
        self._pending.remove(entry)

    def left_out(self, entry: ConfiguredServer) -> Mapping[str, str]:
        """Return the tools of a server that cannot be offered, and why, as far as known."""
        server = self._servers.get(entry.name)
        return server.gate.left_out if server else {}

    def find_state(self, entry: ConfiguredServer) -> ServerState:
        self.declarations.all()
        pin, server = self.pins.get(entry), self._servers.get(entry.name)
        if pin is not None and server is not None and server.review != pin.review:
            _reset_backoff(server, pin.review)
        if entry.declared.disabled:
            return ServerState.DISABLED
        if pin is None:
            return ServerState.NEEDS_REVIEW
        if pin.launch != entry.digest or self.pending_changes(entry) or self.find_unseen_links(entry):
            return ServerState.CHANGED
        if server is not None and server.backoff.is_failed:
            return ServerState.FAILED
        running = server is not None and server.connection is not None and not server.connection.ended.done()
        return ServerState.RUNNING if running else ServerState.READY

    async def get_connection(self, name: str) -> "Connection":
        """Return a working connection. Raises Failure."""
        entry = self.declarations.get(name)
        pin = self._find_pin(entry) if entry else None
        if entry is None or pin is None:
            await self.stop(name)
            raise _refusal(name, self.find_state(entry) if entry else None, self._allow_command(name))
        server = self._server(name)
        if server.review != pin.review:
            _reset_backoff(server, pin.review)
        async with server.opening:
            if server.connection is not None and (server.connection.ended.done() or server.launch != entry.digest):
                await server.connection.close()
                server.connection = None
            if server.connection is None:
                _require_startable(name, server, self._allow_command(name))
                self._require_seen_links(entry)
                server.connection = await self._open(entry, server, pin.links)
                server.launch = entry.digest
            return server.connection

    @property
    def crash_count(self) -> int:
        """The crashes of all servers since this host started."""
        return sum(server.backoff.total for server in self._servers.values())

    def call_slots(self, name: str) -> asyncio.Semaphore:
        return self._server(name).turn

    def describe_access(self, entry: ConfiguredServer) -> tuple[str, ...]:
        """Describe what a program may reach; empty for a server that is only an address."""
        if entry.declared.url:
            return ()
        declared, links = self._fill_known_variables(entry), self.list_links(entry)
        access = self._effective_access(declared, links)
        reach = describe_access(access, declares_network=declared.access.network is not None)
        missing = list_missing_paths(self.context.project, access.write)
        return (*reach, *([describe_missing_paths(missing)] if missing else []), *describe_links(links))

    def list_links(self, entry: ConfiguredServer) -> dict[str, str]:
        """Return the links on the way to what a program may reach, and where they lead now."""
        if entry.declared.url:
            return {}
        declared, context = self._fill_known_variables(entry), self.context
        cwd = context.project / declared.cwd
        return list_server_links(declared, cwd=cwd, project=context.project, policy=context.policy)

    def find_unseen_links(self, entry: ConfiguredServer) -> dict[str, str]:
        """Return the links that its review has not shown, or that lead elsewhere since."""
        pin = self.pins.get(entry)
        seen = pin.links if pin is not None else NO_LINKS
        return {path: lead for path, lead in self.list_links(entry).items() if seen.get(path) != lead}

    def _leave_out(self, entry: ConfiguredServer, shown: Mapping[str, str]) -> dict[str, str]:
        """Return the links of a server, with nothing where those lead that its owner has not seen."""
        unseen = {path for path, lead in self.find_unseen_links(entry).items() if shown.get(path) != lead}
        return {path: "" if path in unseen else lead for path, lead in self.list_links(entry).items()}

    def _require_seen_links(self, entry: ConfiguredServer) -> None:
        if unseen := self.find_unseen_links(entry):
            path, lead = next(iter(unseen.items()))
            raise Failure(
                Reason.DENIED,
                Message(
                    "The MCP server {name} needs a new review: {path} leads to {lead} by a link, which nobody has "
                    "allowed.",
                    name=entry.name,
                    path=path,
                    lead=lead,
                ),
                hint=_look_hint(self._allow_command(entry.name)),
            )

    async def inspect_tools(self, entry: ConfiguredServer, shown: Mapping[str, str] = NO_LINKS) -> ToolListing:
        """List the tools of a server for a review: of the running one if it is current, else of one started for this.

        One that is started for this may lack tools that another process saw added or changed: these are listed too. It
        reaches nothing by links, except by those in its permission and those that its owner was ``shown``. Raises
        Failure.
        """
        from mcp.shared.exceptions import MCPError

        from toolyard.plugins.mcp.server_start import start_server

        server = self._server(entry.name)
        running = server.connection
        if running is not None and not running.ended.done() and server.launch == entry.digest:
            try:
                return await running.list_tools()
            except (MCPError, RuntimeError, ValueError) as error:
                message = Message(
                    "The MCP server {name} does not list its tools: {error}.", name=entry.name, error=str(error)[:300]
                )
                raise Failure(Reason.INVALID_OUTPUT, message) from error
        gate = ToolGate(entry.name, lambda: None, self._allow_command(entry.name))
        try:
            connection = await start_server(
                entry.name, self._fill_variables(entry), self.context, server.log, gate, self._leave_out(entry, shown)
            )
            try:
                return self._add_pending(entry, await connection.list_tools())
            finally:
                await connection.close()
        except Failure as failure:
            explained = self._explain_start(entry.name, failure)
            if unseen := describe_links(self.find_unseen_links(entry)):
                step = Message(
                    "It was started without what it reaches by links ({links}): '{command}' shows them first.",
                    links=join_messages(unseen),
                    command=self._allow_command(entry.name),
                )
                explained.hint = join_sentences(explained.hint, step)
            raise explained from failure

    def add_access_step(self, name: str, failure: Failure, *, refusals: int | None = None) -> None:
        """Add to a failure how its owner lets a program reach more, if that seems to be what it lacks.

        ``refusals`` is how many there were when it began: a host that it was kept from later is what it lacks.
        """
        entry, server = self.declarations.get_cached(name), self._servers.get(name)
        if entry is None or entry.declared.url:
            return
        ended = failure.reason in (Reason.START_FAILED, Reason.CRASHED)
        printed = server.log.last_lines if server is not None and ended else ""
        limited = self._effective_access(entry.declared, {}).network != ANY_HOST
        denial = find_denial((failure.message, failure.text, printed), limited_network=limited)
        host = "" if refusals is None else self.context.network.find_refused_host(name, refusals)
        if denial is None and not host:
            return
        is_network = host or denial is AccessDenial.NETWORK
        more = f'"network": ["{host or "api.example.com"}"]' if is_network else '"write": ["/path/to/folder"]'
        step = Message(
            "Toolyard confines it, and that may be the reason. Its owner can let it reach more with "
            "\"permissions\": {access} in its entry of mcp.json, and then '{command}'.",
            access=f"{{{more}}}",
            command=self._allow_command(name),
        )
        failure.hint = join_sentences(failure.hint, step)

    async def close(self) -> None:
        """Stop all servers; bounded."""
        self._closed = True
        running = [server.connection for server in self._servers.values() if server.connection is not None]
        await asyncio.gather(*(connection.close() for connection in running))
        self.outputs.close()

    async def stop(self, name: str) -> None:
        """Stop a server that may not run any more."""
        server = self._servers.get(name)
        if server is not None and server.connection is not None:
            connection, server.connection = server.connection, None  # at once: another one may be opened meanwhile
            await connection.close()

    async def _open(self, entry: ConfiguredServer, server: _Server, links: Mapping[str, str]) -> "Connection":
        from toolyard.plugins.mcp.server_start import start_server

        if self._closed:
            raise Failure(Reason.CANCELLED, Message("This Toolyard is closing."))
        try:
            connection = await start_server(
                entry.name, self._fill_variables(entry), self.context, server.log, server.gate, links
            )
            connection.on_crash = server.backoff.note_crash
            try:
                await connection.wait_opened()
            except asyncio.CancelledError:
                await connection.close()  # nobody else knows of it
                raise
        except Failure as failure:
            if failure.reason is Reason.START_FAILED:
                server.backoff.note_crash()
            raise self._explain_start(entry.name, failure) from failure
        return connection

    def _explain_start(self, name: str, failure: Failure) -> Failure:
        explained = _add_last_lines(failure, self._server(name).log)
        self.add_access_step(name, explained)
        return explained

    def _fill_variables(self, entry: ConfiguredServer) -> ConfiguredServer:
        context = self.context
        declared = fill_variables(entry.declared, context.environ, context.secret_keys)
        secret = [value for name, value in {**declared.env, **declared.headers}.items() if is_secret_name(name)]
        used = [context.environ[name] for name in entry.declared.variables if name in context.environ]
        context.keep_secret([*secret, *declared.headers.values(), *(v for v in used if len(v) >= 16)])
        return replace(entry, declared=declared)

    def _fill_known_variables(self, entry: ConfiguredServer) -> ServerDeclaration:
        """Return the declaration with its variables; without them it will not start, and says why."""
        try:
            return self._fill_variables(entry).declared
        except Failure:
            return entry.declared

    def _effective_access(self, declared: ServerDeclaration, links: Mapping[str, str]) -> Access:
        context = self.context
        cwd = context.project / declared.cwd
        return effective_server_access(declared, cwd=cwd, project=context.project, policy=context.policy, links=links)

    def _server(self, name: str) -> _Server:
        if name not in self._servers:
            gate = ToolGate(
                name,
                lambda: self._cached_pin(name),
                self._allow_command(name),
                on_pending=lambda tools: self._note_pending(name, tools),
            )
            self._servers[name] = _Server(ServerLog(self.context.home, name), Backoff(self.context.monotonic), gate)
        return self._servers[name]

    def _allow_command(self, name: str) -> str:
        return self.context.own_command.format("mcp allow", name)

    def _cached_pin(self, name: str) -> Pin | None:
        """Return the permission as of the last read, which every call begins with."""
        entry = self.declarations.get_cached(name)
        return self.pins.get_cached(entry) if entry else None

    def _find_pin(self, entry: ConfiguredServer) -> Pin | None:
        """Return the permission of a server that may run as it is configured now."""
        pin = self.pins.get(entry)
        return None if pin is None or entry.declared.disabled or pin.launch != entry.digest else pin

    def _note_pending(self, name: str, tools: Sequence[ToolDefinition]) -> None:
        entry = self.declarations.get_cached(name)
        if entry is not None:
            self._pending.note(entry, tools)

    def _add_pending(self, entry: ConfiguredServer, listing: ToolListing) -> ToolListing:
        """Add the tools that wait in a running server to those of one that was just started, which may lack them."""
        pin = self._find_pin(entry)
        if pin is None:
            return listing
        pending = find_pending(pin, self._pending.get(entry))
        fresh = {one.name for one in find_pending(pin, listing.tools)}
        tools = {one.name: one for one in (*listing.tools, *(one for one in pending if one.name not in fresh))}
        return replace(listing, tools=tuple(tools.values()))


def _reset_backoff(server: _Server, review: str) -> None:
    """Forget the crashes before a new review."""
    server.review = review
    server.backoff.reset()


def _require_startable(name: str, server: _Server, allow: str) -> None:
    if server.backoff.is_failed:
        message = Message(
            "The MCP server {name} has crashed {max_crashes} times in {within_s:g} s and is not started again.",
            name=name,
            max_crashes=MAX_CRASHES,
            within_s=WITHIN_S,
        )
        raise Failure(
            Reason.START_FAILED,
            Message(
                "{message} It last said: {output}", message=message, output=server.log.last_lines or Message("nothing")
            ),
            hint=Message(
                "Its owner finds more in {log}, and starts it with '{command}'.", log=server.log.path, command=allow
            ),
        )
    wait_s = server.backoff.wait_s
    if wait_s > 0:
        message = Message(
            "The MCP server {name} has just crashed; it is started again in {wait_s:.1f} s.", name=name, wait_s=wait_s
        )
        hint = Message("Try again then.")
        raise Failure(Reason.BUSY, message, hint=hint, context={"retry_after_s": math.ceil(wait_s)})


def _add_last_lines(failure: Failure, log: ServerLog) -> Failure:
    """Return a failed start with the last lines of the program; any other failure unchanged."""
    if failure.reason is not Reason.START_FAILED or failure.hint:
        return failure
    message = failure.message
    if log.last_lines:
        message = Message("{message} It said: {output}", message=message, output=log.last_lines)
    return Failure(Reason.START_FAILED, message, hint=Message("Its owner finds more in {log}.", log=log.path))


def _refusal(name: str, state: ServerState | None, allow: str) -> Failure:
    why = {
        None: Message("is not configured any more"),
        ServerState.DISABLED: Message("is disabled"),
        ServerState.CHANGED: Message("is no longer what its owner has allowed"),
    }.get(state, Message("has not been allowed yet"))
    return Failure(Reason.DENIED, Message("The MCP server {name} {why}.", name=name, why=why), hint=_look_hint(allow))


def _look_hint(allow: str) -> Message:
    return Message("Its owner can look at it with '{command}'.", command=allow)
