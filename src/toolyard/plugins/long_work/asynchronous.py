"""Asynchronous plugins: a receipt at once, a child that lives on, a callback that ends the task.

A child that gives no receipt within ``RECEIPT_S`` is stopped. After its receipt it has until the total limit of its
manifest; one that exits without having called back has ``CALLBACK_GRACE_S`` for a callback that is still on its way,
unless its manifest says ``detached``. A child that has called back has ``EXIT_GRACE_S`` to end by itself. A line
``PROGRESS 0.4 some text`` on its stderr tells how far it is.

Synchronous plugins work on in the background where their owner allows it. The processes that continue after the answer
are one task: it is listed, ends when its last process has ended, can be cancelled, and is stopped at its limit. Its
outputs are read and discarded, so that it never blocks. It does not outlive the host: when the host ends it is stopped
and marked as interrupted. There are at most ``MAX_BACKGROUND_TASKS`` at a time.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from toolyard.crashpoint import crashpoint
from toolyard.errors import StorageError
from toolyard.message import Message, add_hint
from toolyard.plugins.long_work.task_child import AdoptedChild, AsyncChild
from toolyard.plugins.package.environment import build_call_variables
from toolyard.plugins.process.child import confirm_input
from toolyard.plugins.process.child_report import (
    ChildReport,
    Survivors,
    explain_missing_callback,
    limit_run_time,
    require_answer,
)
from toolyard.plugins.process.children import Children
from toolyard.plugins.process.launch import Launch, Starter
from toolyard.plugins.process.network_services import add_callback
from toolyard.plugins.process.process_output import ProcessRecords, StderrRing, TimedProcess, parse_progress
from toolyard.protocol.envelope import Failure, Reason
from toolyard.protocol.json import JsonObject
from toolyard.protocol.manifests.manifest import Manifest
from toolyard.protocol.plugin_answers.plugin_result import read_plugin_result
from toolyard.protocol.records.task_record import PendingCall, Task, TaskIntake, TaskState
from toolyard.protocol.tool import Checkpoint, Result, ToolCall, confirm_start

RECEIPT_S = 60.0
CALLBACK_GRACE_S = 30.0
EXIT_GRACE_S = 10.0
MAX_CHILDREN = 256
_LAST_CALLBACK_S = 1.0
_POLL_S = 0.5  # between two looks at the progress
MAX_BACKGROUND_TASKS = 256
_log = logging.getLogger(__name__)
_RETRY_S = 0.5


@dataclass(frozen=True, slots=True)
class _WatchedChild:
    """A living child and what is expected of it."""

    child: AsyncChild | AdoptedChild
    expected: PendingCall
    tasks: tuple[Task, ...]
    timeout_s: float
    detached: bool
    log: Callable[[], None] = lambda: None  # keeps what it printed, when it has ended
    advise: Callable[[Failure], None] = lambda _: None  # adds the next step to its failure


class AsyncRunner:
    """The running children of asynchronous plugins."""

    def __init__(
        self,
        intake: TaskIntake,
        children: Children,
        starter: Starter,
        callback_base: Callable[[], Awaitable[str]],
        *,
        runs: ProcessRecords,
        now: Callable[[], datetime],
        log: Callable[[str, str, StderrRing, str], None],
        outlives: bool,
    ) -> None:
        self._process_records, self._now, self._log = runs, now, log
        self._intake, self._children, self.starter, self._callback_base = intake, children, starter, callback_base
        self._outlives = outlives  # children outlive this host: another one takes their callbacks
        self._watches: dict[asyncio.Task[None], _WatchedChild] = {}

    async def submit(
        self,
        call: ToolCall,
        manifest: Manifest,
        launch: Launch,
        stdin: bytes,
        checkpoint: Checkpoint,
        advise: Callable[[Failure], None],
    ) -> Result:
        """Start the child and return its receipt; the child is supervised in the background.

        ``advise`` adds a next step to the failure of a child that ends without a callback.
        """
        if len(self._watches) >= MAX_CHILDREN:
            raise Failure(
                Reason.BUSY,
                Message("{count} tasks are running already.", count=len(self._watches)),
                hint=Message("Try again later."),
            )
        pending = self._intake.expect(call, timeout_s=manifest.timeout_s)
        tasks: tuple[Task, ...] = ()
        child: AsyncChild | None = None
        process: TimedProcess | None = None
        report: ChildReport | None = None
        try:
            async with limit_run_time(manifest.name, RECEIPT_S, Message("gave no receipt")):
                child, process = await self._start(manifest, launch, stdin, pending.token, checkpoint)
                report = await child.wait_receipt()
            answer = require_answer(manifest.name, report)
            result = read_plugin_result(manifest.name, answer, warnings=report.warnings)
            tasks = await self._intake.store_receipt(pending, json.dumps(answer, ensure_ascii=False), child.pid)
            crashpoint("task.receipt-stored")
        except asyncio.CancelledError:
            if child is not None:
                child.terminate()
            raise
        finally:
            if child is not None and process is not None:
                self._process_records.add(call.id, process, child.stderr, report)
                noise = "" if report is None else report.noise
                log = partial(self._log, manifest.name, call.id, child.stderr, noise)
                self._watch(
                    _WatchedChild(
                        child, pending, tasks, manifest.timeout_s, detached=manifest.detached, log=log, advise=advise
                    )
                )
            if not tasks:
                self._intake.close(pending)
        return _add_tasks(result, tasks)

    async def _start(
        self, manifest: Manifest, launch: Launch, stdin: bytes, token: str, checkpoint: Checkpoint
    ) -> tuple[AsyncChild, TimedProcess]:
        base = await self._callback_base() + token
        launch, base = add_callback(launch, base)
        extra = build_call_variables(manifest, request_address="127.0.0.1", callback_base=base)
        await confirm_start(checkpoint)
        spawned = await self.starter.spawn(launch, extra)
        crashpoint("task.process-started")
        await confirm_input(spawned, self._children, checkpoint)
        process = TimedProcess(spawned.pid, launch, self._now)
        child = AsyncChild(
            spawned,
            stdin,
            children=self._children,
            limits=manifest.limits,
            detached=manifest.detached,
            on_first_output=process.note_output,
        )
        return child, process

    def adopt(self, child: AdoptedChild, expected: PendingCall, tasks: tuple[Task, ...], *, left_s: float) -> None:
        """Supervise a child of an earlier run again; ``left_s`` is what remains of its total limit."""
        self._watch(
            _WatchedChild(child=child, expected=expected, tasks=tasks, timeout_s=max(0.0, left_s), detached=False)
        )

    async def close(self) -> None:
        """Release the children whose tasks outlive this host; stop the others and mark their tasks as interrupted."""
        for running, watch in list(self._watches.items()):
            running.cancel()
            ended = asyncio.ensure_future(watch.expected.wait_ended())
            await asyncio.wait({running})
            await asyncio.wait({ended}, timeout=0)
            outlives = self._outlives and not ended.done()
            ended.cancel()
            if outlives:
                await watch.child.release()
            else:
                why = Message("The server that took its callback was stopped.")
                await self._intake.end_open_tasks(watch.expected, TaskState.INTERRUPTED, why)
                await watch.child.terminate()

    def _watch(self, watch: _WatchedChild) -> None:
        if watch.tasks and self._outlives:
            watch.child.spare()
            crashpoint("task.spared")
        running = asyncio.create_task(self._supervise(watch) if watch.tasks else self._wait_or_terminate(watch.child))
        self._watches[running] = watch
        running.add_done_callback(self._unwatch)

    def _unwatch(self, running: "asyncio.Task[None]") -> None:
        self._watches.pop(running).log()

    async def _supervise(self, watch: _WatchedChild) -> None:
        pending = watch.expected
        ended = asyncio.ensure_future(pending.wait_ended())
        try:
            try:
                async with asyncio.timeout(watch.timeout_s):
                    await self._wait_for_end(watch, ended)
            except TimeoutError:
                await asyncio.wait({ended}, timeout=_LAST_CALLBACK_S)  # one may have come while the host stood still
                await retry_until_stored(self._intake.refresh, pending)
                why = Message("It ran past its total limit.")
                await retry_until_stored(self._intake.end_open_tasks, pending, TaskState.TIMED_OUT, why)
            if not ended.done():
                failure = explain_missing_callback(watch.child.stderr)
                watch.advise(failure)
                reason = add_hint(failure.message, failure.hint)
                await retry_until_stored(self._intake.end_open_tasks, pending, TaskState.FAILED, reason)
            await pending.wait_ended()
            if pending.is_answered:
                await self._wait_or_terminate(watch.child)
            else:
                await watch.child.terminate()
        finally:
            ended.cancel()
            self._intake.close(pending)

    async def _wait_for_end(self, watch: _WatchedChild, ended: "asyncio.Future[TaskState]") -> None:
        """Wait until the task has ended, or until the process has and no callback can come any more."""
        exited = asyncio.ensure_future(watch.child.wait())
        either: set[asyncio.Future[Any]] = {ended, exited}
        progress: JsonObject = {}
        try:
            while not ended.done() and not exited.done():
                await asyncio.wait(either, timeout=_POLL_S, return_when=asyncio.FIRST_COMPLETED)
                await retry_until_stored(self._intake.refresh, watch.expected)
                progress = await self._report_progress(watch, progress)
            left = None if watch.detached else CALLBACK_GRACE_S
            while not ended.done() and (left is None or left > 0):
                await asyncio.wait({ended}, timeout=_POLL_S)
                await retry_until_stored(self._intake.refresh, watch.expected)
                left = None if left is None else left - _POLL_S
        finally:
            exited.cancel()

    async def _report_progress(self, watch: _WatchedChild, last: JsonObject) -> JsonObject:
        lines = watch.child.stderr.last_text(4096).splitlines()
        report = next((one for line in reversed(lines) if (one := parse_progress(line))), None)
        if report is None:
            return last
        now: JsonObject = {"done": last.get("done", 0.0) if report.done is None else report.done, "text": report.text}
        if now != last:
            for task in watch.tasks:
                await retry_until_stored(self._intake.report_progress, task.id, now)
        return now

    async def _wait_or_terminate(self, child: AsyncChild | AdoptedChild) -> None:
        try:
            async with asyncio.timeout(EXIT_GRACE_S):
                await child.wait()
        except TimeoutError:
            await child.terminate()


def _add_tasks(result: Result, tasks: tuple[Task, ...]) -> Result:
    """Return the receipt with the tasks that it opened in its data."""
    if not tasks:
        return result
    opened: JsonObject = {"tasks": [{"id": task.id, "plugin": task.plugin, "task_id": task.task_id} for task in tasks]}
    return replace(result, data={**result.data, **opened})


@dataclass(frozen=True, slots=True)
class _BackgroundTask:
    """The surviving processes of one call, and the task that stands for them."""

    survivors: Survivors
    expected: PendingCall
    timeout_s: float


class BackgroundWork:
    """The background tasks of one host. Belongs to one event loop."""

    def __init__(self, intake: TaskIntake, children: Children) -> None:
        self._intake, self._children = intake, children
        self._running: dict[asyncio.Task[None], _BackgroundTask] = {}

    async def track(self, call: ToolCall, remainder: Survivors, *, timeout_s: float) -> Task | None:
        """Make a task of surviving processes; None when there is no room for it, and then they are stopped."""
        if len(self._running) >= MAX_BACKGROUND_TASKS:
            self.stop(remainder)
            return None
        try:
            pending = self._intake.expect(call, timeout_s=timeout_s)
            try:
                task = await self._intake.begin_task(pending, call.id.replace("#", "-"))
            except BaseException:
                self._intake.close(pending)
                raise
        except Failure:  # too many tasks of all kinds
            self.stop(remainder)
            return None
        except BaseException:
            self.stop(remainder)
            raise
        work = _BackgroundTask(remainder, pending, timeout_s)
        running = asyncio.create_task(self._supervise(work))
        self._running[running] = work
        running.add_done_callback(self._running.pop)
        return task

    def stop(self, remainder: Survivors) -> None:
        """Stop surviving processes without a task."""
        remainder.close()
        self._children.end(remainder.pid)

    async def close(self) -> None:
        """Stop everything; the tasks are marked as interrupted."""
        for running, work in list(self._running.items()):
            running.cancel()
            await asyncio.wait({running})
            why = Message("The server that watched over it was stopped.")
            await self._intake.end_open_tasks(work.expected, TaskState.INTERRUPTED, why)
            self.stop(work.survivors)

    async def _supervise(self, work: _BackgroundTask) -> None:
        ended = asyncio.ensure_future(work.expected.wait_ended())
        pid = work.survivors.pid
        try:
            try:
                async with asyncio.timeout(work.timeout_s):
                    while not ended.done() and self._children.has_survivors(pid):
                        await asyncio.wait({ended}, timeout=_POLL_S)
                        await retry_until_stored(self._intake.refresh, work.expected)
            except TimeoutError:
                why = Message("It ran past its limit.")
                await retry_until_stored(self._intake.end_open_tasks, work.expected, TaskState.TIMED_OUT, why)
            if not ended.done():
                why = Message("Its processes have ended.")
                await retry_until_stored(self._intake.end_open_tasks, work.expected, TaskState.SUCCEEDED, why)
            await self._children.stop_survivors(pid)
            work.survivors.close()
        finally:
            ended.cancel()
            self._intake.close(work.expected)


async def retry_until_stored(step: Callable[..., Awaitable[None]], *arguments: object) -> None:
    """Repeat ``step`` while the store cannot be used: a supervisor that gave up would abandon its child."""
    while True:
        try:
            return await step(*arguments)
        except StorageError as error:
            _log.warning("a task is watched on, though nothing can be stored: %s", error)
            await asyncio.sleep(_RETRY_S)
