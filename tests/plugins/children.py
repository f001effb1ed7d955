"""Running the programs of tests/zoo as children, and looking for what they leave behind."""

import os
import re
import sys
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from tests.waiting import wait_until
from toolyard.plugins.process.child import RunTimes, run_child
from toolyard.plugins.process.child_report import LINGER_S, ChildReport
from toolyard.plugins.process.children import Children
from toolyard.plugins.process.cold_starter import ColdChild, ColdStarter
from toolyard.plugins.process.launch import Launch
from toolyard.plugins.process.process_output import StderrRing
from toolyard.protocol.envelope import Failure
from toolyard.protocol.manifests.manifest import Limits

ZOO = Path(__file__).parent.parent / "zoo"
PATH = "/usr/local/bin:/usr/bin:/bin"
LINUX = sys.platform == "linux"


def build_argv(program: str, *arguments: str) -> tuple[str, ...]:
    """Python is started without its site packages: it is faster, and the zoo needs none."""
    path = str(ZOO / program)
    if program.endswith(".py"):
        return (sys.executable, "-I", "-S", path, *arguments)
    return ("/bin/sh", path, *arguments) if program.endswith(".sh") else (path, *arguments)


class Keeper:
    """Starts the zoo's programs; every process of one keeper can be told by its mark, whatever it did to hide."""

    def __init__(self, children: Children) -> None:
        self.children = children
        self.starter = ColdStarter(children)
        self.mark = f"ZOO_MARK={uuid.uuid4().hex}"

    def launch(self, *argv: str, limits: Limits | None = None) -> Launch:
        return Launch(argv=argv, cwd=ZOO, profile=None, environment={"PATH": PATH}, limits=limits or Limits())

    async def spawn(self, program: str, *arguments: str, limits: Limits | None = None) -> ColdChild:
        key, _, value = self.mark.partition("=")
        return await self.starter.spawn(self.launch(*build_argv(program, *arguments), limits=limits), {key: value})

    async def run(
        self,
        program: str,
        *arguments: str,
        stdin: bytes = b"{}",
        limits: Limits | None = None,
        stderr: StderrRing | None = None,
        drain_s: float = 0.2,
        grace_s: float = 0.2,
        limit_s: float | None = None,
        silence_s: float | None = None,
        linger_s: float = LINGER_S,
    ) -> ChildReport:
        limits = limits or Limits()
        child = await self.spawn(program, *arguments, limits=limits)
        return await run_child(
            child,
            stdin,
            children=self.children,
            limits=limits,
            stderr=stderr,
            times=RunTimes(limit_s=limit_s, silence_s=silence_s, drain_s=drain_s, grace_s=grace_s, linger_s=linger_s),
        )

    def list_alive(self) -> list[int]:
        return find_marked(self.mark)

    async def wait_all_gone(self, within_s: float = 60) -> bool:
        return await wait_until(lambda: not self.list_alive(), within_s=within_s)


@asynccontextmanager
async def keeper(*, numbered: bool = LINUX) -> AsyncIterator[Keeper]:
    children = Children(numbered=numbered)
    try:
        yield Keeper(children)
    finally:
        await children.close()


def find_marked(mark: str) -> list[int]:
    """Return the living processes with this in their environment; a zombie has none any more."""
    pids = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes()
        except OSError:
            continue
        if mark.encode() in environment:
            pids.append(int(folder.name))
    return pids


def bytes_written(pid: int) -> int:
    """Return how many bytes a process has written."""
    return int(re.findall(r"^wchar: (\d+)", Path(f"/proc/{pid}/io").read_text("ascii"), re.M)[0])


def is_gone(pid: int) -> bool:
    """Return whether a process is dead; if it has become our child it is waited for."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return not Path(f"/proc/{pid}").exists()


def catch_failure(call: Callable[..., object], *arguments: object) -> Failure:
    """Return the Failure that a call raises."""
    try:
        call(*arguments)
    except Failure as failure:
        return failure
    raise AssertionError("nothing failed")
