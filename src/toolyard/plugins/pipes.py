"""Non-blocking pipes between the host and a child: each is served by itself, on the event loop.

A pump owns its descriptor, which is non-blocking, and closes it once. One that is not ready costs nothing, so a child
that floods one pipe and ignores another holds up nobody.
"""

import asyncio
import os
from collections.abc import Callable

_CHUNK = 64 * 1024  # what a pipe holds
_MAX_REST_CHUNKS = 32  # chunks; a pipe cannot hold more


class PipeReader:
    """Hands arriving bytes to ``take``, until the other side has closed, or ``close``."""

    def __init__(self, pipe: int, take: Callable[[bytes], None]) -> None:
        self._pipe, self._take = pipe, take
        self._loop = asyncio.get_running_loop()
        self.ended = asyncio.Event()
        self._loop.add_reader(pipe, self.read)

    @property
    def pipe(self) -> int:
        """The descriptor, -1 when it is closed."""
        return self._pipe

    def read(self) -> bool:
        """Read one chunk, if there is one."""
        if self._pipe < 0:
            return False
        try:
            chunk = os.read(self._pipe, _CHUNK)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            chunk = b""
        if not chunk:
            self.close()
            return False
        self._take(chunk)
        return True

    def read_rest(self) -> None:
        """Read what is in the pipe now."""
        for _ in range(_MAX_REST_CHUNKS):
            if not self.read():
                return

    def close(self) -> None:
        if self._pipe >= 0:
            self._loop.remove_reader(self._pipe)
            os.close(self._pipe)
            self._pipe = -1
            self.ended.set()


class PipeWriter:
    """Writes ``data`` as fast as it is read, then closes. A reader that has gone away is no error."""

    def __init__(self, pipe: int, data: bytes) -> None:
        self._pipe = pipe
        self._rest = memoryview(data)
        self._loop = asyncio.get_running_loop()
        self._waiting = False
        self._write()

    def close(self) -> None:
        if self._pipe >= 0:
            if self._waiting:
                self._loop.remove_writer(self._pipe)
            os.close(self._pipe)
            self._pipe = -1
            self._rest = memoryview(b"")

    def _write(self) -> None:
        try:
            while self._rest:
                self._rest = self._rest[os.write(self._pipe, self._rest) :]
        except (BlockingIOError, InterruptedError):
            if not self._waiting:
                self._loop.add_writer(self._pipe, self._write)
                self._waiting = True
            return
        except OSError:
            pass
        self.close()
