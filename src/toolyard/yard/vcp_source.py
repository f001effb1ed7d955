"""The plugins of an installation that live in VCPToolBox's process, as tools of a Yard: see ``vcp.bridge``.

What they ask of the server they get from this Yard: a call of theirs is settled like any other, with its approval.
"""

import asyncio
import hashlib
import logging
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from toolyard.dialects.vcp_install import read_approval_rules
from toolyard.message import Message
from toolyard.protocol.access import Effect, Mode
from toolyard.protocol.envelope import ErrorCode, Failure
from toolyard.protocol.json import Json, JsonObject, json_bytes
from toolyard.protocol.tool import Origin
from toolyard.workspace.home_folder import StateFile
from toolyard.yard.plugin_source import PluginSource
from toolyard.yard.state import Basis, State

if TYPE_CHECKING:
    from toolyard.vcp.bridge.bridge import Bridge
    from toolyard.vcp.bridge.bridge_tool import BridgeTool
    from toolyard.vcp.prompts import Stage
    from toolyard.yard.calls import Calls

CALLER: Final = "vcp-plugins"
_TAVERN = "VCPTavern"  # runs before the variables are filled
_TAKEN = "vcp-approvals.json"  # which approval files were made into rules
_MEDIA = ("MultiModalProcessor", "ImageProcessor")  # one of them, where a text asks for it
_log = logging.getLogger(__name__)


class VcpSource:
    """Without an installation it has no tools."""

    def __init__(
        self, basis: Basis, plugins: PluginSource, *, calls: "Callable[[], Calls]", state: Callable[[], State]
    ) -> None:
        self._basis, self._plugins, self._calls, self._state = basis, plugins, calls, state
        self._bridge: Bridge | None = None
        self._on_push: Callable[[JsonObject], None] = lambda _: None

    @property
    def bridge(self) -> "Bridge | None":
        """The bridge; None without an installation."""
        config = self._basis.config
        if self._bridge is None and config.vcp is not None and (config.vcp / "Plugin").is_dir():
            from toolyard.vcp.bridge.bridge import Bridge, BridgeContext

            self._bridge = Bridge(
                BridgeContext(
                    root=config.vcp,
                    beside=config.beside,
                    home=config.home,
                    environ=config.environ,
                    port=self._plugins.port,
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

    async def preprocess(self, stage: "Stage", messages: list[Json]) -> list[Json]:
        """Return messages as the preprocessors of a stage leave them. Raises Failure or BridgeError."""
        if self.bridge is None:
            return messages
        from toolyard.vcp.prompts import Stage

        def choose(order: Sequence[str]) -> list[str]:
            media = next((name for name in _MEDIA if name in order), "")
            match stage:
                case Stage.FIRST:
                    return [name for name in order if name == _TAVERN]
                case Stage.MEDIA:
                    return [media] if media else []
                case Stage.REST:
                    return [name for name in order if name not in (_TAVERN, *_MEDIA)]

        return await self.bridge.preprocess(choose, messages)

    async def take_approvals(self) -> None:
        """Make rules of VCPToolBox's own approval file, once: what it refuses is refused, what it asks about asks.

        A rule that is revoked stays so, until the file has changed.
        """
        from toolyard.vcp.installation import read_installation

        root = self._basis.config.vcp
        value = read_installation(root).read_approvals() if root is not None else None
        rules, _ = read_approval_rules(value) if value is not None else ([], "")
        digest = hashlib.sha256(json_bytes(value)).hexdigest()
        taken = StateFile(self._basis.config.home / _TAKEN)
        if not rules or taken.read().get(str(root)) == digest:
            return
        approvals = self._state().approvals
        known = {(rule.tool, rule.command) for rule in await approvals.rules() if rule.effect is Effect.DENY}
        for rule in rules:
            if rule.refuses and (rule.tool, rule.command) not in known:
                await approvals.add_rule(rule.tool, rule.command, Effect.DENY, by=CALLER)
        asking = sorted({rule.tool for rule in rules if not rule.refuses})
        if asking and self._basis.config.settings.approval_mode is Mode.AUTO:
            _log.warning("VCPToolBox asks before %s, and here approval_mode is 'auto'", ", ".join(asking))
        await asyncio.to_thread(taken.update, lambda stored: stored.update({str(root): digest}))

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
