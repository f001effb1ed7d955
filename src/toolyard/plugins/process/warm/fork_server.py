"""The host's end of a fork server (``fork_main``): one process for one launch, which forks a child for each call.

A child waits at a socket until the host has numbered it, has set its limits and sends it the pipes of its call; up to
``_SPARE`` of them are forked ahead. When it ends the server reports its exit code and keeps it as a zombie until the
host has let go of it, so that its pid cannot become another's. If the server dies its children become the host's own,
which is a subreaper, and none of their results is lost.
"""

import asyncio
import contextlib
import os
import signal
import socket
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from toolyard.confinement.landlock import create_layer
from toolyard.plugins.process.children import Children
from toolyard.plugins.process.launch import Launch
from toolyard.plugins.process.warm.prestarted_process import (
    PrestartedProcess,
    WarmCommand,
    bind_to_call,
    encode_variables,
)

_PACKETS = 64  # read at once
_READY_S = 60.0
_FORK_S = 2.0
_REAP_S = 0.1
_SPARE = 4


class ServerState(StrEnum):
    WARMING = "warming"
    READY = "ready"
    UNFIT = "unfit"  # it said so, or its imports failed
    BROKEN = "broken"  # our program does not run in this interpreter, or it does not answer


@dataclass(frozen=True, slots=True)
class _WaitingChild:
    """A child that waits for its call."""

    pid: int
    channel: socket.socket  # on which its call comes


class ForkedChild:
    def __init__(self, pid: int, pipes: tuple[int, int, int]) -> None:
        self.pid = pid
        self.stdin, self.stdout, self.stderr = pipes
        self._loop = asyncio.get_running_loop()
        self._exit: asyncio.Future[int] = self._loop.create_future()

    async def wait(self) -> int:
        """Wait until it has ended. Return its exit code, or minus the number of the signal that ended it."""
        return await asyncio.shield(self._exit)

    def set_exit_code(self, code: int) -> None:
        if not self._exit.done():
            self._exit.set_result(code)

    def watch_exit(self) -> None:
        """Watch for the exit here: the server is dead, and this is a child of the host."""
        try:
            pidfd = os.pidfd_open(self.pid)
        except OSError:
            self.set_exit_code(-signal.SIGKILL)
        else:
            self._loop.add_reader(pidfd, self._on_exit, pidfd)

    def _on_exit(self, pidfd: int) -> None:
        self._loop.remove_reader(pidfd)
        os.close(pidfd)
        code = -int(signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):  # Children was first, and it waits only for what it has killed
            ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
            if ended:
                code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        self.set_exit_code(code)


