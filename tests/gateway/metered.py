"""A server that meters its own event loop: how long the longest stall was, by the clock and in work of its own.

As a program: ``python -m tests.gateway.metered HOME PROJECT``. It prints its address, then for each line on
stdin the longest stall and the most memory since the last one, and how slow this machine is at work that is always
the same.
"""

import asyncio
import dataclasses
import json
import sys
import time
from pathlib import Path

from toolyard.config import load_config
from toolyard.web.server.lifecycle import Server, ServerOptions

BEAT_S = 0.005
USUAL_S = 0.006  # for the work of ``slowness`` on the machine for which the limits were made


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

    def take(self, slow: float) -> str:
        line = json.dumps({**dataclasses.asdict(self), "slow": slow, **_measure_memory()})
        self.wall_ms = self.work_ms = 0.0
        return line


async def main(home: str, project: str) -> None:
    server = Server(load_config(Path(project), Path(home)), ServerOptions(port=0))
    await server.start()
    meter = Meter()
    beating = asyncio.create_task(meter.run())
    _tell(server.url)
    while await asyncio.to_thread(sys.stdin.readline):
        _tell(meter.take(await asyncio.to_thread(slowness)))
    beating.cancel()
    await server.stop()


def slowness() -> float:
    """How many times longer this machine needs than the usual one, at least 1."""
    tries = []
    for _ in range(5):
        began = time.thread_time()
        sum(number % 7 for number in range(100_000))
        tries.append(time.thread_time() - began)
    return max(1.0, min(tries) / USUAL_S)


def _measure_memory() -> dict[str, float]:
    """The memory that is resident now, and the most that was since this was asked last."""
    status = Path("/proc/self/status").read_text("ascii")
    lines = dict(line.split(":", 1) for line in status.splitlines())
    Path("/proc/self/clear_refs").write_text("5", "ascii")
    return {name: int(lines[key].split()[0]) / 1024 for name, key in (("peak_mib", "VmHWM"), ("now_mib", "VmRSS"))}


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    import uvloop

    uvloop.run(main(*sys.argv[1:]))
