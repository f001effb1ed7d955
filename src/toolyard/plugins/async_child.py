"""A child that answers and lives on: the process of an asynchronous plugin.

Its first JSON object with a status is the receipt, given at the moment its last brace arrives. Afterwards both outputs
are still read, so that it never blocks, but stdout is thrown away. It ends by itself or by ``terminate``; then what is
left of it is killed, except that a ``detached`` one may leave a process behind to work on until ``terminate``.
"""

import asyncio
from collections.abc import Callable

from toolyard.crashpoint import crashpoint
from toolyard.plugins.child import (
    DRAIN_S,
    ChildReport,
    build_overflow_report,
    build_receipt_report,
    build_report,
    read_unread_news,
    wait_for_exit_or,
)
from toolyard.plugins.child_pipes import ChildPipes
from toolyard.plugins.child_state import ChildEvent, ChildLifecycle, ChildState
from toolyard.plugins.children import GRACE_S, Children
from toolyard.plugins.launch import ChildProcess
from toolyard.plugins.stderr import StderrRing
from toolyard.protocol.manifest import Limits


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