class ForkServer:
    def __init__(self, recipe: WarmCommand, launch: Launch, children: Children, changed: Callable[[], None]) -> None:
        """Raises OSError. ``changed`` is called when it is ready, unfit or over."""
        self._launch, self._children, self._changed = launch, children, changed
        self._loop = asyncio.get_running_loop()
        self.state = ServerState.WARMING
        self.reason = ""
        self.warmup_s = 0.0  # of processor time, until it was ready
        self._greeted = False
        self.is_retired = False
        self._times: tuple[tuple[str, int], ...] = ()
        self._requests: deque[tuple[socket.socket, asyncio.Future[_WaitingChild | None] | None]] = deque()
        self._spare: dict[int, _WaitingChild] = {}
        self._target_spares = 1
        self._living: dict[int, ForkedChild | None] = {}
        self._exited: list[int] = []
        self._reaper: asyncio.TimerHandle | None = None
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        layer: int | None = None
        try:
            layer = None if launch.profile is None else create_layer()
            self.process = PrestartedProcess(
                recipe.fork_server_argv(theirs.fileno(), layer),
                launch,
                children,
                (theirs.fileno(), *([] if layer is None else [layer])),
            )
        except (OSError, ValueError):
            self._socket.close()
            raise
        finally:
            theirs.close()
            if layer is not None:
                os.close(layer)
        self.process.on_death = self._on_server_death
        self._socket.setblocking(False)
        self._loop.add_reader(self._socket, self._read_packets)
        self._limit = self._loop.call_later(_READY_S, self.process.kill)

    @property
    def is_busy(self) -> bool:
        return any(self._living.values())

    @property
    def spares(self) -> list[int]:
        return list(self._spare)

    async def fork_child(self, per_call: Mapping[str, str]) -> ForkedChild | None:
        """Return a child that runs for this call. None: start it cold."""
        if self.state is not ServerState.READY or self.is_retired:
            return None
        if not self._is_current():
            self.retire()
            self._changed()
            return None
        if self._spare:
            parked: _WaitingChild | None = self._spare.pop(next(iter(self._spare)))
        else:
            self._target_spares = min(self._target_spares + 1, _SPARE)
            parked = await self._request_and_wait()
        child = self._bind(parked, per_call) if parked else None
        for _ in range(self._target_spares - len(self._spare) - len(self._requests)):
            self._request_fork()
        return child

    def retire(self) -> None:
        """Accept no more calls; end with the last child."""
        self.is_retired = True
        self._drop_spares()
        if not self.is_busy:
            self.process.kill()

    async def close(self) -> None:
        self.retire()
        self.process.kill()
        await self.process.wait_ended()
        self._shut_down()

    def _is_current(self) -> bool:
        """Return whether the script and the installed packages are unchanged."""
        try:
            return all(os.stat(path).st_mtime_ns == time for path, time in self._times)
        except OSError:
            return False

    def _request_fork(self, answer: "asyncio.Future[_WaitingChild | None] | None" = None) -> None:
        """Request another fork: for the waiter of the answer, else as a spare."""
        channel: socket.socket | None = None
        try:
            channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                socket.send_fds(self._socket, [b"f"], [theirs.fileno()])
        except OSError:
            if channel:
                channel.close()
            if answer:
                answer.set_result(None)
        else:
            channel.setblocking(False)
            self._requests.append((channel, answer))

    async def _request_and_wait(self) -> _WaitingChild | None:
        answer: asyncio.Future[_WaitingChild | None] = self._loop.create_future()
        self._request_fork(answer)
        try:
            await asyncio.wait({answer}, timeout=_FORK_S)
        except asyncio.CancelledError:
            if not answer.cancel() and (parked := answer.result()):  # it came in the same moment
                self._park(parked)
            raise
        if answer.cancel():
            self._fail("it does not answer")
            return None
        return answer.result()

    def _park(self, parked: _WaitingChild) -> None:
        """Let a child wait for another call, if there may be one."""
        if self.is_retired or parked.pid not in self._living:
            parked.channel.close()
        else:
            self._spare[parked.pid] = parked

    def _bind(self, parked: _WaitingChild, per_call: Mapping[str, str]) -> ForkedChild | None:
        pid, pipes = parked.pid, list[int]()

        def open_gate() -> None:
            for _ in range(3):
                pipes.extend(os.pipe())
            socket.send_fds(parked.channel, [encode_variables(per_call)], [pipes[0], pipes[3], pipes[5]])

        is_bound = bind_to_call(self._children, pid, self._launch.limits, open_gate)
        parked.channel.close()
        if not is_bound:
            _close_pipes(pipes)
            return None
        _close_pipes((pipes[0], pipes[3], pipes[5]))
        ours = (pipes[1], pipes[2], pipes[4])
        for pipe in ours:
            os.set_blocking(pipe, False)
        child = ForkedChild(pid, ours)
        if pid in self._living:
            self._living[pid] = child
        else:  # it was ended, or its server was, while the host was not looking
            child.watch_exit()
        return child

    def _drop_spares(self) -> None:
        """Close the sockets of the spares; they see that no call will come, and exit."""
        for parked in self._spare.values():
            parked.channel.close()
        self._spare.clear()

    def _read_packets(self) -> None:
        for _ in range(_PACKETS):
            try:
                packet = self._socket.recv(65536)
            except BlockingIOError:
                return
            except OSError:
                packet = b""
            if not packet:
                self._shut_down()
                return
            self._handle_packet(packet[:1], packet[1:])

    def _handle_packet(self, word: bytes, rest: bytes) -> None:
        if word == b"h":
            self._greeted = True
        elif word == b"k":
            self._limit.cancel()
            self.warmup_s = self.process.cpu_s
            times = (line.partition(b" ") for line in rest.split(b"\0"))
            self._times = tuple((os.fsdecode(path), int(time)) for time, _, path in times)
            self.state = ServerState.READY
            self._request_fork()
            self._changed()
        elif word == b"u":
            self.state, self.reason = ServerState.UNFIT, rest.decode("utf-8", "replace")
            self._changed()
        elif word == b"x":
            pid, code = map(int, rest.split())
            self._on_child_exit(pid, code)
        else:
            self._on_forked(int(rest))

    def _on_forked(self, pid: int) -> None:
        self._living[pid] = None
        channel, answer = self._requests.popleft()
        parked = _WaitingChild(pid, channel)
        if self.is_retired:
            channel.close()
            if answer and not answer.done():
                answer.set_result(None)
        elif answer and not answer.done():
            answer.set_result(parked)
        else:
            self._spare[pid] = parked

    def _on_child_exit(self, pid: int, code: int) -> None:
        child = self._living.pop(pid, None)
        if child:
            child.set_exit_code(code)
        spare = self._spare.pop(pid, None)
        if spare:
            spare.channel.close()
        self._exited.append(pid)
        if self._reaper is None:
            self._reaper = self._loop.call_later(_REAP_S, self._reap)
        if self.is_retired and not self.is_busy:
            self.process.kill()

    def _reap(self) -> None:
        """Tell the server which exited children the host has released: their pids become free."""
        self._reaper = None
        free = {pid for pid in self._exited[:1000] if not self._children.number_of(pid)}
        self._exited = [pid for pid in self._exited if pid not in free]
        with contextlib.suppress(OSError):
            if free:
                self._socket.send(b"r" + b" ".join(b"%d" % pid for pid in free))
        if self._exited:
            self._reaper = self._loop.call_later(_REAP_S, self._reap)

    def _fail(self, reason: str) -> None:
        self.state, self.reason = ServerState.BROKEN, reason
        self.process.kill()

    def _shut_down(self) -> None:
        """Clean up: the server is gone, or will be at once."""
        if self._socket.fileno() < 0:
            return
        self._loop.remove_reader(self._socket)
        self._socket.close()
        self._limit.cancel()
        if self._reaper:
            self._reaper.cancel()
        self.process.kill()
        if self.state is ServerState.WARMING:
            self.state = ServerState.UNFIT if self._greeted else ServerState.BROKEN
        elif self.state is ServerState.READY:
            self.state = ServerState.BROKEN
        for channel, answer in self._requests:
            channel.close()
            if answer and not answer.done():
                answer.set_result(None)
        self._drop_spares()
        self._requests.clear()
        self._changed()

    def _on_server_death(self) -> None:
        self._read_packets()  # its last words: its death may be seen before them
        self._shut_down()
        for child in self._living.values():
            if child:
                child.watch_exit()
        self._living.clear()


def _close_pipes(pipes: Iterable[int]) -> None:
    for pipe in pipes:
        os.close(pipe)
