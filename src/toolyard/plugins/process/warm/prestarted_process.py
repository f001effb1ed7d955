"""A process that is started ahead of any call, and its command: a Python or Node interpreter before a plain script.

It carries a number of the host, so that it dies with the host, but of no call: the highest one there is, since a number
can be lowered by anybody and raised by root alone. It leads its own session and has three pipes, like any child.
"""

import asyncio
import contextlib
import errno
import os
import re
import resource
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from toolyard import process_numbers
from toolyard.confinement.start import start_process
from toolyard.plugins.process.children import Children
from toolyard.plugins.process.launch import Launch
from toolyard.plugins.process.ports import ChildPorts
from toolyard.plugins.process.refusals import NODE_HOOK
from toolyard.protocol.manifests.manifest import Limits

_COUNT = (1 << 32) - 1
_END_S = 5.0
_MAX_VARIABLES = 60 * 1024  # bytes: what one packet, or an empty pipe, takes
FOLDER = str(Path(__file__).resolve().parent)
_PYTHON = re.compile(r"python[\d.]*")
_NODE = re.compile(r"node(?:js)?[\d.]*")
_FLAGS = re.compile(r"-[BEIOPSsu]+|-Xpycache_prefix=.+")
# variables by which an interpreter runs code before the script, or continues after it
_ODD = frozenset({"NODE_OPTIONS", "PYTHONINSPECT", "PYTHONVERBOSE", "PYTHONPROFILEIMPORTTIME"})


class PrestartedProcess:
    def __init__(self, argv: tuple[str, ...], launch: Launch, children: Children, keep: tuple[int, ...] = ()) -> None:
        """Raises OSError or ValueError. ``keep`` are descriptors that it inherits under their numbers."""
        number = children.numbers.prefix | _COUNT
        pipes: list[int] = []
        try:
            for _ in range(3):
                pipes += os.pipe()
            with process_numbers.inherit_number(number):
                started = start_process(
                    launch.profile,
                    argv,
                    stdin=pipes[0],
                    stdout=pipes[3],
                    stderr=pipes[5],
                    cwd=launch.cwd,
                    env=dict(launch.environment),
                    start_new_session=True,
                    pass_fds=keep,
                )
                self._process = started.process
        except (OSError, ValueError):
            for pipe in pipes:
                os.close(pipe)
            raise
        for theirs in (pipes[0], pipes[3], pipes[5]):
            os.close(theirs)
        self.ports = ChildPorts(launch.services, started)
        self.pid = self._process.pid
        self.pipes = (pipes[1], pipes[2], pipes[4])
        self.exited = asyncio.Event()
        self.on_death: Callable[[], None] = lambda: None
        self._loop = asyncio.get_running_loop()
        try:
            self._pidfd = os.pidfd_open(self.pid)
        except OSError:
            self._process.kill()
            self._process.wait()
            self.ports.close()
            for pipe in self.pipes:
                os.close(pipe)
            raise
        self._loop.add_reader(self._pidfd, self._on_exit)
        try:
            process_numbers.set_number(self.pid, number)
        except OSError:
            self.kill()

    @property
    def resident_bytes(self) -> int:
        """The resident memory in bytes, shared pages included."""
        try:
            with open(f"/proc/{self.pid}/statm", "rb", buffering=0) as file:
                return int(file.read().split()[1]) * resource.getpagesize()
        except (OSError, IndexError):
            return 0

    @property
    def cpu_s(self) -> float:
        """The processor time used, in seconds."""
        try:
            with open(f"/proc/{self.pid}/stat", "rb", buffering=0) as file:
                fields = file.read().rpartition(b")")[2].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        except (OSError, IndexError):
            return 0.0

    def hand_over(self) -> tuple[int, int, int]:
        """Hand the process over to a call: return its pipes, and stop watching it."""
        self._close_pidfd()
        self._process.returncode = 0  # Children waits for it; Popen must not
        pipes, self.pipes = self.pipes, (-1, -1, -1)
        return pipes

    def kill(self) -> None:
        if not self.exited.is_set():
            with contextlib.suppress(OSError):
                os.killpg(self.pid, signal.SIGKILL)

    async def wait_ended(self) -> None:
        """Wait until it is dead after ``kill``; bounded."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_END_S):
                await self.exited.wait()

    def _on_exit(self) -> None:
        self._close_pidfd()
        self._process.wait()  # it is dead: this does not wait
        self.ports.close()
        for pipe in self.pipes:
            os.close(pipe)
        self.exited.set()
        self.on_death()

    def _close_pidfd(self) -> None:
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)


def bind_to_call(children: Children, pid: int, limits: Limits, open_gate: Callable[[], None]) -> bool:
    """Make a waiting process the child of a call: number it, adopt it, let it go. Return False when it cannot.

    ``open_gate`` may raise OSError.
    """
    number = children.numbers.next()
    try:
        process_numbers.set_number(pid, number)
    except OSError:
        return False
    children.adopt(pid, limits, number)
    try:
        open_gate()
    except OSError:
        children.end(pid)
        return False
    return True


def encode_variables(per_call: Mapping[str, str]) -> bytes:
    """Encode the environment variables of a call for the process that waits for it. Raises OSError: too many."""
    pairs = b"\0".join(f"{name}={value}".encode("utf-8", "surrogateescape") for name, value in per_call.items())
    if len(pairs) >= _MAX_VARIABLES:
        raise OSError(errno.E2BIG, os.strerror(errno.E2BIG))
    return b"\n" + pairs


class Interpreter(StrEnum):
    PYTHON = "python"
    NODE = "node"


@dataclass(frozen=True, slots=True)
class WarmCommand:
    interpreter: Interpreter
    program: tuple[str, ...]  # the interpreter and its flags
    script: tuple[str, ...]  # the script as it is named, and its arguments

    def fork_server_argv(self, socket: int, layer: int | None) -> tuple[str, ...]:
        """Return the command of a fork server, with the descriptors of its socket and of its children's layer."""
        words = ("serve", str(socket), "-" if layer is None else str(layer))
        return (*self.program, os.path.join(FOLDER, "fork_main.py"), *words, *self.script)

    def standby_argv(self) -> tuple[str, ...]:
        """Return the command of an interpreter that waits before the script."""
        if self.interpreter is Interpreter.NODE:
            return (self.program[0], "--require", os.path.join(FOLDER, "gate.js"), *self.program[1:], *self.script)
        return (*self.program, os.path.join(FOLDER, "fork_main.py"), "standby", "-", "-", *self.script)


def parse_warm_command(launch: Launch) -> WarmCommand | None:
    """Return the warm form of a launch; None when it can only be started cold."""
    if _ODD & launch.environment.keys():
        return None
    name = Path(launch.argv[0]).name
    at = 1
    if _PYTHON.fullmatch(name):
        kind = Interpreter.PYTHON
        while at < len(launch.argv) and _FLAGS.fullmatch(launch.argv[at]):
            at += 1
    elif _NODE.fullmatch(name):
        kind = Interpreter.NODE
        at = 3 if launch.argv[1:3] == ("--require", NODE_HOOK) else 1
    else:
        return None
    if at == len(launch.argv) or launch.argv[at].startswith("-") or not _is_script(launch.cwd, launch.argv[at]):
        return None
    return WarmCommand(kind, launch.argv[:at], launch.argv[at:])


def _is_script(folder: Path, word: str) -> bool:
    path = folder / word
    return path.is_file() and path.suffix in {".py", ".js", ".cjs", ".mjs"}
