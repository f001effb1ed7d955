"""The tools of a Yard for MCP clients: the same registry, the same runner, the same approvals as for everyone.

``build_mcp_app`` makes an ASGI app of it, for ``POST /mcp`` of the web server. It checks no key, Host or Origin: the
edge of the web server has done so before a request comes here. Bodies, sessions and their idle time are bounded by the
SDK.

Connected clients are notified when the list of tools changes. Those since 2026-07-28 listen on a stream of their own;
older ones get a notice on the connection on which they have listed the tools. A notice that cannot be delivered is
lost: the client lists again when it connects again. At most ``MAX_SESSIONS`` older connections are remembered, the
oldest are forgotten first."""

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolyard.dialects.mcp_messages import strip_envelope
from toolyard.dialects.tool_specs import Format, export, input_schema
from toolyard.engine.clock import Clock, SystemClock
from toolyard.mcp import resources
from toolyard.mcp.calls import PROGRESS_S, Answer, Calls, CanMakeRules, FindConsoleUrl
from toolyard.protocol.envelope import Failure
from toolyard.protocol.json import JsonObject
from toolyard.protocol.tool import Origin, ToolCall
from toolyard.yard.yard import Yard

if TYPE_CHECKING:
    from mcp.server.connection import Connection
    from starlette.applications import Starlette


NAME: Final = "toolyard"
_INSTRUCTIONS = (
    "Paths are relative to the project. A failure begins with its code and ends with what to do next. A long result is "
    "cut; the whole of it is a resource under toolyard://tool-output/."
)
Context = ServerRequestContext[Any, Any]
FindCaller = Callable[[Any], str]
"""Who is asking, by the HTTP request that carries the message; None over stdio."""
POLL_S: Final = 2.0
MAX_SESSIONS: Final = 1000
_NOTICE_S = 5.0


