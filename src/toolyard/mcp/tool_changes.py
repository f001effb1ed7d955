"""Notifications to connected clients when the list of tools changes.

Clients since 2026-07-28 listen on a stream of their own; older ones get a notice on the connection on which they have
listed the tools. A notice that cannot be delivered is lost: the client lists again when it connects again. At most
``MAX_SESSIONS`` older connections are remembered, the oldest are forgotten first.
"""

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

import anyio
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolyard.yard.yard import Yard

if TYPE_CHECKING:
    from mcp.server.connection import Connection

MAX_SESSIONS: Final = 1000
POLL_S: Final = 2.0
_NOTICE_S = 5.0


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
