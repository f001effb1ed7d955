"""The guardian: a tiny process that outlives its host for a moment and kills what the host left behind.

Run as a program: ``guardian_main.py PREFIX`` with a socket as stdin. Of Toolyard it loads only ``process_numbers.py``,
so that it starts at once. The host sends it commands, one line each:

    +GROUP     a child leads this group        -GROUP     that child has ended         (of children without a number)
    sNUMBER    spare this call; its two pipes come along, so that the child can go on printing when the host is gone
    eNUMBER    that call has ended

When the socket ends the host is gone. Then every process whose number carries the host's PREFIX is frozen and killed,
except those of spared calls, again and again until none is found. Spared children's pipes are read until they end.
"""

import contextlib
import importlib.util
import os
import select
import signal
import socket
import sys
from pathlib import Path
from typing import Any


def main(prefix: int) -> None:
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    numbers = _load_process_numbers()
    groups: set[int] = set()
    spared: dict[int, list[int]] = {}
    with socket.socket(fileno=0) as host:
        read_commands(host, groups, spared)
    numbers.send_signal((-group for group in groups), signal.SIGKILL)
    if prefix:
        numbers.kill_all(lambda: [one for one in numbers.find_processes(prefix) if one.number not in spared])
    drain_pipes([pipe for pipes in spared.values() for pipe in pipes])


def read_commands(host: socket.socket, groups: set[int], spared: dict[int, list[int]]) -> None:
    """Read the host's commands until it is gone."""
    rest = b""
    pipes: list[int] = []
    while True:
        try:
            data, more, _, _ = socket.recv_fds(host, 65536, 16)
        except OSError:
            return
        pipes += more
        if not data:
            return
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            word, number = line[:1], int(line[1:])
            if word == b"+":
                groups.add(number)
            elif word == b"-":
                groups.discard(number)
            elif word == b"s":
                spared[number], pipes = pipes[:2], pipes[2:]
            else:
                for pipe in spared.pop(number, []):
                    os.close(pipe)


def drain_pipes(pipes: list[int]) -> None:
    while pipes:
        for pipe in select.select(pipes, [], [])[0]:
            data = b""
            with contextlib.suppress(OSError):
                data = os.read(pipe, 65536)
            if not data:
                pipes.remove(pipe)


def _load_process_numbers() -> Any:  # loaded by its path: the package around it is too slow to import
    spec = importlib.util.spec_from_file_location("process_numbers", Path(__file__).with_name("process_numbers.py"))
    if spec is None or spec.loader is None:
        raise SystemExit("process_numbers.py is missing")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main(int(sys.argv[1]))
