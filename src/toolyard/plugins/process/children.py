"""The processes that the host's calls have started, until each of them is dead.

A child leads a session and group of its own. When its call ends the group is killed at once; what escaped by setsid or
a second fork carries the call's number (see ``process_numbers``), and a sweep finds and kills it: one sweep for all the
calls that ended in the meantime, not one for each. The same sweep counts processes per running call. The host is a
child subreaper, so escaped processes become its children; it waits only for those that carry its numbers. If the host
is killed, its guardian does the killing. On a system without numbers (macOS) only sessions and groups are known.
"""

import asyncio
import contextlib
import json
import logging
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from toolyard import process_numbers
from toolyard.plugins.process.launch import ChildProcess, PortServer
from toolyard.plugins.process.ports import ChildPorts
from toolyard.process_numbers import is_group_alive
from toolyard.protocol.manifests.manifest import Limits

GRACE_S = 2.0  # from SIGTERM to SIGKILL
_SWEEP_S = 0.25  # from the end of a call to the search for what escaped
_COUNT_S = 0.5  # between two counts of the processes of running calls
_SHARE = 20  # a sweep may take this part of the time: one in so many
_MOST_S = 2.0  # between two sweeps, however slow this machine is
_CLOSE_S = 5.0
_MOMENT_S = 0.02  # between two looks at what a child leaves behind
_MOMENTS = 10  # that a helper of it, such as multiprocessing's, may take to notice its end
_PR_SET_CHILD_SUBREAPER = 36
_log = logging.getLogger(__name__)
_MAIN = Path(__file__).with_name("guardian_main.py")


@dataclass(slots=True)
class _CallProcesses:
    """The processes of one call."""

    root: int
    number: int  # 0: it has none
    processes: int
    overrun: bool = False
    spared: bool = False
    ports: ChildPorts | None = None