class _Sdk(Server[Any]):
    """The SDK's server, which also tells older clients that the list of tools may change."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        options = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(options, experimental_capabilities, extensions)


class McpServer:
    """The MCP server of a Yard, for one event loop: the SDK's server ``sdk`` works inside ``running``."""

    def __init__(
        self,
        yard: Yard,
        caller_of: FindCaller,
        *,
        may_rule: CanMakeRules = lambda _: True,
        address: FindConsoleUrl = lambda: "",
        clock: Clock | None = None,
        beat_s: float = PROGRESS_S,
    ) -> None:
        """``may_rule``: over stdio it is the owner who asks. ``address``: where people reach the console."""
        self._yard, self._caller_of = yard, caller_of
        monotonic = (clock or SystemClock()).monotonic
        self.calls = Calls(yard, monotonic, may_rule=may_rule, address=address, beat_s=beat_s)
        self.changes = ToolChanges(yard)
        self._envelope: JsonObject | None = None  # of the newest call that the SDK has accepted
        self._version = ""  # of its protocol
        self.sdk = _Sdk(
            NAME,
            version=version("toolyard"),
            title="Toolyard",
            instructions=_INSTRUCTIONS,
            get_tool_input_schema=self._find_input_schema,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_subscriptions_listen=self.changes.listen,
        )
        self.sdk.middleware.clear()  # spans for OpenTelemetry, which nobody collects here

    @contextlib.asynccontextmanager
    async def running(self, *, refresh: bool, every_s: float = POLL_S) -> AsyncIterator[None]:
        """Watch for changes of the tools; at the end stop every call that a client has begun."""
        looking = asyncio.create_task(self.changes.run(refresh=refresh, every_s=every_s))
        try:
            yield
        finally:
            looking.cancel()
            self.changes.listen.close()
            await asyncio.gather(looking, return_exceptions=True)
            await self.calls.close()

    async def _list_tools(self, ctx: Context, _: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        tools = [types.Tool.model_validate(export(tool.spec, Format.MCP)) for tool in self._yard.tools]
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            for tool in tools:
                if tool.output_schema and tool.output_schema.get("type") != "object":
                    tool.output_schema = None  # a single one would make an older client refuse all tools
        self.changes.note_listed(ctx.session)
        return types.ListToolsResult(tools=tools)

    def find_accepted_version(self, envelope: object) -> str:
        """Return the version of the protocol that the SDK has accepted with this ``_meta``; empty if it has not."""
        return self._version if strip_envelope(envelope) == self._envelope else ""

    async def _call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> Answer:
        self._envelope, self._version = strip_envelope((ctx.params or {}).get("_meta")), ctx.protocol_version
        call = self.build_call(params.name, params.arguments or {}, ctx.request)
        if call is None:
            raise MCPError(types.INVALID_PARAMS, f"there is no tool called '{params.name[:100]}'")
        if params.request_state is not None:
            return await self.calls.resume(ctx, call, params.request_state, params.input_responses)
        return await self.calls.begin(ctx, call)

    async def _list_resources(self, _: Context, __: object) -> types.ListResourcesResult:
        return resources.list_resources(self._yard)

    async def _list_templates(self, _: Context, __: object) -> types.ListResourceTemplatesResult:
        return resources.list_templates()

    async def _read_resource(self, ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        return await resources.read_resource(self._yard, str(params.uri), self._caller_of(ctx.request))

    def build_call(self, exported: str, arguments: JsonObject, request: Any) -> ToolCall | None:
        """Return a call of the tool with this exported name; None when there is none. ``request``: that of HTTP."""
        name = self._find_name(exported)
        if name is None:
            return None
        return self._yard.calls.request(name, arguments, caller=self._caller_of(request), origin=Origin.MCP)

    def _find_input_schema(self, name: str) -> dict[str, Any] | None:
        own_name = self._find_name(name)
        return input_schema(self._yard.tools.get(own_name).spec) if own_name else None

    def _find_name(self, exported: str) -> str | None:
        """Return the own name of a tool for its exported name; None when there is none."""
        try:
            return self._yard.tools.get(self._yard.tools.resolve_name(exported)).spec.name
        except Failure:
            return None


class ToolChanges:
    def __init__(self, yard: Yard) -> None:
        self._yard = yard
        self._bus = InMemorySubscriptionBus()
        self.listen = ListenHandler(self._bus)
        self._sessions: OrderedDict[int, tuple[ServerSession, Connection]] = OrderedDict()
        self._seen: tuple[tuple[str, ...], ...] = ()
        self._known = False  # whether anybody has seen a list that could change

    def note_listed(self, session: ServerSession) -> None:
        """Note that a client has the list as it is now."""
        if not self._known:
            self._known, self._seen = True, self._list_versions()
        if session.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return
        connection = session._connection  # a session is made for each request, a connection stays
        self._sessions[id(connection)] = (session, connection)  # held, so that no other gets its id
        while len(self._sessions) > MAX_SESSIONS:
            self._sessions.popitem(last=False)

    async def notify_if_changed(self) -> bool:
        """Notify all clients if the tools have changed since the last time; return whether they have."""
        if not self._known:
            return False
        before, self._seen = self._seen, self._list_versions()
        if before == self._seen:
            return False
        await self._bus.publish(ToolsListChanged())
        for key, (session, _) in list(self._sessions.items()):
            try:
                async with asyncio.timeout(_NOTICE_S):
                    await session.send_tool_list_changed()
            except (MCPError, TimeoutError, anyio.ClosedResourceError, anyio.BrokenResourceError):
                self._sessions.pop(key, None)
        return True

    def _list_versions(self) -> tuple[tuple[str, ...], ...]:
        return tuple((t.spec.name, t.spec.fingerprint, t.spec.description) for t in self._yard.tools)

    async def run(self, *, refresh: bool, every_s: float = POLL_S) -> None:
        """Poll until cancelled. With ``refresh`` the plugin folders are searched as well."""
        while True:
            if refresh:
                self._yard.plugins.plugins.refresh()
            await self.notify_if_changed()
            await asyncio.sleep(every_s)


Lifespan = Callable[[], contextlib.AbstractAsyncContextManager[None]]


@dataclass(frozen=True, slots=True)
class McpApp:
    """``app`` answers at ``/mcp``; it works only inside ``lifespan``, which can be entered once."""

    app: "Starlette"
    lifespan: Lifespan
    server: McpServer


def build_mcp_app(
    yard: Yard,
    caller_of: FindCaller,
    may_rule: CanMakeRules,
    *,
    address: FindConsoleUrl = lambda: "",
    refresh: bool = False,
) -> McpApp:
    """Build the app. ``caller_of`` finds the caller of an HTTP request, ``may_rule`` whether they may make rules.

    ``address``: where people reach the console. ``refresh``: nobody else looks after the plugin folders.
    """
    from mcp.server.transport_security import TransportSecuritySettings

    server = McpServer(yard, caller_of, may_rule=may_rule, address=address)
    edge_checks = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    app = server.sdk.streamable_http_app(streamable_http_path="/mcp", transport_security=edge_checks)
    manager = server.sdk.session_manager

    @contextlib.asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        async with manager.run(), server.running(refresh=refresh):
            yield

    return McpApp(app, lifespan, server)
