"""The three pipes of one child, and the output collected so far."""

import asyncio
from collections.abc import Callable

from toolyard.crashpoint import crashpoint
from toolyard.plugins.launch import ChildProcess
from toolyard.plugins.pipes import PipeReader, PipeWriter
from toolyard.plugins.stderr import StderrRing
from toolyard.protocol.plugin_output import Output, OutputDecoder, PrintedObject, holds_answer

_THREAD_FROM = 256 * 1024  # reading less than this takes no longer than going to a thread


class ChildPipes:
    """The pipes of a child, served from the moment this is made. ``close`` closes them."""

    def __init__(
        self,
        child: ChildProcess,
        stdin: bytes,
        stdout_bytes: int,
        stderr: StderrRing,
        first: Callable[[], None] | None = None,
    ) -> None:
        """``first`` is called at the first bytes on stdout."""
        self._max_stdout, self._first = stdout_bytes, first
        self._decoder = OutputDecoder()
        self._collecting = True
        self._loop = asyncio.get_running_loop()
        self._last_output_at = self._loop.time()
        self._checked_size = 0  # bytes of stdout that are known to hold no answer
        self.output_overflow = asyncio.Event()  # stdout is over its limit
        self.output_arrived = asyncio.Event()  # something new is on stdout, or nothing more will be
        self._stdout = PipeReader(child.stdout, self._receive)
        self._stderr = PipeReader(child.stderr, stderr.feed)
        self._stdin = PipeWriter(child.stdin, stdin)
        crashpoint("plugin.stdin-written")

    @property
    def pipes(self) -> tuple[int, ...]:
        """The descriptors of the outputs that are still open."""
        return tuple(reader.pipe for reader in (self._stdout, self._stderr) if reader.pipe >= 0)

    @property
    def stdout_size(self) -> int:
        return self._decoder.size

    @property
    def noise(self) -> str:
        return self._decoder.noise

    def head(self, size: int) -> bytes:
        return self._decoder.head(size)

    def find_receipt(self) -> PrintedObject | None:
        return self._decoder.receipt()

    def seconds_until_silent(self, seconds: float) -> float:
        """Return how long until stdout has been silent for ``seconds``, if nothing more comes; 0 when it has been."""
        return max(0.0, self._last_output_at + seconds - self._loop.time())

    async def has_answer(self) -> bool:
        """Return whether stdout holds an answer by now. The same output is checked once."""
        if self._decoder.size == self._checked_size:
            return False
        seen = self._decoder.head(self._decoder.size)
        found = holds_answer(seen) if len(seen) < _THREAD_FROM else await asyncio.to_thread(holds_answer, seen)
        if not found:
            self._checked_size = len(seen)
        return found

    def discard_output(self) -> None:
        """Discard what arrives on stdout from now on; it is still read."""
        self._collecting = False

    async def drain(self, seconds: float) -> None:
        """Read what is left in the pipes after the exit, and wait a moment for another process that holds stdout."""
        self._stdin.close()
        self._stdout.read_rest()
        if not self._stdout.ended.is_set() and not self.output_overflow.is_set():
            waits = [asyncio.ensure_future(event.wait()) for event in (self._stdout.ended, self.output_overflow)]
            try:
                await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()
        self._stderr.read_rest()

    async def decode_output(self) -> Output:
        if self._decoder.size < _THREAD_FROM:
            return self._decoder.finish()
        return await asyncio.to_thread(self._decoder.finish)

    def close(self) -> None:
        self._stdin.close()
        self._stdout.close()
        self._stderr.close()

    def _receive(self, chunk: bytes) -> None:
        crashpoint("plugin.stdout-read")
        if self._first is not None:
            self._first()
            self._first = None
        if not self._collecting:
            return
        if self._decoder.size + len(chunk) > self._max_stdout:
            self._collecting = False
            self.output_overflow.set()
        else:
            self._decoder.feed(chunk)
        self._last_output_at = self._loop.time()
        self.output_arrived.set()
