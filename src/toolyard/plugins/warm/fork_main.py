"""Run a plugin's script in its own interpreter: as a server that forks for each call, or once, after a wait.

A program of its own, for any Python from 3.8 on, without Toolyard: standard library only, and little of it.

    fork_main.py serve SOCKET SCRIPT ARGUMENT...     preload what the script imports, then fork when told
    fork_main.py standby - SCRIPT ARGUMENT...        wait for the call, then be the script

Packets on the socket. To us: ``f`` with the three pipes of a child: fork it; ``r PID...``: nobody needs these zombies
any more. From us: ``h`` our program runs here; ``k`` ready, with the times of what must not change, or ``u`` unfit,
with the reason; ``p PID`` forked; ``x PID CODE`` ended. When the host is gone the server ends. A child waits at its
stdin for its call (``fork_script.wait_for_call``); no line of the plugin runs before.
"""

from __future__ import annotations

import sys

KNOWN = set(sys.modules)  # what every script finds loaded

import os  # noqa: E402

TYPE_CHECKING = False  # the typing module is slow to import
if TYPE_CHECKING:
    from typing import Any

FIRST = {name: value for name, value in globals().items() if name.startswith("__")}


def load_part(name: str) -> Any:
    """Load a file beside this one without registering it: the script must not find it among its modules."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".py")
    module = type(sys)(name)
    module.__file__ = path
    type(FIRST["__loader__"])(name, path).exec_module(module)
    return module


class Server:
    def __init__(self, number: int) -> None:
        import _signal  # type: ignore[import-not-found]  # these and not signal and socket: whatever is less here is less to copy for each child
        import _socket
        import select

        self._signal: Any = _signal
        self._socket = _socket.socket(fileno=number)
        self._poll = select.poll()
        self._living: set[int] = set()
        self.send(b"h")

    def send(self, packet: bytes) -> None:
        self._socket.send(packet)

    def serve(self) -> bool:
        """Serve until the host is gone. Returns True in each child, False in the server."""
        read, write = os.pipe()
        os.set_blocking(write, False)
        os.set_blocking(read, False)
        before = self._signal.getsignal(self._signal.SIGCHLD)
        self._signal.signal(self._signal.SIGCHLD, lambda _number, _frame: None)
        self._signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        self._poll.register(self._socket.fileno(), 1)
        self._poll.register(read, 1)
        while True:
            for number, _ in self._poll.poll():
                if number == read:
                    os.read(read, 4096)
                    self._report_exits()
                    continue
                packet, pipes = self._receive()
                if not packet:
                    return False
                if packet[:1] == b"r":
                    self._reap(packet)
                elif self._fork(pipes):
                    self._signal.set_wakeup_fd(-1)
                    self._signal.signal(self._signal.SIGCHLD, before)
                    for ours in (self._socket.detach(), read, write):
                        os.close(ours)
                    return True
                for pipe in pipes:
                    os.close(pipe)

    def _receive(self) -> tuple[bytes, list[int]]:
        packet, extra, _, _ = self._socket.recvmsg(65536, 256)
        received = b"".join(data for _, _, data in extra)
        return packet, [int.from_bytes(received[at : at + 4], sys.byteorder) for at in range(0, len(received), 4)]

    def _fork(self, pipes: list[int]) -> bool:
        child = os.fork()
        if child:
            self._living.add(child)
            self.send(b"p%d" % child)
            return False
        os.setsid()
        for number, pipe in enumerate(pipes):
            os.dup2(pipe, number)
            os.close(pipe)
        return True

    def _report_exits(self) -> None:
        """Report exits. Children are not waited for yet: their pids stay theirs until the host has let go."""
        for child in list(self._living):
            ended = os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is not None:
                self._living.discard(child)
                code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
                self.send(b"x%d %d" % (child, code))

    def _reap(self, packet: bytes) -> None:
        for child in packet[1:].split():
            os.waitpid(int(child), 0)


def serve(number: int, scripts: Any, script: Any) -> Any:
    """Return the script in a child that has its call; None in a server that is over, and a child without a call."""
    imports = load_part("fork_imports")
    server = Server(number)
    times = imports.list_mtimes(script.path)
    script.compile()
    sources = load_part("fork_random").RandomSources()
    reason = imports.preload(script.path, script.folder, KNOWN, sources)
    if reason:
        server.send(b"u" + reason.encode())
        return None
    script.prepare()
    server.send(b"k" + times)
    if not server.serve() or not scripts.wait_for_call():
        return None
    sources.reseed()
    imports.reset_start_time()
    return script


def main() -> Any:
    """Return the script at the moment when it is to run; None when it is not."""
    how, number = sys.argv[1:3]
    scripts = load_part("fork_script")
    script = scripts.Script(FIRST, sys.argv[3:])
    if how == "serve":
        return serve(int(number), scripts, script)
    script.prepare()
    os.read(0, 1)  # the host sees it go, and knows that we stand here
    return script if scripts.wait_for_call() else None


if __name__ == "__main__":
    chosen = main()
    if chosen is None:
        os._exit(0)
    chosen.run()
