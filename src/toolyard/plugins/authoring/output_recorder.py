"""Record every byte that children print, for the author of a plugin, while the host reads them as always.

Two threads for each child copy its outputs to the pipes that the host reads. What is kept is bounded; a host that stops
reading does not stop the copying.
"""

import contextlib
import os
import threading
from collections.abc import Mapping

from toolyard.plugins.plugin_host import PluginHost
from toolyard.plugins.process.launch import ChildProcess, Launch, Starter

MAX_KEPT = 16 * 2**20
_CHUNK = 64 * 1024
_JOIN_S = 2.0


class RecordedOutput:
    """The output on one stream: its first ``MAX_KEPT`` bytes, and its total size."""

    def __init__(self, source: int) -> None:
        self.size = 0
        self._kept = bytearray()
        self.pipe, self._sink = os.pipe()
        os.set_blocking(self.pipe, False)
        os.set_blocking(source, True)
        self._thread = threading.Thread(target=self._copy, args=(source,), name="witness", daemon=True)
        self._thread.start()

    @property
    def text(self) -> str:
        """Return everything so far; a stream that has ended is waited for."""
        self._thread.join(_JOIN_S)
        return bytes(self._kept).decode("utf-8", "replace")

    def _copy(self, source: int) -> None:
        is_read = True
        try:
            while chunk := os.read(source, _CHUNK):
                self.size += len(chunk)
                self._kept += chunk[: max(0, MAX_KEPT - len(self._kept))]
                if is_read:
                    try:
                        _write(self._sink, chunk)
                    except OSError:
                        is_read = False
        except OSError:
            pass
        finally:
            for pipe in (source, self._sink):
                with contextlib.suppress(OSError):
                    os.close(pipe)


class RecordedChild:
    """A recorded child, as the host gets it."""

    def __init__(self, child: ChildProcess, launch: Launch) -> None:
        self._child, self.launch = child, launch
        self.out, self.err = RecordedOutput(child.stdout), RecordedOutput(child.stderr)
        self.code: int | None = None  # None: it has not ended, or nobody waited for it

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def stdin(self) -> int:
        return self._child.stdin

    @property
    def stdout(self) -> int:
        return self.out.pipe

    @property
    def stderr(self) -> int:
        return self.err.pipe

    async def wait(self) -> int:
        self.code = await self._child.wait()
        return self.code


class RecordingStarter:
    """A Starter that remembers the children it started."""

    def __init__(self, starter: Starter) -> None:
        self._starter = starter
        self.children: list[RecordedChild] = []

    async def spawn(self, launch: Launch, per_call: Mapping[str, str]) -> ChildProcess:
        watched = RecordedChild(await self._starter.spawn(launch, per_call), launch)
        self.children.append(watched)
        return watched

    async def close(self) -> None:
        await self._starter.close()


def record_output(host: PluginHost) -> RecordingStarter:
    """Record every child of this host from now on; earlier recordings are dropped."""
    witness = host.starter if isinstance(host.starter, RecordingStarter) else RecordingStarter(host.starter)
    host.starter = host.async_runner.starter = witness
    witness.children = []
    return witness


def _write(pipe: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(pipe, rest) :]
