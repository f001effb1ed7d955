"""A host whose disk fails it: run as a program, it says what each command came to before, during and after.

``python -m tests.crash.starved PLACE PORT fsync`` has every sync fail from some moment on; ``... PORT full`` stands on
a file system of its own, fills it, and makes room again; ``... PORT inodes`` does so with empty files.
"""

import asyncio
import errno
import os
import sys
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

from tests.crash.host import ack
from tests.crash.refuse import refuse
from tests.crash.scene import MovingClock, Scene
from toolyard.errors import ToolyardError
from toolyard.protocol.access import Effect
from toolyard.yard.yard import Yard


class Commands:
    """One of each command; each is told with what it came to."""

    def __init__(self, yard: Yard, clock: MovingClock, when: str) -> None:
        self.yard, self.clock, self.when = yard, clock, when

    async def all(self) -> None:
        await self.report("schedule", self.schedule)
        await self.report("rule", self.rule)
        await self.report("trust", self.trust)
        await self.report("count", self.count)
        await self.report("write", self.write)
        await self.report("edit", self.edit)

    async def report(self, command: str, work: Callable[[], Awaitable[str]]) -> None:
        try:
            id_, problem = await work(), ""
        except ToolyardError as error:
            id_, problem = "", str(error)
        ack("command", when=self.when, command=command, id=id_, problem=problem)

    async def schedule(self) -> str:
        at = (self.clock.now() + timedelta(days=1)).isoformat(timespec="seconds")
        record = await self.yard.state.schedules.submit(
            self.yard.calls.request("Count", {"n": f"later {self.when}"}), at=at
        )
        ack("schedule", id=record.id, state="scheduled")
        return record.id

    async def rule(self) -> str:
        record = await self.yard.state.approvals.add_rule("Write", self.when, Effect.DENY, by="owner")
        ack("rule", id=record.id, state="active")
        return record.id

    async def trust(self) -> str:
        plugin = self.yard.plugins.plugins.get("Count")
        if plugin is None:
            raise LookupError("Count")
        review = self.yard.plugins.trust.review(plugin, ())
        self.yard.plugins.trust.allow(review, at=self.when)
        ack("trusted", folder=str(plugin.folder))
        return "allowed"

    async def count(self) -> str:
        return await self.settled("Count", {"n": self.when})

    async def write(self) -> str:
        return await self.settled("Write", {"path": f"{self.when}.txt", "content": "x" * 65536})

    async def edit(self) -> str:
        old = (self.yard.config.project / "old.txt").read_text()
        return await self.settled("Write", {"path": "old.txt", "content": old + self.when + "\n"})

    async def settled(self, tool: str, arguments: dict[str, str]) -> str:
        call = self.yard.calls.request(tool, arguments)
        envelope = (await self.yard.calls.settle(call)).envelope
        if envelope.error:
            raise ToolyardError(f"{envelope.error.code}: {envelope.error.message}")
        return call.id


def fill(place: Path) -> None:
    """Not a byte is left."""
    fd = os.open(place / "ballast", os.O_WRONLY | os.O_CREAT)
    try:
        for size in (65536, 4096, 512, 1):
            while True:
                try:
                    os.write(fd, b"x" * size)
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    break
    finally:
        os.close(fd)


def fill_with_files(place: Path) -> None:
    (place / "ballast").mkdir()
    try:
        for number in range(100_000):
            (place / "ballast" / str(number)).touch()
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise


def make_room(place: Path) -> None:
    ballast = place / "ballast"
    if ballast.is_dir():
        for file in ballast.iterdir():
            file.unlink()
    else:
        ballast.unlink()


async def main(scene: Scene, fault: str) -> None:
    clock = MovingClock()
    async with scene.yard(clock) as yard:
        await yard.calls.settle(yard.calls.request("Write", {"path": "old.txt", "content": "old\n"}))
        await Commands(yard, clock, "before").all()
        if fault == "fsync":
            refuse(errno.EIO, "fsync", "fdatasync")
        else:
            (fill if fault == "full" else fill_with_files)(scene.place)
        await Commands(yard, clock, "during").all()
        if fault != "fsync":
            make_room(scene.place)
            await Commands(yard, clock, "after").all()
    ack("files", **{file.name: file.read_text()[:100] for file in scene.project.iterdir() if file.is_file()})


if __name__ == "__main__":
    place, port, fault = sys.argv[1:]
    made = Scene(Path(place), int(port))
    if not made.project.exists():
        made.lay_out()
    asyncio.run(main(made, fault))
