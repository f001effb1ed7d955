"""The pipes of a child, and the output collected so far: each pipe is served by itself, on the event loop.

A pump owns its descriptor, which is non-blocking, and closes it once. One that is not ready costs nothing, so a child
that floods one pipe and ignores another holds up nobody. What arrives on stdout is treated by its state:

    COLLECTED   kept; ``discard_output`` leads to DISCARDED, the first chunk over the limit to OVERFLOWED
    DISCARDED   read and discarded: the result is decided
    OVERFLOWED  read and discarded: stdout is over its limit, and stays in this state
"""

import asyncio
import os
from collections.abc import Callable
from enum import Enum, auto

from toolyard.crashpoint import crashpoint
from toolyard.plugins.process.launch import ChildProcess
from toolyard.plugins.process.process_output import StderrRing
from toolyard.protocol.plugin_answers.plugin_output import Output, OutputDecoder, PrintedObject, holds_answer

_CHUNK = 64 * 1024  # what a pipe holds
_MAX_REST_CHUNKS = 32  # chunks; a pipe cannot hold more
_THREAD_FROM = 256 * 1024  # reading less than this takes no longer than going to a thread


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


class _StdoutState(Enum):
    COLLECTED = auto()
    DISCARDED = auto()
    OVERFLOWED = auto()


class ChildPipes:
    """The pipes of a child, served from the moment this is made. ``close`` closes them."""

    def __init__(
        self,
        child: ChildProcess,
        stdin: bytes,
        stdout_bytes: int,
        stderr: StderrRing,
        on_first_output: Callable[[], None] | None = None,
    ) -> None:
        """``on_first_output`` is called at the first bytes on stdout."""
        self._max_stdout, self._on_first_output = stdout_bytes, on_first_output
        self._decoder = OutputDecoder()
        self._stdout_state = _StdoutState.COLLECTED
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
        output = self._decoder.head(self._decoder.size)
        is_answer = (
            holds_answer(output) if len(output) < _THREAD_FROM else await asyncio.to_thread(holds_answer, output)
        )
        if not is_answer:
            self._checked_size = len(output)
        return is_answer

    def read_output(self) -> None:
        """Read what is in the pipe of stdout now."""
        self._stdout.read_rest()

    def discard_output(self) -> None:
        """Discard what arrives on stdout from now on; it is still read."""
        if self._stdout_state is _StdoutState.COLLECTED:
            self._stdout_state = _StdoutState.DISCARDED

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
        if self._on_first_output is not None:
            self._on_first_output()
            self._on_first_output = None
        if self._stdout_state is not _StdoutState.COLLECTED:
            return
        if self._decoder.size + len(chunk) > self._max_stdout:
            self._stdout_state = _StdoutState.OVERFLOWED
            self.output_overflow.set()
        else:
            self._decoder.feed(chunk)
        self._last_output_at = self._loop.time()
        self.output_arrived.set()
