"""The host's end of its guardian, the process that kills the host's children when the host itself is killed.

Started once, before the first child: a host that was killed in between would leave it alone. If it cannot start,
children run unguarded and the log says so. If it dies it is not started again. Commands to it never block: a guardian
that does not read is given up.
"""

import json
import logging
import socket
import subprocess
import sys
from pathlib import Path

from toolyard.plugins.port_server import PortServer

_log = logging.getLogger(__name__)
_MAIN = Path(__file__).with_name("guardian_main.py")


class Guardian:
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
