"""The health of one MCP server: the pause after its crashes, and what it prints to stderr.

The pause (R29) is 1, 2, 4, ... 60 s; after 5 crashes in 60 s there is no automatic start. Its stderr goes into the file
``logs/mcp-NAME.log`` of the home, for nobody else to read, with the last lines at hand for an error message. At
``MAX_BYTES`` the file becomes ``.1`` and a new one begins, so two of them is all there ever is. A disk that is full
loses lines, never a call.
"""

import contextlib
import os
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Final

from toolyard.workspace.home_folder import make_private_folder

MAX_CRASHES: Final = 5
WITHIN_S: Final = 60.0
LONGEST_S: Final = 60.0
FOLDER: Final = "logs"
MAX_BYTES: Final = 2**20
_MAX_TAIL = 8 * 1024
_LINES = 3
_MAX_LENGTH = 500  # characters


class Backoff:
    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._crashes: deque[float] = deque(maxlen=MAX_CRASHES)
        self.is_failed = False
        self.total = 0  # crashes in all, also those that are forgiven

    def note_crash(self) -> None:
        now = self._monotonic()
        self.total += 1
        if self._crashes and now - self._crashes[-1] > WITHIN_S:
            self._crashes.clear()  # it has worked for long enough since
        self._crashes.append(now)
        self.is_failed = len(self._crashes) == MAX_CRASHES and now - self._crashes[0] <= WITHIN_S

    @property
    def wait_s(self) -> float:
        """The seconds until it may start; 0 when it may now."""
        if not self._crashes:
            return 0.0
        pause = min(LONGEST_S, 2.0 ** (len(self._crashes) - 1))
        return max(0.0, self._crashes[-1] + pause - self._monotonic())

    def reset(self) -> None:
        """Forget all crashes, after a person has asked for it."""
        self._crashes.clear()
        self.is_failed = False


class ServerLog:
    def __init__(self, home: Path, name: str, *, prefix: str = "mcp-") -> None:
        self.path = home / FOLDER / f"{prefix}{name}.log"
        self._last = b""

    def add(self, chunk: bytes) -> None:
        self._last = (self._last + chunk)[-_MAX_TAIL:]
        with contextlib.suppress(OSError):
            make_private_folder(self.path.parent)
            fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            with os.fdopen(fd, "ab") as file:
                file.write(chunk)
                full = file.tell() > MAX_BYTES
            if full:
                self.path.replace(self.path.with_suffix(".log.1"))

    def clear_last_lines(self) -> None:
        """Forget the last lines of an earlier run; the file keeps them."""
        self._last = b""

    @property
    def last_lines(self) -> str:
        """The last lines, joined."""
        lines = [line.strip() for line in self._last.decode("utf-8", "replace").splitlines() if line.strip()]
        return " | ".join(lines[-_LINES:])[-_MAX_LENGTH:]
