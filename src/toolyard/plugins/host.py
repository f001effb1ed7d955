"""The plugins of a Yard, ready to run: what they share, and each of them as a tool."""

import json
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime

from toolyard.plugins.advice import advise
from toolyard.plugins.asynchronous import Submissions
from toolyard.plugins.background import MAX_WORKS, BackgroundWork
from toolyard.plugins.bytecode import VARIABLE, add_cache_option, cache_folder
from toolyard.plugins.child import SILENCE_S, Ended, confirm_input, run_child
from toolyard.plugins.discovery import Plugins
from toolyard.plugins.environment import Environment, Surroundings, environment_of, make_data_folder, per_call
from toolyard.plugins.launch import Launch, Starter
from toolyard.plugins.plugin import Plugin, State
from toolyard.plugins.plugin_settings import PluginSetting, settings_of
from toolyard.plugins.queue import AT_ONCE_PER_PLUGIN, Queue
from toolyard.plugins.runs import Runs, Started
from toolyard.plugins.stderr import StderrLog, StderrRing
from toolyard.plugins.timeout import run_limit, take_over_limit
from toolyard.plugins.tree import Children
from toolyard.plugins.verdict import verdict
from toolyard.protocol.arguments import accept_arguments
from toolyard.protocol.call import ToolCall
from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure, Reason
from toolyard.protocol.json import JsonObject
from toolyard.protocol.manifest import Manifest, PluginType, command_spec, tool_spec
from toolyard.protocol.outcome import Result
from toolyard.protocol.plugin_result import read_plugin_result
from toolyard.protocol.task import TaskIntake
from toolyard.protocol.tool import Checkpoint, Risk, ToolSpec, confirm_start

QUEUE_S = 300.0  # how long a call may wait for its turn
_NO_ROOM = f"Processes that went on after its answer were stopped: {MAX_WORKS} others go on already."
LEFT_BEHIND = "Processes that went on after its answer were stopped: it may not work in the background."


class PluginHost:
    """Belongs to one event loop, except that ``tools`` may be asked before there is one."""

    def __init__(
        self,
        plugins: Plugins,
        around: Surroundings,
        desk: TaskIntake,
        *,
        children: Children,
        starter: Starter,
        callback_base: Callable[[], Awaitable[str]],
        keep_secret: Callable[[Iterable[str]], None],
        keep_from_logs: Callable[[Iterable[str]], None],
        now: Callable[[], datetime],
        runs: Runs,
        at_once: int,
        outlives: bool = False,
    ) -> None:
        self.plugins, self.around, self.now = plugins, around, now
        self._keep_secret, self._keep_from_logs = keep_secret, keep_from_logs
        self.children, self.starter = children, starter
        self.queue = Queue(at_once=at_once)
        self.logs: dict[str, StderrLog] = {}
        self.runs = runs
        self.submissions = Submissions(
            desk, children, starter, callback_base, runs=runs, now=now, log=self.log, outlives=outlives
        )
        self.background = BackgroundWork(desk, children)

    def tools(self) -> "Iterator[PluginTool]":
        """Every plugin that can be called now."""
        names = (plugin.name for plugin in self.plugins.all if plugin.is_ready)
        return (tool for name in names if (tool := self.tool(name)))

    def tool(self, name: str) -> "PluginTool | None":
        """One plugin as a tool, whether it may run or not; None when there is none of that name to call."""
        plugin = self.plugins.get(name)
        if plugin is None or plugin.manifest is None or plugin.manifest.type is PluginType.STATIC:
            return None
        return PluginTool(self, plugin, plugin.manifest)

    def ready(self, name: str) -> tuple[Plugin, Manifest]:
        """The plugin as it is at this moment; Failure when it may not run."""
        plugin = self.plugins.current(name)
        if plugin is None:
            raise Failure(ErrorCode.NOT_FOUND, f"There is no plugin called '{name}' any more.", hint="List the tools.")
        if not plugin.is_ready or plugin.manifest is None:
            denied = plugin.state in (State.NEEDS_REVIEW, State.CHANGED)
            cause: Reason | ErrorCode = Reason.DENIED if denied else Reason.START_FAILED
            message = f"{name} cannot run: {plugin.reason.rstrip('.')}."
            raise Failure(cause, message, hint="The owner of this machine can mend that.")
        return plugin, plugin.manifest

    def environment(self, plugin: Plugin, manifest: Manifest) -> Environment:
        others = self.plugins.keys_of_others(plugin.name)
        return environment_of(
            manifest, plugin.config, self.around, keys_of_others=others, given_keys=plugin.publish_keys
        )

    def settings(self, plugin: Plugin, manifest: Manifest) -> tuple[PluginSetting, ...]:
        return settings_of(manifest, plugin.config, self.environment(plugin, manifest))

    def launch(self, plugin: Plugin, manifest: Manifest) -> Launch:
        if plugin.command is None or plugin.fingerprint is None:
            raise Failure(Reason.START_FAILED, f"{plugin.name} has no command to run.")
        environment = self.environment(plugin, manifest)
        self._keep_secret(environment.secrets)
        self._keep_from_logs(environment.log_secrets)
        argv, cache = plugin.command.argv, cache_folder(self.around.home, plugin)
        return Launch(
            argv=add_cache_option(argv, cache) if cache else argv,
            cwd=plugin.folder,
            environment={**environment.values, **({VARIABLE: str(cache)} if cache else {})},
            limits=manifest.limits,
            warm=manifest.warm and manifest.type is PluginType.SYNCHRONOUS,
            version=plugin.fingerprint.digest,
        )

    def cwd_of(self, plugin: Plugin) -> str:
        """The folder in which a plugin runs, relative to the project; ``.`` for one that is not in the project."""
        folder, project = plugin.folder.resolve(), self.around.project
        return folder.relative_to(project).as_posix() if folder.is_relative_to(project) else "."

    def make_data_folder(self, name: str) -> None:
        make_data_folder(self.around.home, name)

    def log(self, name: str, call_id: str, ring: StderrRing, noise: str = "", note: str = "") -> None:
        self.logs.setdefault(name, StderrLog()).add(call_id, self.now(), ring, noise, note)

    async def close(self) -> None:
        await self.submissions.close()
        await self.background.close()
        await self.starter.close()
        await self.children.close()


