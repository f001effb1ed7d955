"""The guardian: a tiny process that outlives its host for a moment and kills what the host left behind.

Run as a program: ``guardian_main.py PREFIX PATH`` with a socket as stdin; PATH is where the host finds its modules. Of
Toolyard it loads only ``process_numbers.py``, so that it starts at once. The host sends it commands, one line each:

    +GROUP     a child leads this group        -GROUP     that child has ended         (of children without a number)
    sNUMBER    spare this call; its two pipes come along, so that the child can go on printing when the host is gone
    pNUMBER SERVICE    a port in its network, on whose listening socket, which comes along, SERVICE is to be served then
    eNUMBER    that call has ended

When the socket ends the host is gone. Then every process whose number carries the host's PREFIX is frozen and killed,
except those of spared calls, again and again until none is found. Spared children's pipes are read until they end, and
their ports are served by a process of its own (``spared_ports``).
"""

import contextlib
import importlib.util
import os
import select
import signal
import socket
import sys
from pathlib import Path
from typing import Any, NamedTuple


class SparedCall(NamedTuple):
    pipes: list[int]
    ports: dict[int, str]  # by listening socket: what is to be served there, as JSON


def main(prefix: int, path: str) -> None:
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    numbers = _load_process_numbers()
    groups: set[int] = set()
    spared: dict[int, SparedCall] = {}
    with socket.socket(fileno=0) as host:
        read_commands(host, groups, spared)
    numbers.send_signal((-group for group in groups), signal.SIGKILL)
    if prefix:
        numbers.kill_all(lambda: [one for one in numbers.find_processes(prefix) if one.number not in spared])
    start_port_server(spared, path)
    drain_pipes([pipe for call in spared.values() for pipe in call.pipes])


def read_commands(host: socket.socket, groups: set[int], spared: dict[int, SparedCall]) -> None:
    """Read the host's commands until it is gone."""
    rest = b""
    opened: list[int] = []  # descriptors that came, and whose command is still to be read
    while True:
        try:
            data, more, _, _ = socket.recv_fds(host, 65536, 16)
        except OSError:
            return
        opened += more
        if not data:
            return
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            text, _, service = line[1:].partition(b" ")
            word, number = line[:1], int(text)
            if word == b"+":
                groups.add(number)
            elif word == b"-":
                groups.discard(number)
            elif word == b"s":
                spared[number], opened = SparedCall(opened[:2], {}), opened[2:]
            elif word == b"p" and number in spared:
                spared[number].ports[opened.pop(0)] = service.decode()
            elif word == b"p":  # it has ended meanwhile
                os.close(opened.pop(0))
            elif number in spared:
                ended = spared.pop(number)
                for descriptor in (*ended.pipes, *ended.ports):
                    os.close(descriptor)


def start_port_server(spared: dict[int, SparedCall], path: str) -> None:
    """Start the process that serves the ports of spared calls, if there are any."""
    ports = {listener: (number, text) for number, call in spared.items() for listener, text in call.ports.items()}
    if not ports:
        return
    import subprocess  # only here: it takes longer to import than all the rest

    words = [f"{listener} {number} {text}" for listener, (number, text) in ports.items()]
    with contextlib.suppress(OSError):
        subprocess.Popen(  # noqa: S603 our own file, run by our own interpreter
            [sys.executable, "-I", "-S", str(Path(__file__).with_name("spared_ports.py")), path, *words],
            pass_fds=tuple(ports),
            stdin=subprocess.DEVNULL,
            cwd="/",
        )
    for listener in ports:
        os.close(listener)


def drain_pipes(pipes: list[int]) -> None:
    while pipes:
        for pipe in select.select(pipes, [], [])[0]:
            data = b""
            with contextlib.suppress(OSError):
                data = os.read(pipe, 65536)
            if not data:
                pipes.remove(pipe)


def _load_process_numbers() -> Any:  # loaded by its path: the package around it is too slow to import
    path = Path(__file__).parents[2] / "process_numbers.py"
    spec = importlib.util.spec_from_file_location("process_numbers", path)
    if spec is None or spec.loader is None:
        raise SystemExit("process_numbers.py is missing")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
