"""A tool of a node as a tool like any other: listed, approved, timed, cancelled and journalled where all tools are.

An asynchronous plugin of a node answers with a receipt, and its node forwards the callback later. Its tasks are like
those of other plugins, but have no process here: they wait for the callback until their time is over.
"""

import asyncio
import json
import re
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from toolyard.dialects.vcp_nodes import CLOUD, ForwardedCallback
from toolyard.engine.background.tasks import Tasks
from toolyard.message import Message
from toolyard.plugins.process.child_report import limit_run_time
from toolyard.protocol.arguments import accept_arguments
from toolyard.protocol.envelope import Failure, Reason
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.manifests.manifest import Manifest, PluginType
from toolyard.protocol.manifests.spec import command_spec, tool_spec
from toolyard.protocol.plugin_answers.plugin_result import read_plugin_result
from toolyard.protocol.records.task_record import PendingCall, Task, TaskState, state_from_callback
from toolyard.protocol.tool import Checkpoint, Result, Risk, ToolCall, ToolSpec, confirm_start
from toolyard.protocol.tool_text import write_plugin
from toolyard.vcp.bridge.bridge_tool import read_error
from toolyard.vcp.nodes.node import Node, NodeError

QUEUE_S: Final = 60.0  # how long a call may wait for its turn
RECEIPT_S: Final = 60.0
MAX_FOLLOWED: Final = 1000  # calls whose tasks are open
_MAX_EARLY = 100  # callbacks that came before their receipts


class NodeTasks:
    """The open tasks of asynchronous plugins of nodes."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._following: set[asyncio.Task[None]] = set()
        self._early: OrderedDict[tuple[str, str], JsonObject] = OrderedDict()

    def expect(self, call: ToolCall, timeout_s: float) -> PendingCall:
        if len(self._following) >= MAX_FOLLOWED:
            message = Message("{count} tasks are running already.", count=len(self._following))
            raise Failure(Reason.BUSY, message, hint=Message("Try again later."))
        return self._tasks.expect(call, timeout_s=timeout_s)

    async def open(self, pending: PendingCall, receipt: str, timeout_s: float) -> tuple[Task, ...]:
        """Store the tasks that a receipt names, and follow them to their end."""
        tasks = await self._tasks.store_receipt(pending, receipt, None)
        for task in tasks:
            if (body := self._early.pop((task.plugin, task.task_id), None)) is not None:
                await self._tasks.end(task.id, state_from_callback(body), result=body)
        if tasks:
            following = asyncio.create_task(self._follow(pending, timeout_s))
            self._following.add(following)
            following.add_done_callback(self._following.discard)
        return tasks

    def drop(self, pending: PendingCall) -> None:
        self._tasks.close(pending)

    async def take(self, callback: ForwardedCallback) -> None:
        """End the task that a callback is for; one that comes before its receipt waits for that."""
        task = await self._tasks.get(f"{callback.plugin}::{callback.task_id}")
        if task is None:
            self._early[callback.plugin, callback.task_id] = callback.body
            while len(self._early) > _MAX_EARLY:
                self._early.popitem(last=False)
        elif task.process is None:  # one with a process here is no node's
            await self._tasks.end(task.id, state_from_callback(callback.body), result=callback.body)

    async def close(self) -> None:
        """Leave the tasks to the next server."""
        for following in self._following:
            following.cancel()
        await asyncio.gather(*self._following, return_exceptions=True)

    async def _follow(self, pending: PendingCall, timeout_s: float) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                await pending.wait_ended()
        except TimeoutError:
            why = Message("It ran past its total limit.")
            await self._tasks.end_open_tasks(pending, TaskState.TIMED_OUT, why)
        finally:
            self._tasks.close(pending)


class NodeTool:
    """``name`` is the one by which it is listed; ``label`` names its node."""

    def __init__(
        self,
        node: Node,
        manifest: Manifest,
        *,
        name: str,
        label: str,
        fingerprint: str,
        tasks: NodeTasks,
        require_allowed: Callable[[Node], None],
    ) -> None:
        self.node, self.manifest, self.label = node, manifest, label
        self._tasks, self._require_allowed = tasks, require_allowed
        spec = tool_spec(manifest)
        self._spec = replace(
            spec,
            name=name,
            aliases=(f"{manifest.name}@{label}",) if name == manifest.name else (),
            display_name=f"{manifest.display_name or manifest.name} ({label})",
            description=f"{spec.description}\n\n(A tool of the node {label}.)",
            prompt_text=_write_text(manifest, name),
            risk=Risk.EXECUTE,  # whatever it says of itself
            timeout_s=(RECEIPT_S if self._is_asynchronous else manifest.timeout_s) + QUEUE_S,
            fingerprint=fingerprint,
            plugin_id=f"node:{node.name or label}:{manifest.name}",
            at_once=0,
        )

    @property
    def _is_asynchronous(self) -> bool:
        return self.manifest.type is PluginType.ASYNCHRONOUS

    @property
    def spec(self) -> ToolSpec:
        return self._spec

    def check(self, call: ToolCall) -> None:
        self._require_allowed(self.node)
        declared = command_spec(self.manifest, call.arguments)
        if declared is not None:
            accept_arguments(declared, call.arguments)

    async def run(self, call: ToolCall, checkpoint: Checkpoint) -> Result:
        self.check(call)
        async with self.node.slots:
            checkpoint()
            await confirm_start(checkpoint)
            arguments: JsonObject = {**call.arguments, **call.metadata}
            if call.maid is not None:
                arguments.setdefault("maid", call.maid)
            context: JsonObject = {"cwd": ".", "node": self.label}
            try:
                result = await (self._submit(call, arguments) if self._is_asynchronous else self._ask(arguments))
            except Failure as failure:
                failure.context = {**context, **failure.context}
                raise
        return replace(result, context={**context, **result.context})

    async def _ask(self, arguments: JsonObject) -> Result:
        name = self._spec.name
        async with limit_run_time(name, RECEIPT_S if self._is_asynchronous else self.manifest.timeout_s):
            try:
                value = await self.node.call(self.manifest.name, arguments)
            except NodeError as error:
                text = error.error if isinstance(error.error, str) else json.dumps(error.error or "")
                return read_error(name, text)
        return read_plugin_result(name, {"status": "success", "result": value})

    async def _submit(self, call: ToolCall, arguments: JsonObject) -> Result:
        """Return the receipt, with the tasks that it opened in its data."""
        timeout_s = self.manifest.timeout_s
        pending = self._tasks.expect(replace(call, tool=self.manifest.name), timeout_s)  # so receipts name it
        tasks: tuple[Task, ...] = ()
        try:
            result = await self._ask(arguments)
            receipt = f"{json.dumps(result.data, ensure_ascii=False)}\n{result.text}"
            tasks = await self._tasks.open(pending, receipt, timeout_s)
        finally:
            if not tasks:
                self._tasks.drop(pending)
        if not tasks:
            return result
        opened: list[Json] = [{"id": one.id, "plugin": one.plugin, "task_id": one.task_id} for one in tasks]
        return replace(result, data={**result.data, "tasks": opened})


def _write_text(manifest: Manifest, name: str) -> str:
    """Return its text for prompts; where its name is another one here, examples call it by that."""
    shown = f"{CLOUD}{manifest.display_name or manifest.name}"
    text = write_plugin(replace(manifest, name=name, display_name=shown))
    if name == manifest.name:
        return text
    return re.sub(rf"(tool_name\s*:\s*「始」\s*){re.escape(manifest.name)}(?=\s*「末」)", rf"\g<1>{name}", text)
