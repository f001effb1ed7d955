"""The queue of calls to other hosts: PgQueuer's, in a schema of its own beside the shared store.

An entry is only the id of a call; what is to be done, and whether it still is, stands in its record. So an entry may
come twice, as PgQueuer gives one again whose host has not been heard of for ``HEARTBEAT_S``, and nothing runs twice.
The limit of a tool holds for all hosts together: PgQueuer keeps it in the database.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from toolyard.errors import StorageError
from toolyard.message import Message
from toolyard.storage.postgres_server import PASSING, PostgresServer, install_command

try:
    import asyncpg
    from pgqueuer.adapters.drivers.asyncpg import AsyncpgDriver
    from pgqueuer.adapters.persistence.qb import QueryBuilderEnvironment, QueryQueueBuilder, QuerySchedulerBuilder
    from pgqueuer.adapters.persistence.queries import Queries
    from pgqueuer.core.qm import QueueManager
    from pgqueuer.domain.errors import PgqException, RetryRequested
    from pgqueuer.domain.settings import DBSettings, Durability
    from pgqueuer.domain.types import Channel
    from pgqueuer.models import Job
except ModuleNotFoundError as missing:
    raise StorageError(Message("many hosts need two more packages: {command}", command=install_command())) from missing

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

HEARTBEAT_S: Final = 3.0
_LOOK_S = 1.0  # how long an idle host waits before it looks for the entries of dead ones
_MAX_TOGETHER = 500
_LOG_KEPT = timedelta(minutes=10)
_LOCK = 0x746F6F6C71756575  # "toolqueu"
_SCHEMA = "toolyard_queue"

_log = logging.getLogger(__name__)

Run = Callable[[str], Awaitable[None]]


def _settings() -> DBSettings:
    """Return settings with every name given: PgQueuer would read environment variables such as CHANNEL for others."""
    return DBSettings(
        prefix="", db_schema=_SCHEMA, channel=Channel("toolyard_queue"), function="fn_pgqueuer_changed",
        statistics_table="pgqueuer_statistics", queue_status_type="pgqueuer_status", queue_table="pgqueuer",
        queue_table_log="pgqueuer_log", trigger="tg_pgqueuer_changed", schedules_table="pgqueuer_schedules",
        durability=Durability.balanced, widen_id=True,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class _Entry:
    tool: str
    call_id: str
    key: str | None  # of two entries with the same key one is enough
    put: "asyncio.Future[None]"


class Queue:
    """The queue, for one event loop. Made by ``open``."""

    def __init__(self, server: PostgresServer) -> None:
        self._server, self._settings = server, _settings()
        self._waiting: list[_Entry] = []
        self._putting: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, url: str) -> "Queue":
        """Open the queue, and make its tables if they are missing. Raises StorageError."""
        queue = cls(await PostgresServer.connect_to(url))
        try:
            await queue._server.run(queue._prepare)
        except BaseException:
            await queue.close()
            raise
        return queue

    async def put(self, tool: str, call_id: str, *, key: str | None = None) -> None:
        """Put a call into the queue; it is on the disk on return. Concurrent calls share the next statement."""
        entry = _Entry(tool, call_id, key, asyncio.get_running_loop().create_future())
        self._waiting.append(entry)
        if self._putting is None or self._putting.done():
            self._putting = asyncio.create_task(self._put_all(), name="toolyard-queue-writer")
        await entry.put

    async def clear_log(self) -> None:
        """Clear the log of finished entries, which nobody here reads."""
        sql = f"DELETE FROM {_SCHEMA}.pgqueuer_log WHERE created < now() - $1::interval"  # noqa: S608 no value is in it
        await self._server.run(lambda db: db.execute(sql, _LOG_KEPT))

    async def open_consumer(self) -> tuple[QueueManager, asyncpg.Connection]:
        """Open a connection of its own, and yield what takes entries out of the queue over it."""
        db = await self._server.connect()
        return QueueManager(self._queries(db), channel=self._settings.channel), db

    async def close(self) -> None:
        if self._putting is not None:
            await asyncio.wait([self._putting])
        await self._server.close()

    def _queries(self, db: "asyncpg.Connection | PoolConnectionProxy") -> Queries:
        named = self._settings
        return Queries(
            AsyncpgDriver(db), QueryBuilderEnvironment(named), QueryQueueBuilder(named), QuerySchedulerBuilder(named)
        )

    async def _prepare(self, db: "PoolConnectionProxy") -> None:
        queries = self._queries(db)
        await db.execute("SELECT pg_advisory_lock($1)", _LOCK)  # hosts that start at the same moment
        try:
            if await queries.schema_is_installed():
                await queries.upgrade()
            else:
                await queries.install()
        finally:
            await db.execute("SELECT pg_advisory_unlock($1)", _LOCK)

    async def _put_all(self) -> None:
        while self._waiting:
            entries, self._waiting = self._waiting[:_MAX_TOGETHER], self._waiting[_MAX_TOGETHER:]
            try:
                await self._server.run(partial(self._put, entries=entries))
            except StorageError as error:
                for entry in entries:
                    if not entry.put.done():
                        entry.put.set_exception(error)
            else:
                for entry in entries:
                    if not entry.put.done():
                        entry.put.set_result(None)

    async def _put(self, db: "PoolConnectionProxy", entries: list[_Entry]) -> None:
        await self._queries(db).enqueue(
            [entry.tool for entry in entries], [entry.call_id.encode() for entry in entries], [0] * len(entries),
            dedupe_key=[entry.key for entry in entries], on_conflict="skip",
        )  # fmt: skip


class QueueConsumer:
    """Takes the entries of some tools out of the queue and runs their calls, ``at_once`` at a time."""

    def __init__(self, queue: Queue, run: Run, *, at_once: int, batch: int) -> None:
        self._queue, self._run, self._batch = queue, run, batch
        self._at_once = max(at_once, 2 * batch)
        self._tools: Mapping[str, int] = {}
        self._crew: QueueManager | None = None
        self._stopping = False
        self._wanted = asyncio.Event()

    def set_tools(self, tools: Mapping[str, int]) -> None:
        """Set the tools of this consumer and the limit of each, 0 for none."""
        self._tools = dict(tools)
        if tools:
            self._wanted.set()
        if self._crew is None:
            return
        have = {str(name): one.parameters.concurrency_limit for name, one in self._crew.entrypoint_registry.items()}
        for entry in [entry for entry in self._crew.entrypoint_registry if tools.get(entry) != have[entry]]:
            del self._crew.entrypoint_registry[entry]
        for name in [name for name, limit in tools.items() if have.get(name) != limit]:
            self._crew.entrypoint(name, concurrency_limit=tools[name], accepts_context=False)(self._run_job)

    async def serve(self) -> None:
        """Serve until ``stop`` is called and the running calls have ended. Costs nothing before there is a tool."""
        await self._wanted.wait()
        while not self._stopping:
            try:
                self._crew, db = await self._queue.open_consumer()
                try:
                    self.set_tools(self._tools)
                    await self._consume(self._crew)
                finally:
                    db.terminate()
            except (*PASSING, asyncpg.PostgresError, PgqException) as error:
                _log.warning("the queue cannot be read: %s", error)
                await asyncio.sleep(_LOOK_S)

    def stop(self) -> None:
        """Take nothing new."""
        self._stopping = True
        self._wanted.set()
        if self._crew is not None:
            self._crew.shutdown.set()

    async def _consume(self, crew: QueueManager) -> None:
        if self._stopping:
            return
        await crew.run(
            dequeue_timeout=timedelta(seconds=_LOOK_S), batch_size=self._batch, max_concurrent_tasks=self._at_once,
            shutdown_on_listener_failure=True, heartbeat_timeout=timedelta(seconds=HEARTBEAT_S),
            log_aggregation_interval=timedelta(0),
        )  # fmt: skip

    async def _run_job(self, job: Job) -> None:
        try:
            await self._run((job.payload or b"").decode())
        except StorageError as error:
            raise RetryRequested(timedelta(seconds=_LOOK_S), str(error)) from error