class Children:
    """The children of one event loop. ``close`` it before the loop ends."""

    def __init__(self, *, numbered: bool = process_numbers.AVAILABLE) -> None:
        self._numbered = numbered
        self.numbers = process_numbers.NumberSequence()
        self._guardian = Guardian(self.numbers.prefix if numbered else 0)
        self._running: dict[int, _CallProcesses] = {}
        self._ended: dict[int, _CallProcesses] = {}
        self._stops: set[asyncio.Task[None]] = set()
        self._lingering: set[asyncio.Task[None]] = set()
        self._sweeper: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._began = False

    @property
    def guardian_pid(self) -> int | None:
        """The pid of the guardian, once there is one."""
        return self._guardian.pid

    def number_of(self, pid: int) -> int:
        """Return the number of a running child, 0 when it has none."""
        family = self._running.get(pid)
        return family.number if family else 0

    @contextlib.contextmanager
    def assign_number(self) -> Iterator[int]:
        """Yield a number for ``adopt``; a child started in this block carries it. 0 when numbers cannot be used."""
        if not self._began:
            self._began = True
            _become_subreaper()
            self._guardian.start()  # before there is anything to guard: a host may be killed at any moment
        number = self.numbers.next() if self._numbered else 0
        with contextlib.ExitStack() as stack:
            if number:
                try:
                    stack.enter_context(process_numbers.inherit_number(number))
                except (OSError, ValueError):  # we are inside another host, whose number we may not raise
                    number = 0
            yield number

    def adopt(self, pid: int, limits: Limits, number: int) -> None:
        """Take charge of a child that has just been started and leads its own session."""
        family = _CallProcesses(pid, number, limits.processes)
        if number:
            with contextlib.suppress(OSError):  # it has ended already
                process_numbers.set_number(pid, number)
        self._running[pid] = family
        _set_limits(pid, limits)
        self._guardian.start()
        if not family.number:
            self._guardian.add_group(pid)
        self._start_sweeper()

    def hold_ports(self, pid: int, ports: ChildPorts) -> None:
        """Serve these ports until the call of a child has ended."""
        self._running[pid].ports = ports

    def end(self, pid: int) -> None:
        """End a call: kill its process group now and whatever escaped with the next sweep."""
        family = self._running.pop(pid, None)
        if family is None:
            return
        _signal_group(pid, signal.SIGKILL)
        if family.ports is not None:
            family.ports.close()
        if family.spared:
            self._guardian.forget(family.number or pid)
        elif not family.number:
            self._guardian.remove_group(pid)
        self._ended[pid] = family
        self._wake.set()
        self._start_sweeper()

    def stop(self, child: ChildProcess, grace_s: float = GRACE_S) -> "asyncio.Task[None]":
        """Send SIGTERM to the group, after ``grace_s`` SIGKILL to everything. Continues when nobody awaits the task."""
        task = asyncio.create_task(self._stop(child, grace_s))
        self._stops.add(task)
        task.add_done_callback(self._stops.discard)
        return task

    def linger(self, child: ChildProcess, seconds: float, grace_s: float, then: Callable[[], None]) -> None:
        """Let a child continue for ``seconds``, then stop it; ``then`` is called when it, or the host, has ended."""
        task = asyncio.create_task(self._linger(child, seconds, grace_s, then))
        self._lingering.add(task)
        task.add_done_callback(self._lingering.discard)

    def spare(self, pid: int, pipes: tuple[int, ...]) -> None:
        """Let a child outlive the host. When the host is gone its guardian reads ``pipes`` and serves its ports."""
        family = self._running.get(pid)
        if family and not family.spared:
            family.spared = True
            self._guardian.spare(family.number or pid, pipes)
            if family.ports is not None:
                family.ports.hand_over(partial(self._guardian.add_port, family.number or pid))
            if not family.number:
                self._guardian.remove_group(pid)

    def has_survivors(self, pid: int) -> bool:
        """Return whether processes of a call are alive. Cheap, because every call asks when its child has exited.

        What loses its parent becomes a child of the host, so of each family that goes on one process is a child of the
        host or the child itself; without numbers only the group tells.
        """
        family = self._running.get(pid)
        if family is None:
            return False
        if family.number and (orphans := process_numbers.list_own_children()) is not None:
            return any(process_numbers.has_number(one, family.number) for one in (pid, *orphans))
        return is_group_alive(pid)

    async def has_lasting_survivors(self, pid: int) -> bool:
        """Return whether processes of a call outlive its child; those that end within moments do not count."""
        for _ in range(_MOMENTS):
            if not self.has_survivors(pid):
                return False
            await asyncio.sleep(_MOMENT_S)
        return self.has_survivors(pid)

    async def stop_survivors(self, pid: int, grace_s: float = GRACE_S) -> None:
        """Send SIGTERM to the surviving processes of a call, after ``grace_s`` SIGKILL to everything."""
        family = self._running.get(pid)
        if family is not None and self.has_survivors(pid):
            _signal_group(pid, signal.SIGTERM)
            if family.number:
                left = await asyncio.to_thread(self._find_numbered, {family.number})
                process_numbers.send_signal((one.pid for one in left if not one.zombie), signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(grace_s):
                    while self.has_survivors(pid):  # noqa: ASYNC110 processes that are not our children tell nothing
                        await asyncio.sleep(_MOMENT_S)
        self.end(pid)

    def is_over_process_limit(self, pid: int) -> bool:
        """Return whether the child was killed because it had too many processes."""
        family = self._running.get(pid)
        return family is not None and family.overrun

    async def close(self) -> None:
        """Kill every child that is not spared, and wait until they are dead; bounded."""
        for lingering in self._lingering:
            lingering.cancel()
        if self._stops or self._lingering:
            await asyncio.wait({*self._stops, *self._lingering}, timeout=_CLOSE_S)
        for pid in [pid for pid, family in self._running.items() if not family.spared]:
            self.end(pid)
        if self._sweeper:
            self._sweeper.cancel()
            await asyncio.wait({self._sweeper})
        for _ in range(process_numbers.ROUNDS):
            await self._sweep()
            if not self._ended:
                break
            await asyncio.sleep(0.01)
        for ports in [family.ports for family in self._running.values() if family.ports]:  # of those that live on
            ports.close()
            await ports.wait_closed()
        await asyncio.sleep(0)  # for the news of the last exits to arrive
        self._guardian.close()

    async def _linger(self, child: ChildProcess, seconds: float, grace_s: float, then: Callable[[], None]) -> None:
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await child.wait()
            await self._stop(child, grace_s)
        finally:
            self.end(child.pid)
            then()

    async def _stop(self, child: ChildProcess, grace_s: float) -> None:
        _signal_group(child.pid, signal.SIGTERM)
        _signal_group(child.pid, signal.SIGCONT)  # one that was stopped could not hear it
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                await child.wait()
        self.end(child.pid)

    def _start_sweeper(self) -> None:
        if self._sweeper is None or self._sweeper.done():
            self._sweeper = asyncio.create_task(self._sweep_loop())

    async def _sweep_loop(self) -> None:
        loop = asyncio.get_running_loop()
        pause = 0.0
        while self._running or self._ended:
            self._wake.clear()
            if not self._ended:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(max(_COUNT_S, pause)):
                        await self._wake.wait()
            if self._ended:
                await asyncio.sleep(max(_SWEEP_S, pause))
            began = loop.time()
            await self._sweep()
            pause = min((loop.time() - began) * _SHARE, _MOST_S)

    async def _sweep(self) -> None:
        ended = list(self._ended.values())
        dead = {family.number for family in ended if family.number}
        if self._numbered:
            over, zombies = await asyncio.to_thread(self._kill_escaped, dead)
            for family in over:
                family.overrun = True
                _signal_group(family.root, signal.SIGKILL)
            if over:
                await asyncio.to_thread(
                    process_numbers.kill_all, partial(self._find_numbered, {family.number for family in over})
                )
            for pid in zombies - self._running.keys():
                _reap(pid)
        for family in ended:
            if _reap(family.root):
                self._ended.pop(family.root, None)

    def _kill_escaped(self, dead: set[int]) -> tuple[list[_CallProcesses], set[int]]:
        """Kill the processes of ended calls. Return the running calls with too many processes, and the zombies."""
        processes = list(process_numbers.find_processes(self.numbers.prefix))
        if any(one.number in dead and not one.zombie for one in processes):
            process_numbers.kill_all(partial(self._find_numbered, dead))
            processes = list(process_numbers.find_processes(self.numbers.prefix))
        counts: dict[int, int] = {}
        for one in processes:
            counts[one.number] = counts.get(one.number, 0) + (not one.zombie)
        running = list(self._running.values())
        over = [family for family in running if family.number and counts.get(family.number, 0) > family.processes]
        return over, {one.pid for one in processes if one.zombie}

    def _find_numbered(self, numbers: set[int]) -> list[process_numbers.NumberedProcess]:
        return [one for one in process_numbers.find_processes(self.numbers.prefix) if one.number in numbers]


def _set_limits(pid: int, limits: Limits) -> None:
    """Set the resource limits of a process; Linux only. Errors are ignored: the child may have ended already."""
    if not hasattr(resource, "prlimit"):
        return
    settings = (
        (resource.RLIMIT_AS, limits.memory_bytes, 0),
        (resource.RLIMIT_DATA, limits.data_bytes, 0),
        (resource.RLIMIT_CPU, limits.cpu_s, 1),  # SIGXCPU first, SIGKILL a second later
        (resource.RLIMIT_NOFILE, limits.open_files, 0),
        (resource.RLIMIT_FSIZE, limits.file_bytes, 0),
    )
    for kind, most, more in settings:
        if most is not None:
            ours = resource.getrlimit(kind)[1]
            hard = most + more if ours == resource.RLIM_INFINITY else min(most + more, ours)
            with contextlib.suppress(OSError):
                resource.prlimit(pid, kind, (min(most, hard), hard))


def _signal_group(group: int, number: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(group, number)


def _reap(pid: int) -> bool:
    """Return whether the process is gone. Only its parent can wait for a process."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True


def _become_subreaper() -> None:
    if sys.platform != "linux":
        return
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


class Guardian:
    """The host's end of its guardian, the process that kills the host's children when the host itself is killed.

    Started once, before the first child: a host that was killed in between would leave it alone. If it cannot start,
    children run unguarded and the log says so. If it dies it is not started again. Commands to it never block: a
    guardian that does not read is given up.
    """

    def __init__(self, prefix: int) -> None:
        self._prefix = prefix  # 0: there are no numbers, and it gets process groups
        self._socket: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._tried = False
        self._spared: set[int] = set()

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start the guardian once; further calls do nothing."""
        if self._tried:
            return
        self._tried = True
        ours, theirs = socket.socketpair()
        try:
            self._process = subprocess.Popen(  # noqa: S603 our own file, run by our own interpreter
                [sys.executable, "-I", "-S", str(_MAIN), str(self._prefix), json.dumps(list(filter(None, sys.path)))],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                cwd="/",
                env={},
            )
        except OSError as error:
            ours.close()
            _log.warning("no guardian: children will outlive a killed host (%s)", error)
        else:
            ours.setblocking(False)
            self._socket = ours
        finally:
            theirs.close()

    def add_group(self, group: int) -> None:
        """Report a child without a number, which leads this group."""
        self._send(f"+{group}\n")

    def remove_group(self, group: int) -> None:
        self._send(f"-{group}\n")

    def spare(self, number: int, pipes: tuple[int, ...]) -> None:
        """Let this call's processes outlive the host; the guardian then reads ``pipes``."""
        self._spared.add(number)
        self._send(f"s{number}\n", pipes)

    def add_port(self, number: int, listener: int, service: PortServer) -> None:
        """Let the guardian serve a port of this call's processes when the host is gone."""
        self._send(f"p{number} {json.dumps(service.to_json())}\n", (listener,))

    def forget(self, number: int) -> None:
        if number in self._spared:
            self._spared.discard(number)
            self._send(f"e{number}\n")

    def close(self) -> None:
        """Close when the host ends in order. Only spared children live on, and keep their guardian."""
        if self._socket:
            self._socket.close()
            self._socket = None
        process, self._process = self._process, None
        if process and self._spared:
            process.returncode = 0  # it stays on purpose, which Popen would complain about
        elif process:
            process.kill()
            process.wait()

    def _send(self, line: str, pipes: tuple[int, ...] = ()) -> None:
        if self._socket is None:
            return
        try:
            if pipes:
                socket.send_fds(self._socket, [line.encode()], list(pipes))
            else:
                self._socket.send(line.encode())
        except OSError as error:
            _log.warning("the guardian does not listen: children may outlive a killed host (%s)", error)
            self._socket.close()
            self._socket = None
