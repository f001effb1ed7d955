"""Toolyards that begin as copies of a process that has loaded their code, which takes most of the time of a start.

They are for tests of what a running one does: that it starts as a command is the matter of ``tests/web/test_serve.py``.
"""

import asyncio
import atexit
import gc
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
ANSWER_S = 90
MAX_BYTES = 1 << 18


class Forked:
    """A copy that runs a command, with as much of asyncio's ``Process`` as a host needs."""

    def __init__(self, pid: int, stdout: asyncio.StreamReader, transport: asyncio.BaseTransport) -> None:
        self.pid = pid
        self.stdout = stdout
        self.returncode: int | None = None
        self._transport = transport

    def send_signal(self, how: signal.Signals) -> None:
        os.kill(self.pid, how)

    async def communicate(self) -> None:
        """Read what it still writes, and wait for its end."""
        await self.stdout.read()
        self.returncode = (await asyncio.to_thread(_start_template().ask, {"wait": self.pid}))["code"]
        self._transport.close()


async def fork(words: Sequence[str], environment: Mapping[str, str]) -> Forked:
    """Run ``toolyard`` with these words; only its output is read."""
    ours, theirs = os.pipe()
    asked = {"words": [*words], "environment": {**environment}, "folder": str(Path.cwd())}
    try:
        pid = (await asyncio.to_thread(lambda: _start_template().ask(asked, theirs)))["pid"]
    finally:
        os.close(theirs)
    stdout = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(stdout)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, os.fdopen(ours, "rb"))
    return Forked(pid, stdout, transport)


class _Template:
    def __init__(self) -> None:
        self._link, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._link.settimeout(ANSWER_S)
        self._one_at_a_time = threading.Lock()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno())],
                cwd=ROOT,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
        atexit.register(self._close)

    def ask(self, asked: dict[str, Any], *descriptors: int) -> dict[str, Any]:
        with self._one_at_a_time:
            socket.send_fds(self._link, [json.dumps(asked).encode()], descriptors)
            answer: dict[str, Any] = json.loads(self._link.recv(MAX_BYTES))
        return answer

    def _close(self) -> None:
        self._link.close()
        self._process.wait(ANSWER_S)


@cache
def _start_template() -> _Template:
    return _Template()


def _become_copies(link: socket.socket) -> bool:
    """Fork whenever somebody asks. Return whether this process is a copy, else when nobody asks any more."""
    while True:
        data, descriptors, _, _ = socket.recv_fds(link, MAX_BYTES, 1)
        if not data:
            return False
        asked = json.loads(data)
        if "wait" in asked:
            link.send(json.dumps({"code": os.waitstatus_to_exitcode(os.waitpid(asked["wait"], 0)[1])}).encode())
            continue
        (output,) = descriptors
        if (pid := os.fork()) == 0:
            link.close()
            _begin(asked, output)
            return True
        os.close(output)
        link.send(json.dumps({"pid": pid}).encode())


def _begin(asked: dict[str, Any], output: int) -> None:
    """Be as a process that was started with this command."""
    os.dup2(output, 1)
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    os.close(output)
    os.close(nothing)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 for as long as it runs
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["folder"])
    time.tzset()
    random.seed()
    sys.argv[:] = [str(ROOT / "src/toolyard/__main__.py"), *asked["words"]]
    sys.orig_argv[:] = [sys.executable, "-m", "toolyard", *asked["words"]]


if __name__ == "__main__":
    import toolyard.cli
    import toolyard.cli.commands.serve
    import toolyard.web.server.lifecycle

    gc.freeze()
    if _become_copies(socket.socket(fileno=int(sys.argv[1]))):
        toolyard.cli.main()
