"""A server that meters its own event loop: how long the longest stall was, by the clock and in work of its own.

As a program: ``python -m tests.gateway.metered HOME PROJECT``. It prints its address, then for each line on
stdin the longest stall since the last one.
"""

import asyncio
import dataclasses
import json
import sys
import time
from pathlib import Path

from toolyard.config import load
from toolyard.web.server import Options, Server

BEAT_S = 0.005


@dataclasses.dataclass
class Meter:
    wall_ms: float = 0.0
    work_ms: float = 0.0  # of the loop's own thread: what a busy machine takes away is not the server's

    async def run(self) -> None:
        wall, work = time.perf_counter(), time.thread_time()
        while True:
            await asyncio.sleep(BEAT_S)
            wall_now, work_now = time.perf_counter(), time.thread_time()
            self.wall_ms = max(self.wall_ms, (wall_now - wall - BEAT_S) * 1000)
            self.work_ms = max(self.work_ms, (work_now - work) * 1000)
            wall, work = wall_now, work_now

    def take(self) -> str:
        told = json.dumps(dataclasses.asdict(self))
        self.wall_ms = self.work_ms = 0.0
        return told


async def main(home: str, project: str) -> None:
    server = Server(load(Path(project), Path(home)), Options(port=0))
    await server.start()
    meter = Meter()
    beating = asyncio.create_task(meter.run())
    _tell(server.url)
    while await asyncio.to_thread(sys.stdin.readline):
        _tell(meter.take())
    beating.cancel()
    await server.stop()


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    import uvloop

    uvloop.run(main(*sys.argv[1:]))
