"""The reaper of lost hosts: within seconds everything that they left has an end, and a true one.

- A call that one of them ran ends as interrupted, or is put into the queue once more if its tool is idempotent.
- A call that one of them sent is taken back, or stopped where it runs: nobody waits for it any more.
- Its own calls, runs of schedules and questions end as interrupted, as after any crash (``engine.recovery``).
- A task whose process ran on a machine where nobody is left to see it gets a while for a callback, which may come to
  any host, and is then interrupted too.

The host that missed another one first does it for all. If it dies too, the first of those that are there does it at its
next round. Everything is a compare-and-set, so it does no harm when two do it at once.
"""

from collections.abc import AsyncIterator

from toolyard.engine.clock import Clock
from toolyard.engine.recovery import GRACE_S, RecoveryReport
from toolyard.hosts.directory import Directory
from toolyard.hosts.queue import Queue
from toolyard.hosts.remote_calls import RemoteCalls
from toolyard.message import Message
from toolyard.protocol.remote_call import REMOTE_CALL, RemoteCall, RemoteCallState
from toolyard.protocol.store import PageCursor, Query
from toolyard.protocol.task import Task, TaskState
from toolyard.yard.yard import Yard

SWEEP_S = 15.0
_PAGE = 500
_OPEN = (RemoteCallState.QUEUED, RemoteCallState.RUNNING)


class HostReaper:
    def __init__(self, yard: Yard, clock: Clock, directory: Directory, calls: RemoteCalls, queue: Queue) -> None:
        self._yard, self._clock, self._directory, self._calls, self._queue = yard, clock, directory, calls, queue
        self._swept = -SWEEP_S

    async def poll(self) -> None:
        """Refresh the hosts, and settle what lost ones left; the leader also does so periodically."""
        missed = await self._directory.refresh()
        now = self._clock.monotonic()
        if missed or (now - self._swept > SWEEP_S and self._directory.is_leader()):
            self._swept = now
            await self._sweep()

    async def _sweep(self) -> None:
        async for call in self._iterate_open_calls():
            if call.owner and not self._directory.is_alive(call.owner):
                await self._settle_call(call)
            elif not self._directory.is_alive(call.sender):
                await self._calls.stop(call.id)
        await self._end_lost_tasks(await self._yard.recover(self._directory.is_alive))
        await self._calls.remove_old_records()
        await self._directory.remove_old_records()
        await self._queue.clear_log()

    async def _settle_call(self, call: RemoteCall) -> None:
        if call.can_run_again:
            await self._queue.put(call.tool, call.id, key=f"{call.id}/{call.runs}")
        else:
            await self._calls.interrupt(call)

    async def _end_lost_tasks(self, report: RecoveryReport) -> None:
        machines, now = self._directory.list_machines(), self._clock.now().timestamp()
        for task in report.left:
            if self._is_unobserved(task, machines) and now > task.updated + GRACE_S:
                why = Message("task.machine_gone", "The machine that ran it is gone: what it had done is not known.")
                await self._yard.tasks.end(task.id, TaskState.INTERRUPTED, message=why)

    def _is_unobserved(self, task: Task, machines: set[str]) -> bool:
        return task.process is not None and task.process.host not in machines and not self._is_detached(task.plugin)

    async def _iterate_open_calls(self) -> AsyncIterator[RemoteCall]:
        after: PageCursor | None = None
        while page := await self._yard.store.find(REMOTE_CALL, Query(states=_OPEN), limit=_PAGE, after=after):
            after = PageCursor(at=page[-1].created, id=page[-1].id)
            for record in page:
                yield RemoteCall.from_record(record)

    def _is_detached(self, plugin: str) -> bool:
        installed = self._yard.plugins.plugins.get(plugin)
        return bool(installed and installed.manifest and installed.manifest.detached)
