"""The service manager's side of a server: a socket that it passes on, and notices of the server's state.

Both are protocols of systemd that other managers speak too: ``LISTEN_FDS`` and ``NOTIFY_SOCKET``. With a socket of the
manager, connections that come while the server restarts wait in it instead of being refused.
"""

import asyncio
import contextlib
import os
import socket
from collections.abc import Mapping
from typing import Final

from toolyard.errors import UsageError
from toolyard.message import Message

_FIRST_FD: Final = 3


def take_activated_socket(environ: Mapping[str, str]) -> socket.socket | None:
    """Return the listening socket that the service manager has passed to this process; None without one."""
    if environ.get("LISTEN_PID") != str(os.getpid()) or environ.get("LISTEN_FDS", "0") == "0":
        return None
    if environ["LISTEN_FDS"] != "1":
        raise UsageError(
            Message("the service manager passed {count} sockets: a server listens on one", count=environ["LISTEN_FDS"])
        )
    listening = socket.socket(fileno=_FIRST_FD)
    is_tcp = listening.family in (socket.AF_INET, socket.AF_INET6) and listening.type == socket.SOCK_STREAM
    if not is_tcp or not listening.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        raise UsageError(
            Message("the service manager passed a socket that does not listen on TCP: use ListenStream=ADDRESS:PORT")
        )
    listening.set_inheritable(False)
    listening.setblocking(False)
    return listening


class ServiceNotifier:
    """Tells the service manager about the state of this process; without one it does nothing."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._address = environ.get("NOTIFY_SOCKET", "")
        watched = environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        limit = environ.get("WATCHDOG_USEC", "")
        self._watchdog_s = int(limit) / 1_000_000 if watched and limit.isdecimal() else 0.0

    def send(self, state: str) -> None:
        """Send a state such as ``READY=1``. A manager that does not listen is none of our business."""
        if not self._address.startswith(("/", "@")):
            return
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
            out.setblocking(False)
            out.connect(address)
            out.send(state.encode())

    async def feed_watchdog(self) -> None:
        """Say that the event loop is alive, twice in the time that the manager allows; until cancelled."""
        while self._watchdog_s:
            self.send("WATCHDOG=1")
            await asyncio.sleep(self._watchdog_s / 2)
