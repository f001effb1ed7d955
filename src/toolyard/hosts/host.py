"""A host among many: it announces itself, sees the others, runs calls for them and sends them its own.

Made by ``join_hosts``. ``hosts.open_yard`` opens a Yard in the same way for one machine and for many, and loads this
module only where there is a database.

The reaper settles what lost hosts left, within seconds, and truly: a call that one of them ran ends as interrupted, or
is put into the queue once more if its tool is idempotent; one that it sent is taken back, or stopped where it runs. Its
own calls, runs of schedules and questions end as interrupted, as after any crash (``engine.recovery``). A task whose
process ran where nobody is left to see it gets a while for a callback, which may come to any host. The host that missed
another one first does it for all; if it dies too, the first of those that are there does it at its next round.
Everything is a compare-and-set, so it does no harm when two do it at once.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

from toolyard.config import Config
from toolyard.engine.clock import Clock, SystemClock
from toolyard.engine.recovery import GRACE_S, RecoveryReport
from toolyard.engine.registry import Registry
from toolyard.engine.runner import Runner
from toolyard.errors import StorageError
from toolyard.hosts.cluster_key import ClusterSigner, require_same_key
from toolyard.hosts.directory import POLL_S, Announcement, Directory
from toolyard.hosts.lease import HEARTBEAT_S, HostLease
from toolyard.hosts.queue import Queue, QueueConsumer
from toolyard.hosts.remote_calls import RemoteCalls
from toolyard.hosts.remote_tools import RemoteTools, SignalRouter
from toolyard.hosts.worker import Claims, Worker
from toolyard.message import Message
from toolyard.plugins.plugin_host import PluginTool
from toolyard.protocol.manifests.spec import list_forms
from toolyard.protocol.records.remote_call import REMOTE_CALL, RemoteCall, RemoteCallState
from toolyard.protocol.records.task_record import Task, TaskState
from toolyard.protocol.store import PageCursor, Query
from toolyard.protocol.tool import Tool, ToolSpec
from toolyard.storage.postgres import PostgresStore
from toolyard.storage.secret_key import ClusterKey
from toolyard.yard.plugin_source import HostOptions
from toolyard.yard.yard import Yard

DRAIN_S = 20.0  # for calls that run when the host is asked to stop
_CATCH_UP_S = 5.0
_BATCH = 32
_log = logging.getLogger(__name__)
SWEEP_S = 15.0
_PAGE = 500
_OPEN = (RemoteCallState.QUEUED, RemoteCallState.RUNNING)


class Host:
    """A Yard as one of many hosts. ``serves``: it runs calls for others and settles what dead hosts left."""

    def __init__(
        self, yard: Yard, store: PostgresStore, queue: Queue, clock: Clock, *, signer: ClusterSigner, serves: bool
    ) -> None:
        self.yard, self._queue, self._serves = yard, queue, serves
        self._own = yard.tools.sources
        self._lease = HostLease(store.leases, yard.boot.name, take_name=self._take_name)
        self.directory = Directory(store, store.leases, clock, yard.boot, self._lease, signer)
        self._announcement = Announcement(store, clock, yard.boot, signer)
        self._calls = calls = RemoteCalls(store, clock, host=yard.boot.name, signer=signer)
        claims = Claims(calls, self._lease)
        self._worker = Worker(calls, claims, self._build_runner(clock, claims), self.directory)
        self._moved, self._missed = asyncio.Event(), asyncio.Event()
        self._signals = SignalRouter(store, stop=self._worker.cancel, moved=self._moved.set, missed=self._missed.set)
        self._reaper = HostReaper(yard, clock, self.directory, calls, queue)
        at_once = yard.config.settings.plugins_at_once
        self._lane = QueueConsumer(queue, self._worker.run, at_once=at_once, batch=max(1, min(_BATCH, at_once // 2)))
        # PgQueuer frees the place of a finished call with its batch: with a batch of one, at once.
        self._limited = QueueConsumer(queue, self._worker.run, at_once=at_once, batch=1)
        self._here: frozenset[str] = frozenset()
        self._tasks: list[asyncio.Task[None]] = []
        self._serving: list[asyncio.Task[None]] = []
        self._closed = False
        remote = RemoteTools(
            self.directory,
            calls,
            queue,
            self._signals,
            clock,
            lambda: self._here,
            yard.runs.put,
            self._lease.earliest_store_time,
        )
        yard.tools.prepend_source(remote)
        yard.state.journal.confirm_owner = self._lease.confirm

    async def open(self) -> None:
        await self._lease.renew()
        await self._announce()
        await self._refresh_directory()
        works = (self._send_heartbeats(), self._announce_changes(), self._poll_hosts(), self._catch_up())
        self._tasks = [self._start_task(work) for work in works]
        if self._serves:
            self._serving = [self._start_task(self._lane.serve()), self._start_task(self._limited.serve())]

    async def close(self, grace_s: float = DRAIN_S) -> None:
        """Take nothing new, wait for what runs, stop the rest, and close the Yard."""
        if self._closed:
            return
        self._closed = True
        self._serves = False  # it is still there, and offers nothing
        await self._log_storage_error(self._announce())
        self._lane.stop()
        self._limited.stop()
        if self._serving:
            _, late = await asyncio.wait(self._serving, timeout=grace_s)
            if late:
                await self._worker.stop()
                await asyncio.wait(late, timeout=HEARTBEAT_S)
        for task in (*self._serving, *self._tasks):
            task.cancel()
        await asyncio.gather(*self._serving, *self._tasks, return_exceptions=True)
        await self._log_storage_error(self._announcement.withdraw())  # when nobody is left to announce it again
        await self._log_storage_error(self._lease.release())
        await self.yard.close()
        await self._queue.close()

    def own_tools(self) -> Iterator[Tool]:
        """Return the tools of this host that others may call: all but the built-in ones, which every host has."""
        return (tool for source in self._own for tool in source.all())

    async def _announce(self) -> None:
        specs = [_to_offered(tool) for tool in self.own_tools()] if self._serves else []
        self._here = frozenset(tool.spec.name for tool in self.own_tools())
        self._lane.set_tools({spec.name: 0 for spec in specs if not spec.at_once})
        self._limited.set_tools({spec.name: spec.at_once for spec in specs if spec.at_once})
        await self._announcement.publish(specs, keeps=self._serves, term=self._lease.term)

    async def _send_heartbeats(self) -> None:
        """Renew the lease, and wait for nothing else."""
        while True:
            await asyncio.sleep(HEARTBEAT_S)
            await self._log_storage_error(self._lease.renew())

    async def _announce_changes(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_S)
            await self._log_storage_error(self._announce())

    async def _catch_up(self) -> None:
        """Do what could not be done, or was not heard, while the database was away."""
        while True:
            self._missed.clear()
            await self._log_storage_error(self.yard.state.journal.catch_up())
            await self._log_storage_error(self.yard.state.tasks.reclaim())
            await self._log_storage_error(self._worker.cancel_stopped())
            try:
                async with asyncio.timeout(_CATCH_UP_S):
                    await self._missed.wait()
            except TimeoutError:
                pass

    def _take_name(self, owner: str) -> None:
        """Own what begins from now on under this name; what earlier terms began belongs to nobody any more."""
        _log.log(logging.WARNING if self._lease.term > 1 else logging.DEBUG, "this host is %s now", owner)
        self.yard.state.take_owner_name(owner)
        self._calls.host = owner

    async def _poll_hosts(self) -> None:
        while True:
            await self._log_storage_error(self._reaper.poll() if self._serves else self._refresh_directory())
            self._moved.clear()
            try:
                async with asyncio.timeout(POLL_S):
                    await self._moved.wait()
            except TimeoutError:
                pass

    async def _refresh_directory(self) -> None:
        await self.directory.refresh(settles=False)

    async def _log_storage_error(self, work: Coroutine[Any, Any, None]) -> None:
        """Await ``work`` and log a StorageError: the next poll, here or on another host, does it again."""
        try:
            await work
        except StorageError as error:
            _log.warning("%s", error)

    def _start_task(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        return asyncio.create_task(work)

    def _build_runner(self, clock: Clock, claims: Claims) -> Runner:
        """Runs calls that another host has permitted and journals: only with the tools of this host."""
        yard = self.yard
        return Runner(
            Registry((), self._own),
            root=yard.project,
            clock=clock,
            journal=claims,
            mask=yard.mask,
            processes=yard.runs.take,
        )


async def join_hosts(
    config: Config,
    database: str,
    *,
    outside: HostOptions = HostOptions(),  # noqa: B008 it is frozen
    clock: Clock | None = None,
    serves: bool = True,
) -> Host:
    """Join the hosts that share ``database``; the Yard of the new host is closed with it."""
    clock = clock or SystemClock()
    async with AsyncExitStack() as undo:
        queue = await Queue.open(database)
        undo.push_async_callback(queue.close)
        keys = ClusterKey(config.settings.cluster_key)
        store = await PostgresStore.open(database, keys)
        undo.push_async_callback(store.close)
        await require_same_key(store, store.leases, keys.read(), clock.now().timestamp(), serves=serves)
        yard = Yard(config, clock=clock, store=store, outside=outside)
        undo.push_async_callback(yard.close)
        host = Host(yard, store, queue, clock, signer=ClusterSigner(keys.signing), serves=serves)
        undo.push_async_callback(host.close)
        await host.open()
        undo.pop_all()
    return host


def _to_offered(tool: Tool) -> ToolSpec:
    """Return the spec of a tool for other hosts: with its name for people, and the form of each command of a plugin."""
    if isinstance(tool, PluginTool):
        return replace(tool.spec, display_name=tool.manifest.display_name, forms=list_forms(tool.manifest))
    return tool.spec


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
        await self._end_lost_tasks(await self._yard.state.recover(self._directory.is_alive))
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
                why = Message("The machine that ran it is gone: what it had done is not known.")
                await self._yard.state.tasks.end(task.id, TaskState.INTERRUPTED, message=why)

    def _is_unobserved(self, task: Task, machines: set[str]) -> bool:
        return task.process is not None and task.process.host not in machines and not self._is_detached(task.plugin)

    async def _iterate_open_calls(self) -> AsyncIterator[RemoteCall]:
        after: PageCursor | None = None
        while page := await self._yard.state.store.find(REMOTE_CALL, Query(states=_OPEN), limit=_PAGE, after=after):
            after = PageCursor(at=page[-1].created, id=page[-1].id)
            for record in page:
                yield RemoteCall.from_record(record)

    def _is_detached(self, plugin: str) -> bool:
        installed = self._yard.plugins.plugins.get(plugin)
        return bool(installed and installed.manifest and installed.manifest.detached)
