"""The calls that other hosts send here: claimed, run by a runner as every call is, and sent back.

Whoever sent a call has permitted it and journals it; here it only runs. An entry of a call that has ended, or that
another host runs, is passed over. The outcome of a call that was settled meanwhile is dropped: the first end stays.
"""

import logging
from typing import Protocol

from toolyard.engine.runner import Runner
from toolyard.hosts.remote_call import RemoteCalls, State, call_of, may_run_again
from toolyard.protocol.store import Record

_log = logging.getLogger(__name__)


class Presence(Protocol):
    """Who is there."""

    def alive(self, owner: str) -> bool:
        """As far as this host knows: at once."""
        ...

    async def is_gone(self, owner: str) -> bool:
        """As far as any host knows."""
        ...


class Worker:
    def __init__(self, calls: RemoteCalls, runner: Runner, hosts: Presence) -> None:
        self._calls, self._runner, self._hosts = calls, runner, hosts
        self._running: dict[str, bool] = {}  # and whether each was stopped

    async def run(self, call_id: str) -> None:
        if call_id in self._running:
            return
        self._running[call_id] = False
        try:
            record = await self._calls.get(call_id)
            claimed = await self._claim(record) if record else None
            if claimed is not None and self._running[call_id]:  # others saw the claim before this host did
                await self._calls.drop(claimed)
            elif claimed is not None:
                outcome = await self._runner.settle(call_of(claimed))
                if not await self._calls.finish(claimed, outcome):
                    _log.warning("%s %s had ended before its outcome came: it is dropped", claimed.tool, call_id)
        finally:
            del self._running[call_id]

    def cancel(self, call_id: str) -> bool:
        if call_id in self._running:
            self._running[call_id] = True
        return self._runner.cancel(call_id)

    async def stop(self) -> None:
        await self._runner.stop()

    async def _claim(self, record: Record) -> Record | None:
        if record.state == State.DONE:
            return None
        if record.state == State.QUEUED:
            if not self._hosts.alive(record.key):
                await self._calls.stop(record.id)  # nobody waits for it any more
                return None
            return await self._calls.claim(record)
        # Its own name on a call that does not run here: a crash of the database has taken back how it ended.
        abandoned = record.owner == self._calls.host or await self._hosts.is_gone(record.owner)
        if abandoned and not may_run_again(record):
            await self._calls.interrupt(record)
            return None
        return await self._calls.claim(record, abandoned=abandoned)
