"""Cold starts: no shell, a session of its own, limits set the moment the child exists.

The start itself takes a fifth of a millisecond, so it is done on the event loop. Limits are set from outside right
after it: code run between fork and exec is not safe in a program with threads. The exit is seen by a pidfd, or by a
thread where there is none; the child is not waited for (reaped) before ``Children`` has killed its group, so that
its number cannot become another process's in between.

A child without a process number is known to the guardian by its group only, which there is after the start. So that
none is left behind when the host is killed in between, it is started behind a gate, where it waits until the guardian
has been told, and ends when the host does.
"""

import asyncio
import contextlib
import errno
import os
import signal
import socket
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

from toolyard.confinement.start import can_confine, start_process
from toolyard.crashpoint import crashpoint
from toolyard.message import Message
from toolyard.plugins.process.children import Children
from toolyard.plugins.process.launch import Launch
from toolyard.plugins.process.ports import ChildPorts
from toolyard.protocol.envelope import Failure, Reason

_GATE_S = 30.0


class ColdStarter:
    def __init__(self, children: Children) -> None:
        self._children = children

    async def spawn(self, launch: Launch, per_call: Mapping[str, str]) -> "ColdChild":
        """Start a child for one call; ``per_call`` is added to the environment. Raises Failure(START_FAILED)."""
        pipes: list[int] = []
        gate: _Gate | None = None
        environment = {**launch.environment, **per_call}
        try:
            for _ in range(3):
                pipes += os.pipe()
            crashpoint("plugin.before-spawn")
            with self._children.assign_number() as number:
                # one that is confined has a number, or is inside another host, which ends it
                gate = _Gate() if not number and not can_confine(launch.profile) else None
                started = start_process(
                    launch.profile,
                    gate.build_argv(launch.argv, environment) if gate else launch.argv,
                    stdin=pipes[0],
                    stdout=pipes[3],
                    stderr=pipes[5],
                    cwd=launch.cwd,
                    env=environment,
                    start_new_session=True,
                    pass_fds=(gate.theirs.fileno(),) if gate else (),
                )
                process = started.process
        except (OSError, ValueError) as error:
            for pipe in pipes:
                os.close(pipe)
            if gate:
                gate.close()
            raise _start_failure(launch, error) from error
        for theirs in (pipes[0], pipes[3], pipes[5]):
            os.close(theirs)
        crashpoint("plugin.spawned")
        self._children.adopt(process.pid, launch.limits, number)
        crashpoint("plugin.adopted")
        process.returncode = 0  # Children waits for it; Popen must not
        self._children.hold_ports(process.pid, ChildPorts(launch.services, started))
        child = ColdChild(process.pid, pipes[1], pipes[2], pipes[4])
        if gate:
            try:
                await gate.open()
            except BaseException as error:
                for pipe in (child.stdin, child.stdout, child.stderr):
                    os.close(pipe)
                self._children.end(child.pid)
                if isinstance(error, OSError):
                    raise _start_failure(launch, error) from error
                raise
        return child

    async def close(self) -> None:
        """Do nothing: nothing is started ahead."""


class _Gate:
    """A small program that waits for a word from the host, and then becomes the plugin's; without the host it ends.

    It is no shell, which would add variables to the environment and run files that are no programs.
    """

    _PROGRAM = """
import _signal, os, sys
from os import environ  # of the plugin's process: the host's is not seen here
gate, names = int(sys.argv[1]), sys.argv[2].split("=")
os.set_inheritable(gate, False)
if os.read(gate, 1):
    _signal.signal(_signal.SIGPIPE, _signal.SIG_DFL)  # which Python ignores
    _signal.signal(_signal.SIGXFSZ, _signal.SIG_DFL)
    try:  # of the variables only those that were given: Python may have added one
        os.execve(sys.argv[3], sys.argv[3:], {name: environ[name] for name in names if name})
    except OSError as error:
        os.write(gate, b"%d" % error.errno)
"""

    def __init__(self) -> None:
        """Raises OSError."""
        self._ours, self.theirs = socket.socketpair()

    def build_argv(self, argv: tuple[str, ...], environment: Mapping[str, str]) -> tuple[str, ...]:
        return (
            sys.executable,
            "-I",
            "-S",
            "-c",
            self._PROGRAM,
            str(self.theirs.fileno()),
            "=".join(environment),
            *argv,
        )

    async def open(self) -> None:
        """Let the program begin. Raises OSError when it cannot be started."""
        self.theirs.close()
        self._ours.setblocking(False)
        try:
            self._ours.send(b"!")
            async with asyncio.timeout(_GATE_S):
                problem = int(await asyncio.get_running_loop().sock_recv(self._ours, 16) or 0)
        except TimeoutError:
            problem = errno.ETIMEDOUT
        finally:
            self._ours.close()
        if problem:
            raise OSError(problem, os.strerror(problem))

    def close(self) -> None:
        self._ours.close()
        self.theirs.close()


