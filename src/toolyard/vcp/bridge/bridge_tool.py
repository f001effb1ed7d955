"""A plugin of VCPToolBox's own process as a tool like any other."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from toolyard.message import Message, join_paragraphs, join_sentences, strip_period
from toolyard.plugins.advice import REFUSED_PATHS, describe_refusal
from toolyard.plugins.package.plugin import Plugin
from toolyard.plugins.plugin_host import PluginHost
from toolyard.plugins.process.child_report import limit_run_time
from toolyard.protocol.access import AccessChoice
from toolyard.protocol.arguments import accept_arguments
from toolyard.protocol.envelope import ErrorCode, Failure, Reason
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.manifests.manifest import Manifest, PluginType
from toolyard.protocol.manifests.spec import command_spec, tool_spec
from toolyard.protocol.plugin_answers.plugin_result import read_plugin_result
from toolyard.protocol.tool import Checkpoint, Result, ToolCall, ToolSpec, confirm_start
from toolyard.vcp.bridge.bridge import Bridge
from toolyard.vcp.bridge.connection import START_S, BridgeError, Connection

QUEUE_S: Final = 60.0  # how long a call may wait for its turn
_ERRORS: Final = (
    "plugin_error",
    "plugin_execution_error",
    "error",
    "message",
)  # where an error is said, the first first
_ADDED: Final = ("timestamp", "MaidName")  # by VCPToolBox


class BridgeTool:
    def __init__(self, bridge: Bridge, host: PluginHost, plugin: Plugin, manifest: Manifest) -> None:
        self._bridge, self._host = bridge, host
        spec = tool_spec(manifest)
        self._own_timeout_s = spec.timeout_s
        self._spec = replace(
            spec,
            timeout_s=spec.timeout_s + QUEUE_S + START_S,
            fingerprint=plugin.fingerprint.digest if plugin.fingerprint else "",
            risk=plugin.risk,
            plugin_id=plugin.id,
            hides_plugins=bool(plugin.hides),
        )

    @property
    def spec(self) -> ToolSpec:
        return self._spec

    def check(self, call: ToolCall) -> None:
        plugin, manifest = self._host.require_ready(self._spec.name)
        if plugin.access is AccessChoice.STRICT:
            message = Message(
                "{name} cannot run with the access 'strict': it shares VCPToolBox's process with others.",
                name=plugin.name,
            )
            raise Failure(Reason.DENIED, message, hint=Message("The owner of this machine can fix that."))
        declared = command_spec(manifest, call.arguments)
        if declared is not None:
            accept_arguments(declared, call.arguments)

    async def run(self, call: ToolCall, checkpoint: Checkpoint) -> Result:
        name = self._spec.name
        self.check(call)
        async with self._bridge.slots:
            checkpoint()
            connection = await self._bridge.connect()
            _require_tool(name, connection)
            await confirm_start(checkpoint)
            call = await self._host.bring_files(name, call)
            arguments: JsonObject = {**call.arguments, **call.metadata}
            if call.maid is not None:
                arguments.setdefault("maid", call.maid)
            try:
                async with limit_run_time(name, self._own_timeout_s):
                    answer = await connection.call(name, arguments)
                result, refused = _read_value(name, connection, answer.value), answer.refused
            except BridgeError as error:
                try:
                    result, refused = read_error(name, str(error)), error.refused
                except Failure as failure:
                    if error.refused:
                        failure.hint = join_sentences(failure.hint, describe_refusal(error.refused))
                        failure.context = {**failure.context, REFUSED_PATHS: [*error.refused]}
                    raise
        context: JsonObject = {"cwd": ".", "confinement": self._bridge.level.value}
        return _add_refusals(replace(result, context={**context, **result.context}), refused)


def _add_refusals(result: Result, refused: Sequence[str]) -> Result:
    """Return a result that says what its plugin was kept from, which may have answered as if nothing was there."""
    if not refused:
        return result
    note, extras = describe_refusal(refused), result.extras
    return replace(
        result,
        text=join_paragraphs(result.text, note),
        extras=replace(extras, note=join_paragraphs(extras.note, note)) if extras.parts else extras,
        context={**result.context, REFUSED_PATHS: [*refused]},
    )


def _read_value(name: str, connection: Connection, value: Json) -> Result:
    if isinstance(value, dict) and value.keys() == {"plugin_error"}:  # VCPToolBox shows it to the model as a result
        raise _explain_lack(connection, str(value["plugin_error"]))
    return read_plugin_result(name, {"status": "success", "result": value})


def _require_tool(name: str, connection: Connection) -> None:
    """Raise Failure when the process has no such tool: its module was not loaded, or is none."""
    loaded = connection.inventory.plugins.get(name)
    if loaded is not None and loaded.is_tool:
        return
    if loaded is None or not loaded.is_loaded:
        why = loaded.problem if loaded is not None and loaded.problem else Message("VCPToolBox did not load it")
        message = Message("{name} was not loaded: {why}.", name=name, why=strip_period(why))
        raise Failure(Reason.START_FAILED, message, hint=Message("The owner of this machine can fix that."))
    message = Message("{name} has no commands: it works on messages, or has pages of its own.", name=name)
    raise Failure(ErrorCode.NOT_FOUND, message)


def _explain_lack(connection: Connection, error: str) -> Failure:
    """Return the failure of a plugin, with what of VCPToolBox itself could not be loaded here."""
    own = {name: why for name, why in connection.inventory.problems.items() if name not in connection.inventory.plugins}
    hint = "; ".join(f"{name}: {strip_period(why)}" for name, why in own.items())
    lacks = Message("VCPToolBox could not load all of itself here ({problems}).", problems=hint) if hint else ""
    return Failure(ErrorCode.EXECUTION_ERROR, error, hint=lacks)


def read_error(name: str, text: str) -> Result:
    """Raise the Failure that VCPToolBox's error is: an object of JSON in the text of an exception, or the text."""
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    fields: JsonObject = value if isinstance(value, dict) else {"plugin_execution_error": text}
    said = next((fields[key] for key in _ERRORS if fields.get(key)), None)
    rest = {key: one for key, one in fields.items() if key not in (*_ERRORS, *_ADDED, "status")}
    error = said or (rest and json.dumps(rest, ensure_ascii=False)) or Message("It failed and did not say why.")
    return read_plugin_result(name, {**rest, "status": "error", "error": error})


def iter_tools(bridge: Bridge, host: PluginHost) -> Iterator[BridgeTool]:
    """Yield the tools that are offered."""
    for plugin in host.plugins.all:
        if plugin.is_in_process and plugin.is_ready and plugin.manifest and plugin.manifest.commands:
            tool = find_tool(bridge, host, plugin.name)
            if tool is not None:
                yield tool


def find_tool(bridge: Bridge, host: PluginHost, name: str) -> BridgeTool | None:
    """Return the tool of such a plugin, whether it may run or not; None when it has none."""
    plugin = host.plugins.get(name)
    if plugin is None or plugin.manifest is None or not plugin.is_in_process:
        return None
    is_tool = plugin.manifest.type is PluginType.HYBRID_SERVICE or bool(plugin.manifest.commands)
    return BridgeTool(bridge, host, plugin, plugin.manifest) if is_tool else None
