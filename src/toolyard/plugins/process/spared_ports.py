"""Serve the ports of tasks that outlive their host: ``spared_ports.py PATH "LISTENER NUMBER SERVICE"...``

Started by the guardian of a host that is gone; PATH is where that host found its modules. Each other word names a
listening socket that this process inherits, the number of the processes that use it, and what is served on it. So a
task in a network of its own reaches the server again once that is back. A port is closed when the processes of its
number are gone; with the last one this ends.
"""

import asyncio
import json
import signal
import socket
import sys
from dataclasses import dataclass

if __name__ == "__main__":
    sys.path[:] = json.loads(sys.argv[1])

from toolyard import process_numbers
from toolyard.plugins.process.launch import PortServer
from toolyard.plugins.process.network_services import build_port_server
from toolyard.plugins.process.ports import HostPorts
from toolyard.process_numbers import is_group_alive

_POLL_S = 2.0


@dataclass(frozen=True, slots=True)
class SparedPort:
    listener: socket.socket
    number: int  # of its processes; of their group, where they have none
    service: PortServer


def parse_port(word: str) -> SparedPort:
    listener, number, service = word.split(" ", 2)
    return SparedPort(socket.socket(fileno=int(listener)), int(number), build_port_server(json.loads(service)))


def list_living(numbers: set[int]) -> set[int]:
    """Return those numbers whose processes still run. They are all of one host, or of groups."""
    numbered = {number for number in numbers if process_numbers.is_number(number)}
    living = {group for group in numbers - numbered if is_group_alive(group)}
    if numbered:
        living |= {one.number for one in process_numbers.find_processes(min(numbered)) if not one.zombie}
    return living


async def serve_until_ended(ports: list[SparedPort]) -> None:
    serving: dict[int, HostPorts] = {}
    for port in ports:
        await serving.setdefault(port.number, HostPorts()).serve(port.listener, port.service.handle)
    while serving:
        await asyncio.sleep(_POLL_S)
        for number in serving.keys() - await asyncio.to_thread(list_living, set(serving)):
            await serving.pop(number).close()


if __name__ == "__main__":
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    asyncio.run(serve_until_ended([parse_port(word) for word in sys.argv[2:]]))