class ColdChild:
    def __init__(self, pid: int, stdin: int, stdout: int, stderr: int) -> None:
        self.pid, self.stdin, self.stdout, self.stderr = pid, stdin, stdout, stderr
        self._loop = asyncio.get_running_loop()
        self._exit: asyncio.Future[int] = self._loop.create_future()
        for ours in (stdin, stdout, stderr):
            os.set_blocking(ours, False)
        try:
            pidfd = os.pidfd_open(pid)
        except (AttributeError, OSError):
            threading.Thread(target=self._wait_in_thread, daemon=True).start()
        else:
            self._loop.add_reader(pidfd, self._on_exit, pidfd)

    async def wait(self) -> int:
        """Wait until it has ended. Return its exit code, or minus the number of the signal that ended it."""
        return await asyncio.shield(self._exit)

    def _on_exit(self, pidfd: int) -> None:
        self._loop.remove_reader(pidfd)
        os.close(pidfd)
        try:
            ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        except ChildProcessError:  # Children was first, and it waits only for what it has killed
            ended = None
        if ended is None:
            self._set_exit_code(-signal.SIGKILL)
        else:
            self._set_exit_code(ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status)

    def _wait_in_thread(self) -> None:
        try:
            code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        except ChildProcessError:
            code = -signal.SIGKILL
        with contextlib.suppress(RuntimeError):  # the loop is closed: there is no waiter any more
            self._loop.call_soon_threadsafe(self._set_exit_code, code)

    def _set_exit_code(self, code: int) -> None:
        if not self._exit.done():
            self._exit.set_result(code)


def _start_failure(launch: Launch, error: OSError | ValueError) -> Failure:
    program = Path(launch.argv[0])
    what, fix = _explain_start_error(program, launch.cwd, error)
    message = Message("{program} could not be started: {what}.", program=program, what=what)
    return Failure(Reason.START_FAILED, message, hint=fix, data={"command": list(launch.argv)})


def _explain_start_error(program: Path, cwd: Path, error: OSError | ValueError) -> tuple[str, str]:
    if not isinstance(error, OSError):
        return str(error), Message("Mend entryPoint.command or the plugin's config.env.")
    if error.errno == errno.ELOOP and isinstance(error.strerror, Message):  # something was replaced since it was built
        again = Message("Call it again. If that fails too, its owner should look at it again.")
        return error.strerror, again
    if not cwd.is_dir():
        return (
            Message("its folder {folder} does not exist", folder=cwd),
            Message("Install the plugin again."),
        )
    if not program.exists():
        return (
            Message("there is no such file"),
            Message("Install {program}, or mend entryPoint.command.", program=program.name),
        )
    if error.errno == errno.EACCES:
        if program.is_dir():
            return (
                Message("it is a folder"),
                Message("Name the program itself in entryPoint.command."),
            )
        return (
            Message("it is not executable"),
            Message("Run `chmod +x {program}`, or start it by its interpreter.", program=program),
        )
    if error.errno == errno.ENOEXEC:
        return (
            Message("it is neither a program of this machine nor a script with a #! line"),
            Message(
                "Begin it with a line such as `#!/usr/bin/env python3`, or name its interpreter in entryPoint.command."
            ),
        )
    if error.errno in {errno.ENOENT, errno.ENOTDIR}:
        named = _read_interpreter(program)
        return (
            Message("its first line names the interpreter {name}, which does not exist", name=named),
            Message("Install {name}, or mend it.", name=named),
        )
    if error.errno in {errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM}:
        return (
            Message("this machine is at a limit ({error})", error=error.strerror or str(error)),
            Message("Try again later, or run fewer calls at once."),
        )
    return error.strerror or str(error), Message("Mend entryPoint.command.")


def _read_interpreter(program: Path) -> str:
    try:
        with program.open("rb") as file:
            first = file.readline(256)
    except OSError:
        first = b""
    line = first.removeprefix(b"#!").rstrip(b"\n").decode("utf-8", "replace").strip(" ")
    if first.startswith(b"#!") and line:
        return repr(line.split()[0] + ("\r" if line.endswith("\r") and " " not in line else ""))
    return Message("of this program")
