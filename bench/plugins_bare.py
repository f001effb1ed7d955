"""The least that forks once for each call and tells its exit code: no limits, no numbers, no clean end."""

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections import deque
from pathlib import Path

_SERVER = """
import json, os, signal, socket, sys
host = socket.socket(fileno=0)
code = compile(open(sys.argv[1]).read(), sys.argv[1], "exec")
def ended(*_):
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            return
        host.send(b"x%d %d" % (pid, status))
signal.signal(signal.SIGCHLD, ended)
while True:
    told, pipes, _, _ = socket.recv_fds(host, 1, 3)
    if not told:
        break
    pid = os.fork()
    if not pid:
        os.setsid()
        for number, pipe in enumerate(pipes):
            os.dup2(pipe, number)
        exec(code, {"__name__": "__main__"})
        sys.stdout.flush()
        os._exit(0)
    host.send(b"p%d" % pid)
    for pipe in pipes:
        os.close(pipe)
"""


class BareForkServer:
    def __init__(self, script: Path) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVER, str(script)], stdin=theirs.fileno(), stdout=subprocess.PIPE
        )
        theirs.close()
        self._socket.setblocking(False)
        self._asked: deque[asyncio.Future[int]] = deque()
        self._living: dict[int, asyncio.Future[int]] = {}
        self._statuses: dict[int, int] = {}
        asyncio.get_running_loop().add_reader(self._socket, self._hear)

    async def call(self, stdin: bytes) -> object:
        """The result is whole when both outputs have ended and the exit code is known."""
        pipes = [end for _ in range(3) for end in os.pipe()]
        theirs = [pipes[0], pipes[3], pipes[5]]
        socket.send_fds(self._socket, [b"f"], theirs)
        for pipe in theirs:
            os.close(pipe)
        self._asked.append(asyncio.get_running_loop().create_future())
        code = self._asked[-1]
        os.write(pipes[1], stdin)
        os.close(pipes[1])
        out, _, status = await asyncio.gather(_read(pipes[2]), _read(pipes[4]), code)
        assert status == 0
        return json.loads(out)["result"]

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()
        self._process.communicate()

    def _hear(self) -> None:
        packet = self._socket.recv(64)
        numbers = [int(word) for word in packet[1:].split()]
        if packet[:1] == b"p":
            self._living[numbers[0]] = self._asked.popleft()
        else:
            self._statuses[numbers[0]] = numbers[1]
        for pid in self._living.keys() & self._statuses.keys():  # a quick one has ended before we hear that it began
            self._living.pop(pid).set_result(self._statuses.pop(pid))


async def _read(pipe: int) -> bytes:
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()
    data: list[bytes] = []

    def more() -> None:
        data.append(os.read(pipe, 65536))
        if not data[-1]:
            done.set_result(None)

    loop.add_reader(pipe, more)
    try:
        await done
    finally:
        loop.remove_reader(pipe)
        os.close(pipe)
    return b"".join(data)
