"""A host with warm processes, run as a program by a test that kills it: ``warm_host.py FOLDER``. Prints their pids."""

import asyncio
import json
import sys
from pathlib import Path

from tests.plugins.test_warm_same import call, launch_of, make_warm, stand_by, starters
from tests.waiting import wait_until


async def main(folder: Path) -> None:
    forked = launch_of(folder, sys.executable, "main.py", "forked")
    waiting = launch_of(folder, sys.executable, "main.py", "waiting")
    async with starters() as (children, _, warm):
        await make_warm(children, warm, forked)
        await call(children, warm, forked)
        warm.servers.mark_unfit(warm.launch_key(waiting, {"CALL": "first"}), "for this test")
        await stand_by(children, warm, waiting)
        running = await warm.spawn(forked, {"CALL": "first"})
        await wait_until(lambda: bool(warm.servers.spares))
        pids = [*warm.servers.pids, *warm.standbys.pids, *warm.servers.spares, running.pid]
        sys.stdout.write(json.dumps(pids) + "\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
