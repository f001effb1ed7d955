"""A child that answers and lives on: the process of an asynchronous plugin.

Its first JSON object with a status is the receipt, given at the moment its last brace arrives. Afterwards both outputs
are still read, so that it never blocks, but stdout is thrown away. It ends by itself or by ``terminate``; then what is
left of it is killed, except that a ``detached`` one may leave a process behind to work on until ``terminate``.

One that has outlived the host that started it is adopted: watched again, by its pid alone. It is no child of ours: its
exit code is not ours to know, and its stderr went to the guardian of its first host. A pid is believed only together
with the moment its process began.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable

from toolyard.crashpoint import crashpoint
from toolyard.plugins.process.child import (
    DRAIN_S,
    ChildEvent,
    ChildLifecycle,
    ChildState,
    read_unread_news,
    wait_for_exit_or,
)
from toolyard.plugins.process.child_report import ChildReport, build_overflow_report, build_receipt_report, build_report
from toolyard.plugins.process.children import GRACE_S, Children
from toolyard.plugins.process.launch import ChildProcess
from toolyard.plugins.process.pipes import ChildPipes
from toolyard.plugins.process.process_output import StderrRing
from toolyard.protocol.manifests.manifest import Limits

_POLL_S = 0.5


class AsyncChild:
    def __init__(
        self,
        child: ChildProcess,
        stdin: bytes,
        *,
        children: Children,
        limits: Limits,
        detached: bool = False,
        on_first_output: Callable[[], None] | None = None,
        drain_s: float = DRAIN_S,
    ) -> None:
        self.stderr = StderrRing()
        self._child, self._children, self._limits = child, children, limits
        self._detached, self._drain_s = detached, drain_s
        self._pipes = ChildPipes(child, stdin, limits.stdout_bytes, self.stderr, on_first_output)
        self._lifecycle = ChildLifecycle()
        self._watch = asyncio.create_task(self._watch_exit())

    @property
    def pid(self) -> int:
        return self._child.pid

    async def wait_receipt(self) -> ChildReport:
        """Return the receipt (no exit yet), or how the child ended without one. Terminate the child when cancelled."""
        while not self._pipes.output_overflow.is_set():
            self._pipes.output_arrived.clear()
            receipt = self._pipes.find_receipt()
            if receipt:
                crashpoint("task.receipt-read")
                self._lifecycle.handle(ChildEvent.RECEIPT)
                self._pipes.discard_output()
                return build_receipt_report(self._pipes, receipt, limits=self._limits, stderr=self.stderr)
            if self._watch.done():
                output = await self._pipes.decode_output()
                if output.first is None:
                    code = self._watch.result()
                    return build_report(self._pipes, output, code, limits=self._limits, stderr=self.stderr)
                continue
            try:
                await wait_for_exit_or(self.wait(), self._pipes.output_arrived)
            except asyncio.CancelledError:
                await read_unread_news(self.pid, self._pipes, self._watch)
                if not self._watch.done() and self._pipes.find_receipt() is None:
                    self.terminate()
                    raise
            except BaseException:
                self.terminate()
                raise
        self.terminate()
        return build_overflow_report(self._pipes, limits=self._limits, stderr=self.stderr)

    async def wait(self) -> int:
        """Wait until it has ended and its outputs are read. Return its exit code, or minus the number of the signal."""
        return await asyncio.shield(self._watch)

    def spare(self) -> None:
        """Let the child outlive the host."""
        self._children.spare(self.pid, self._pipes.pipes)

    def terminate(self, grace_s: float = GRACE_S) -> "asyncio.Task[None]":
        """Send SIGTERM, then SIGKILL to everything it started. Continues when nobody awaits the task."""
        self._lifecycle.handle(ChildEvent.STOP)
        return self._children.stop(self._child, grace_s)

    async def release(self) -> None:
        """Close our end of its pipes because the host ends; a spared child continues."""
        self._watch.cancel()
        await asyncio.wait({self._watch})
        self._lifecycle.handle(ChildEvent.RELEASE)
        self._pipes.close()

    async def _watch_exit(self) -> int:
        code = await self._child.wait()
        self._lifecycle.handle(ChildEvent.EXITED)
        crashpoint("task.process-exited")
        await self._pipes.drain(self._drain_s)
        self._pipes.close()
        event = ChildEvent.MAY_CONTINUE if self._detached else ChildEvent.MUST_END
        if self._lifecycle.handle(event) is ChildState.ENDED:
            self._children.end(self.pid)
        return code


class AdoptedChild:
    """The process of a task that an earlier run of this host started."""

    def __init__(self, pid: int, is_alive: Callable[[], bool]) -> None:
        self.pid, self._is_alive = pid, is_alive
        self.stderr = StderrRing()  # nothing will ever be in it

    async def wait(self) -> int:
        """Wait until the process is gone. Return 0: the exit code of a process that is not our child is unknown."""
        while self._is_alive():  # noqa: ASYNC110 the exit of a process that is not our child cannot be awaited
            await asyncio.sleep(_POLL_S)
        return 0

    def spare(self) -> None:
        """Do nothing: it has outlived one host already."""

    def terminate(self, grace_s: float = GRACE_S) -> "asyncio.Task[None]":
        return asyncio.create_task(self._stop(grace_s))

    async def release(self) -> None:
        """Do nothing: the host holds nothing of it."""

    async def _stop(self, grace_s: float) -> None:
        self._signal(signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                await self.wait()
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        if self._is_alive():  # it leads a session and a group of its own
            with contextlib.suppress(OSError):
                os.killpg(self.pid, number)