class PluginTool:
    """A plugin as a tool."""

    def __init__(self, host: PluginHost, plugin: Plugin, manifest: Manifest) -> None:
        self._host, self.manifest = host, manifest
        spec = tool_spec(manifest)
        self._spec = replace(
            spec,
            timeout_s=spec.timeout_s + QUEUE_S,
            fingerprint=plugin.fingerprint.digest if plugin.fingerprint else "",
            risk=plugin.risk,
            plugin_id=plugin.id,
            hides_plugins=bool(plugin.hides),
        )

    @property
    def spec(self) -> ToolSpec:
        return self._spec

    def check(self, call: ToolCall) -> None:
        self._ready(call)

    async def run(self, call: ToolCall, checkpoint: Checkpoint) -> Result:
        plugin, manifest, launch = self._prepare(call)
        self._host.make_data_folder(plugin.name)
        stdin = _stdin(call)
        try:
            async with self._host.queue.turn(plugin.name, manifest.max_concurrency or AT_ONCE_PER_PLUGIN) as waited:
                checkpoint()
                if waited:  # in the meantime it may have become another one, or have been forbidden
                    plugin, manifest, launch = self._prepare(call)
                if manifest.type is PluginType.ASYNCHRONOUS:
                    result = await self._host.submissions.submit(call, manifest, launch, stdin, checkpoint)
                else:
                    result = await self._once(call, manifest, launch, stdin, checkpoint)
        except Failure as failure:
            failure.context = {"cwd": self._host.cwd_of(plugin), **failure.context}
            advise(failure, plugin.name, self._host.settings(plugin, manifest))
            raise
        return replace(result, context={"cwd": self._host.cwd_of(plugin), **result.context})

    def _prepare(self, call: ToolCall) -> tuple[Plugin, Manifest, Launch]:
        """The plugin as it is at this moment; Failure when it may not run, or not with these arguments."""
        plugin, manifest = self._ready(call)
        return plugin, manifest, self._host.launch(plugin, manifest)

    def _ready(self, call: ToolCall) -> tuple[Plugin, Manifest]:
        plugin, manifest = self._host.ready(self._spec.name)
        if plugin.risk is not self._spec.risk and self._spec.risk is Risk.READ:  # nobody was asked about what it is now
            raise Failure(Reason.DENIED, f"{plugin.name} has changed: nothing was run.", hint="Call it again.")
        declared = command_spec(manifest, call.arguments)
        if declared is not None:
            accept_arguments(declared, call.arguments)
        return plugin, manifest

    async def _once(
        self, call: ToolCall, manifest: Manifest, launch: Launch, stdin: bytes, checkpoint: Checkpoint
    ) -> Result:
        name, process = manifest.name, None
        ended: Ended | None = None
        ring = StderrRing()
        try:
            async with run_limit(name, manifest.timeout_s) as limit:
                await confirm_start(checkpoint)  # a child may begin before it has read anything
                child = await self._host.starter.spawn(launch, per_call(manifest, request_address="127.0.0.1"))
                process = Started(child.pid, launch, self._host.now)
                await confirm_input(child, self._host.children, checkpoint)
                ended = await run_child(
                    child,
                    stdin,
                    children=self._host.children,
                    limits=manifest.limits,
                    stderr=ring,
                    first=process.heard,
                    detached=manifest.detached,
                    limit_s=take_over_limit(limit),
                    silence_s=SILENCE_S,
                )
        finally:
            note = LEFT_BEHIND if ended is not None and ended.was_left_behind else ""
            self._host.log(name, call.id, ring, "" if ended is None else ended.noise, note)
            if process is not None:
                self._host.runs.add(call.id, process, ring, ended)
        return await self._answer(call, manifest, ended)

    async def _answer(self, call: ToolCall, manifest: Manifest, ended: Ended) -> Result:
        """The result; what goes on after it becomes a task, and what may not go on is told in the warnings."""
        name, background = manifest.name, self._host.background
        told = (f"{LEFT_BEHIND} {_allow_hint(name)}",) if ended.was_left_behind else ()
        try:
            result = read_plugin_result(name, verdict(name, ended), warnings=(*ended.warnings, *told))
        except Failure:
            if ended.remainder is not None:
                background.drop(ended.remainder)
            raise
        if ended.remainder is None:
            return result
        task = await background.keep(call, ended.remainder, timeout_s=manifest.detached_timeout_s)
        if task is None:
            return read_plugin_result(name, verdict(name, ended), warnings=(*ended.warnings, _NO_ROOM))
        goes_on: JsonObject = {"task": task.id, "deadline": task.deadline}
        return replace(result, context={**result.context, "background": goes_on})


def _allow_hint(name: str) -> str:
    return f"Its owner can let it go on: toolyard plugin allow {name} --detached."


def _stdin(call: ToolCall) -> bytes:
    """What the caller wrote, in the order it was written, and what the host adds: one JSON object.

    Nothing at all when there are no arguments, as in VCPToolBox: a plugin then reports what it misses.
    """
    whole: JsonObject = {**call.arguments, **call.metadata}
    if call.maid is not None:
        whole.setdefault("maid", call.maid)
    return json.dumps(whole, ensure_ascii=False).encode() if whole else b""
