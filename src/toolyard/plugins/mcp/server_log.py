"""The stderr of one MCP server: in a file for its owner, with the last lines at hand for an error message.

The file is ``logs/mcp-NAME.log`` of the home, for nobody else to read. At ``MAX_BYTES`` it becomes ``.1`` and a new one
begins, so two of them is all there ever is. A disk that is full loses lines, never a call.
"""

import contextlib
import os
from pathlib import Path
from typing import Final

from toolyard.workspace.home_folder import make_private_folder

FOLDER: Final = "logs"
MAX_BYTES: Final = 2**20
_MAX_TAIL = 8 * 1024
_LINES = 3
_MAX_LENGTH = 500  # characters


class ServerLog:
    def __init__(self, home: Path, name: str) -> None:
        self.path = home / FOLDER / f"mcp-{name}.log"
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
