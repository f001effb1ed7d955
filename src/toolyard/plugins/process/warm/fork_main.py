"""Run a plugin's script in its own interpreter: as a server that forks for each call, or once, after a wait.

A program of its own, for any Python from 3.8 on, without Toolyard: standard library only, and little of it.

    fork_main.py serve SOCKET LAYER SCRIPT ARGUMENT...  preload what the script imports, then fork when told
    fork_main.py standby - - SCRIPT ARGUMENT...         wait for the call, then be the script

Packets on the socket. To us: ``f`` with the socket of a child: fork it; ``r PID...``: nobody needs these zombies any
more. From us: ``h`` our program runs here; ``k`` ready, with the times of what must not change, or ``u`` unfit, with
the reason; ``p PID`` forked; ``x PID CODE`` ended. When the host is gone the server ends.

A child waits at its own socket for one packet: the variables that its call adds, with its three pipes; no line of the
plugin runs before. Nothing of a call exists in a process before that, and no other call can reach one that waits or
runs: a socket cannot be opened by ``/proc``, neither the server nor a waiting child is dumpable, and under Landlock
each child adds a layer of its own (LAYER, a ruleset; ``-``: it is not confined), outside of which it can trace, and
with a newer kernel signal, nobody. The same separates processes that are started for one call each.
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


class Kernel:
    """The system calls that keep calls apart. By the core of ctypes alone, which the script finds not loaded."""

    def __init__(self) -> None:
        import _ctypes

        del sys.modules["_ctypes"]
        core: Any = _ctypes
        library = core.dlopen(None, os.RTLD_NOW)
        self._call = core.call_function
        self._prctl, self._syscall = core.dlsym(library, "prctl"), core.dlsym(library, "syscall")

    def set_dumpable(self, value: int) -> None:
        """Close this process to others of its user (0), or open it (1)."""
        self._call(self._prctl, (4, value, 0, 0, 0))

    def add_layer(self, ruleset: int) -> bool:
        """Add a layer of Landlock to this process; return whether the kernel has done it."""
        return bool(self._call(self._syscall, (446, ruleset, 0)) == 0)

    def can_add_layer(self, ruleset: int) -> bool:
        """Return whether a child can add a layer to itself."""
        child = os.fork()
        if not child:
            os._exit(0 if self.add_layer(ruleset) else 1)
        return os.waitpid(child, 0)[1] == 0


class Server:
    def __init__(self, number: int, layer: int | None) -> None:
        import _signal  # type: ignore[import-not-found]  # these and not signal and socket: whatever is less here is less to copy for each child
        import _socket
        import select

        self._signal: Any = _signal
        self.make_socket: Any = _socket.socket
        self._socket = _socket.socket(fileno=number)
        self._poll = select.poll()
        self._living: set[int] = set()
        self.send(b"h")
        self.kernel, self._layer = Kernel(), layer
        self.kernel.set_dumpable(0)

    def send(self, packet: bytes) -> None:
        self._socket.send(packet)

    def serve(self) -> int | None:
        """Serve until the host is gone. Return the socket of its call in each child, None in the server."""
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
                packet, channels = receive(self._socket)
                if not packet:
                    return None
                if packet[:1] == b"r":
                    self._reap(packet)
                elif self._fork():
                    self._signal.set_wakeup_fd(-1)
                    self._signal.signal(self._signal.SIGCHLD, before)
                    for ours in (self._socket.detach(), read, write):
                        os.close(ours)
                    return channels[0]
                for channel in channels:
                    os.close(channel)

    def wait_for_call(self, channel: int) -> bytes:
        """Wait in a child for its call, and take its pipes. Return the variables it adds; empty: none will come."""
        call = self.make_socket(fileno=channel)
        variables, pipes = receive(call)
        call.close()
        for number, pipe in enumerate(pipes):
            os.dup2(pipe, number)
            os.close(pipe)
        self.kernel.set_dumpable(1)
        return variables

    def _fork(self) -> bool:
        child = os.fork()
        if child:
            self._living.add(child)
            self.send(b"p%d" % child)
            return False
        os.setsid()
        if self._layer is not None:
            if not self.kernel.add_layer(self._layer):
                os._exit(1)
            os.close(self._layer)
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


def receive(channel: Any) -> tuple[bytes, list[int]]:
    packet, extra, _, _ = channel.recvmsg(65536, 256)
    received = b"".join(data for _, _, data in extra)
    return packet, [int.from_bytes(received[at : at + 4], sys.byteorder) for at in range(0, len(received), 4)]


def serve(number: int, layer: int | None, scripts: Any, script: Any) -> Any:
    """Return the script in a child that has its call; None in a server that is over, and a child without a call."""
    imports = load_part("fork_imports")
    server = Server(number, layer)
    if layer is not None and not server.kernel.can_add_layer(layer):
        server.send(b"uthe kernel does not keep its calls apart")
        return None
    times = imports.list_mtimes(script.path)
    script.compile()
    sources = load_part("fork_random").RandomSources()
    reason = imports.preload(script.path, script.folder, KNOWN, sources)
    if reason:
        server.send(b"u" + reason.encode())
        return None
    script.prepare()
    server.send(b"k" + times)
    channel = server.serve()
    variables = b"" if channel is None else server.wait_for_call(channel)
    if not variables:
        return None
    scripts.set_variables(variables)
    sources.reseed()
    imports.reset_start_time()
    return script


def main() -> Any:
    """Return the script at the moment when it is to run; None when it is not."""
    how, number, layer = sys.argv[1:4]
    scripts = load_part("fork_script")
    script = scripts.Script(FIRST, sys.argv[4:])
    if how == "serve":
        return serve(int(number), None if layer == "-" else int(layer), scripts, script)
    script.prepare()
    os.read(0, 1)  # the host sees it go, and knows that we stand here
    return script if scripts.wait_for_call() else None


if __name__ == "__main__":
    chosen = main()
    if chosen is None:
        os._exit(0)
    chosen.run()
