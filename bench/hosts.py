"""Calls that run on another host: how many a second, and how soon they start, against bare PgQueuer in the same run.

Workers are processes of their own on the same machine, and their tool does nothing, so what is measured is the way
there and back. A call is whole: permitted, journalled, sent, claimed, run, answered, journalled again. A bare job is
enqueued and run, by as many senders at a time, with nothing said about how it ended.
"""

import asyncio
import contextlib
import json
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import asyncpg
import uvloop
from pgqueuer.core.qm import QueueManager
from pgqueuer.models import Job
from pgqueuer.queries import Queries

from tests import postgres
from toolyard.config import load_config
from toolyard.engine.clock import SystemClock
from toolyard.hosts.cluster_key import ClusterSigner
from toolyard.hosts.host import Host
from toolyard.hosts.queue import Queue
from toolyard.protocol.tool import Checkpoint, Result, ToolCall, ToolSpec
from toolyard.storage.postgres import PostgresStore
from toolyard.yard.yard import Yard

CALLS = 2000
TOGETHER = 256  # senders at a time
ALONE = 200
WORKERS = (1, 3)
AT_ONCE = 64  # calls that a worker runs at a time
_SPEC = ToolSpec(name="Nothing", description="Does nothing.", parameters={"type": "object"}, verbatim=True)
Measured = tuple[float, list[float]]  # calls per second; seconds from sent to begun


def main() -> None:
    print(f"\n{'calls on another host':<44} {'per second':>10} {'x bare':>8} {'to start p50':>14} {'p99':>9}")
    postgres.shared_server()
    for number in WORKERS:
        bare = uvloop.run(_measure_bare(number))
        _report(f"bare PgQueuer, workers: {number}", bare, bare[0])
        _report(f"calls, workers: {number}", uvloop.run(_measure_calls(number)), bare[0])


def _report(name: str, measured: Measured, bare: float) -> None:
    rate, waits = measured
    p50, p99 = statistics.median(waits) * 1000, statistics.quantiles(waits, n=100)[98] * 1000
    print(f"{name:<44} {rate:>10.0f} {rate / bare:>8.2f} {p50:>11.1f} ms {p99:>6.1f} ms")


@dataclass
class Nothing:
    """Says when it began."""

    spec: ToolSpec = _SPEC

    async def run(self, call: ToolCall, checkpoint: Checkpoint) -> Result:
        return Result(data={"began": time.time()}, text="Done.")


class Source:
    def find(self, name: str) -> Nothing | None:
        return Nothing() if name == _SPEC.name else None

    def version(self) -> int:
        return 0

    def all(self) -> Iterable[Nothing]:
        return [Nothing()]


async def _measure_calls(workers: int) -> Measured:
    async with postgres.database(new=True) as url, _host(url, tools=False) as host, _workers("work", url, workers):
        while sum(_SPEC.name in seen.tools for seen in host.directory._hosts.values()) < workers:  # noqa: ASYNC110
            await asyncio.sleep(0.05)

        async def one() -> float:
            sent = time.time()
            began = (await host.yard.call("Nothing")).data["began"]
            assert isinstance(began, float)
            return began - sent

        return await _measure(one)


async def _measure(one: Callable[[], Awaitable[float]]) -> Measured:
    waits = [await one() for _ in range(ALONE)][10:]  # the first ones warm up
    room = asyncio.Semaphore(TOGETHER)

    async def in_turn() -> None:
        async with room:
            await one()

    begun = time.perf_counter()
    await asyncio.gather(*(in_turn() for _ in range(CALLS)))
    return CALLS / (time.perf_counter() - begun), waits


@contextlib.asynccontextmanager
async def _host(url: str, *, tools: bool) -> AsyncIterator[Host]:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "project").mkdir()
        config = load_config(Path(folder) / "project", Path(folder) / "home")
        config = replace(config, settings=replace(config.settings, plugins_at_once=AT_ONCE))
        clock = SystemClock()
        store = await PostgresStore.open(url)
        yard = Yard(config, clock=clock, store=store)
        if tools:
            yard.tools.prepend_source(Source())
        host = Host(yard, store, await Queue.open(url), clock, signer=ClusterSigner(), serves=tools)
        await host.open()
        yield host
        await host.close(1.0)


@contextlib.asynccontextmanager
async def _workers(kind: str, url: str, number: int) -> AsyncIterator[list[asyncio.StreamReader]]:
    """What they say, line by line."""
    command = [sys.executable, "-m", "bench.hosts", kind, url]
    pipe = asyncio.subprocess.PIPE
    started = [await asyncio.create_subprocess_exec(*command, stdout=pipe, stdin=pipe) for _ in range(number)]
    heard = [one.stdout for one in started if one.stdout is not None]
    try:
        for said in heard:
            assert await said.readline() == b"ready\n"
        yield heard
    finally:
        for one in started:
            one.kill()
            await one.wait()


async def _work(url: str) -> None:
    async with _host(url, tools=True):
        await _ready()


async def _ready() -> None:
    """Until whoever measures is gone."""
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.read)


async def _measure_bare(workers: int) -> Measured:
    async with postgres.database(new=True) as url, asyncpg.create_pool(url, min_size=3, max_size=3) as pool:
        queries = Queries.from_asyncpg_pool(pool)
        await queries.install()
        async with _workers("bare", url, workers) as heard:
            begun: dict[int, asyncio.Future[float]] = {}
            readers = [asyncio.create_task(_hear(said, begun)) for said in heard]

            async def one() -> float:
                number = len(begun)
                begun[number] = asyncio.get_running_loop().create_future()
                sent = time.time()
                await queries.enqueue("bare", str(number).encode())
                return await begun[number] - sent

            measured = await _measure(one)
        await asyncio.wait(readers)
    return measured


async def _hear(said: asyncio.StreamReader, begun: "dict[int, asyncio.Future[float]]") -> None:
    async for line in said:
        number, when = json.loads(line)
        begun[number].set_result(when)


async def _bare(url: str) -> None:
    db = await asyncpg.connect(url)
    crew = QueueManager(Queries.from_asyncpg_connection(db))

    @crew.entrypoint("bare")
    async def take(job: Job) -> None:
        print(json.dumps([int(job.payload or b"0"), time.time()]), flush=True)

    running = asyncio.create_task(crew.run(batch_size=AT_ONCE // 2, dequeue_timeout=timedelta(seconds=1)))
    await _ready()
    running.cancel()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        uvloop.run({"work": _work, "bare": _bare}[sys.argv[1]](sys.argv[2]))
    else:
        main()
