"""The plugins of an installation that live in VCPToolBox's process, as tools of a Yard: see ``vcp.bridge``.

What they ask of the server they get from this Yard: a call of theirs is settled like any other, with its approval.
"""

import logging
from collections.abc import Callable, Hashable, Iterator
from typing import TYPE_CHECKING, Final

from toolyard.message import Message
from toolyard.protocol.envelope import ErrorCode, Failure
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.tool import Origin
from toolyard.yard.plugin_source import PluginSource
from toolyard.yard.state import Basis

if TYPE_CHECKING:
    from toolyard.vcp.bridge.bridge import Bridge
    from toolyard.vcp.bridge.bridge_tool import BridgeTool
    from toolyard.yard.calls import Calls

CALLER: Final = "vcp-plugins"
_log = logging.getLogger(__name__)


class VcpSource:
    """Without an installation it has no tools."""

    def __init__(self, basis: Basis, plugins: PluginSource, calls: "Callable[[], Calls]", *, port: int) -> None:
        self._basis, self._plugins, self._calls, self._port = basis, plugins, calls, port
        self._bridge: Bridge | None = None
        self._on_push: Callable[[JsonObject], None] = lambda _: None

    @property
    def bridge(self) -> "Bridge | None":
        """The bridge; None without an installation."""
        config = self._basis.config
        if self._bridge is None and config.vcp is not None and (config.vcp / "Plugin").is_dir():
            from toolyard.vcp.bridge.bridge import Bridge, BridgeContext
            from toolyard.vcp.installation import read_installation

            self._bridge = Bridge(
                BridgeContext(
                    root=config.vcp,
                    own_port=read_installation(config.vcp).port,
                    home=config.home,
                    environ=config.environ,
                    port=self._port,
                    plugins=lambda: self._plugins.host,
                    monotonic=self._basis.clock.monotonic,
                    answer=self._answer,
                    push=self._push,
                    keep_secret=self._basis.mask.add,
                )
            )
        return self._bridge

    def on_push(self, take: Callable[[JsonObject], None]) -> None:
        """Give to ``take`` what plugins push to the clients of VCPToolBox's channels: ``{data, target}``."""
        self._on_push = take

    def _push(self, message: JsonObject) -> None:
        self._on_push(message)

    def find(self, name: str) -> "BridgeTool | None":
        if (bridge := self.bridge) is None:
            return None
        from toolyard.vcp.bridge.bridge_tool import find_tool

        return find_tool(bridge, self._plugins.host, name)

    def all(self) -> "Iterator[BridgeTool]":
        if (bridge := self.bridge) is not None:
            from toolyard.vcp.bridge.bridge_tool import iter_tools

            yield from iter_tools(bridge, self._plugins.host)

    def version(self) -> Hashable:
        return 0  # that of the plugins says it

    async def close(self) -> None:
        if self._bridge is not None:
            await self._bridge.close()

    async def _answer(self, ask: JsonObject) -> Json:
        """Answer a question of a plugin. Raises Failure."""
        arguments = ask.get("args")
        if ask.get("what") != "tool" or not isinstance(arguments, dict | None):
            raise Failure(ErrorCode.INVALID_PARAM, Message("Toolyard does not know this question."))
        calls = self._calls()
        call = calls.request(str(ask.get("tool")), arguments or {}, caller=CALLER, origin=Origin.CHAT)
        outcome = await calls.settle(call)
        if (error := outcome.envelope.error) is not None:
            raise Failure(error.code, error.message)
        from toolyard.dialects.vcp_messages import encode

        return encode(outcome)["result"]  # type: ignore[no-any-return]
