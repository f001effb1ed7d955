"""A small host, run as a program by tests that measure or kill it: ``host.py MARK PROGRAM ARGUMENT...``.

Runs one program of the zoo and prints one line of JSON: how much the host grew, and how the call ended. With
``receipt`` before the program it waits for a receipt only, spares the child, says so and goes on until it is killed;
with ``groups`` it does without numbers. In the variable KILLED_AT it finds the crash point at which it is killed.
"""

import asyncio
import json
import os
import re
import signal
import sys
from pathlib import Path

from tests.plugins.children import Keeper
from toolyard.crashpoint import arm
from toolyard.plugins.long_work.task_child import AsyncChild
from toolyard.plugins.process.child_report import require_answer
from toolyard.plugins.process.children import Children
from toolyard.protocol.envelope import Failure
from toolyard.protocol.manifests.manifest import Limits


def peak_kib() -> int:
    match = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text("utf-8"))
    assert match
    return int(match[1])


async def measure(keeper: Keeper, program: str, *arguments: str) -> None:
    if "KILLED_AT" not in os.environ:
        await keeper.run("echo.sh")
    before = peak_kib()
    try:
        outcome: object = require_answer("Measured", await keeper.run(program, *arguments))
    except Failure as failure:
        outcome = failure.reason
    _say({"grown_kib": peak_kib() - before, "outcome": outcome})


async def receive(keeper: Keeper, program: str, *arguments: str) -> None:
    child = await keeper.spawn(program, *arguments)
    living = AsyncChild(child, b"{}", children=keeper.children, limits=Limits())
    await living.wait_receipt()
    living.spare()
    _say({"pid": living.pid, "guardian": keeper.children.guardian_pid})
    await living.wait()


def _say(what: object) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


async def main(mark: str, *words: str) -> None:
    if point := os.environ.get("KILLED_AT"):
        arm(lambda name: os.kill(os.getpid(), signal.SIGKILL) if name == point else None)
    children = Children(numbered=words[0] != "groups")
    keeper = Keeper(children)
    keeper.mark = mark
    try:
        if words[0] == "receipt":
            await receive(keeper, *words[1:])
        else:
            await measure(keeper, *words[words[0] == "groups" :])
    finally:
        await children.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
