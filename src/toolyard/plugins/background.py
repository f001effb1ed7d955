"""Background work of synchronous plugins: processes that continue after the answer, where the owner allows it.

The processes that continue are one task: it is listed, ends when its last process has ended, can be cancelled, and is
stopped at its limit. Its outputs are read and discarded, so that it never blocks. It does not outlive the host: when
the host ends it is stopped and marked as interrupted. There are at most ``MAX_BACKGROUND_TASKS`` at a time.
"""

import asyncio
from dataclasses import dataclass

from toolyard.message import Message
from toolyard.plugins.child import Survivors
from toolyard.plugins.children import Children
from toolyard.plugins.store_retry import retry_until_stored
from toolyard.protocol.call import ToolCall
from toolyard.protocol.failure import Failure
from toolyard.protocol.task import PendingCall, Task, TaskIntake, TaskState

MAX_BACKGROUND_TASKS = 256
_POLL_S = 0.5  # between two looks at the processes and the task


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
            why = Message("task.watching_host_ended", "The server that watched over it was stopped.")
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
                why = Message("task.past_limit", "It ran past its limit.")
                await retry_until_stored(self._intake.end_open_tasks, work.expected, TaskState.TIMED_OUT, why)
            if not ended.done():
                why = Message("task.processes_ended", "Its processes have ended.")
                await retry_until_stored(self._intake.end_open_tasks, work.expected, TaskState.SUCCEEDED, why)
            await self._children.stop_survivors(pid)
            work.survivors.close()
        finally:
            ended.cancel()
            self._intake.close(work.expected)
