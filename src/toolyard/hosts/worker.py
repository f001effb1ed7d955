"""The worker: calls from other hosts are claimed, run by a runner as every call is, and sent back.

Whoever sent a call has permitted it and journals it; here it only runs. An entry of a call that has ended, or that
another host runs, is passed over. A claim is confirmed as the last step before the tool gets its input: a process that
stood still meanwhile starts nothing that has ended. The outcome of a call that was settled meanwhile is dropped: the
first end stays. With a ``cluster_key``, a call that no host has signed is refused, and so is one that ran here before.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from toolyard.engine.clock import read_boot_time
from toolyard.engine.history.journal import NullRecorder
from toolyard.engine.runner import Runner
from toolyard.errors import StorageError, StorageKeyMissing
from toolyard.hosts.remote_calls import RemoteCalls
from toolyard.message import Message
from toolyard.protocol.envelope import ErrorCode, Failure, Reason
from toolyard.protocol.records.remote_call import RemoteCall, RemoteCallState
from toolyard.protocol.tool import ToolCall

_log = logging.getLogger(__name__)
_FRESH_S = 0.7  # how long a claim that was confirmed stays so; a sender that gives up waits longer for its end
_TRIES = 10
_MAX_BEGUN = 10_000


class Presence(Protocol):
    """The hosts that are up."""

    def is_alive(self, owner: str) -> bool:
        """Return whether an owner is alive, as far as this host knows; without waiting."""
        ...

    async def is_gone(self, owner: str) -> bool:
        """Return whether an owner is gone, as far as any host knows."""
        ...


class Ownership(Protocol):
    """The right of this host to what it has begun."""

    def is_certain(self) -> bool: ...

    def latest_store_time(self) -> float: ...

    async def confirm(self, owner: str) -> None:
        """Raise Failure unless what ``owner`` has begun is this host's own."""
        ...


@dataclass(slots=True)
class _Claim:
    remote: RemoteCall
    requested: float  # when the newest confirmation was asked for


class Claims(NullRecorder):
    """The claims of this host, as its runner asks about them."""

    def __init__(self, calls: RemoteCalls, own: Ownership, now: Callable[[], float] = read_boot_time) -> None:
        self._calls, self._own, self._now = calls, own, now
        self._claims: dict[str, _Claim] = {}

    def now(self) -> float:
        return self._now()

    def is_too_late(self, remote: RemoteCall) -> bool:
        """Return whether the sender of a call no longer waits for it, and may not have been able to say so."""
        return remote.due is not None and self._own.latest_store_time() >= remote.due

    def add(self, remote: RemoteCall, requested: float) -> None:
        self._claims[remote.id] = _Claim(remote, requested)

    def remove(self, call_id: str) -> None:
        self._claims.pop(call_id, None)

    async def confirm(self, call: ToolCall) -> None:
        """Raise Failure unless the claim of a call was good a moment ago. Mostly without asking anybody."""
        claim = self._claims.get(call.id.partition("#")[0])
        if claim is None:
            raise Failure(Reason.INTERRUPTED, Message("{tool} was not started: its call has ended.", tool=call.tool))
        for _ in range(_TRIES):
            if self._is_fresh(claim):
                return
            requested = self._now()
            try:
                await self._own.confirm(claim.remote.owner)
                await self._calls.confirm(claim.remote)
            except StorageError as error:
                raise Failure(
                    Reason.INTERRUPTED,
                    Message(
                        "{tool} was not started: the database does not confirm that it is still wanted ({error}).",
                        tool=call.tool,
                        error=error,
                    ),
                ) from error
            if self.is_too_late(claim.remote):
                raise Failure(
                    ErrorCode.TIMEOUT,
                    Message("{tool} was not started: its time was over before it began.", tool=call.tool),
                )
            claim.requested = requested
        raise Failure(
            Reason.INTERRUPTED,
            Message(
                "{tool} was not started: the database is too slow to confirm that it is still wanted.", tool=call.tool
            ),
            hint=Message("Call it again."),
        )

    def _is_fresh(self, claim: _Claim) -> bool:
        return self._own.is_certain() and self._now() - claim.requested < _FRESH_S


class Worker:
    def __init__(self, calls: RemoteCalls, claims: Claims, runner: Runner, hosts: Presence) -> None:
        self._calls, self._claims, self._runner, self._hosts = calls, claims, runner, hosts
        self._running: dict[str, bool] = {}  # and whether each was stopped
        self._begun: dict[tuple[str, int], None] = {}  # the last runs that began here, by call and number

    async def run(self, call_id: str) -> None:
        if call_id in self._running:
            return
        self._running[call_id] = False
        try:
            remote = await self._get(call_id)
            requested = self._claims.now()
            claimed = await self._claim(remote) if remote else None
            if claimed is not None and self._running[call_id]:  # others saw the claim before this host did
                await self._calls.cancel_claimed(claimed)
            elif claimed is not None:
                self._remember(claimed)
                self._claims.add(claimed, requested)
                outcome = await self._runner.settle(claimed.to_call())
                if not await self._calls.finish(claimed, outcome):
                    _log.warning("%s %s had ended before its outcome came: it is dropped", claimed.tool, call_id)
        finally:
            self._claims.remove(call_id)
            del self._running[call_id]

    def cancel(self, call_id: str) -> bool:
        if call_id in self._running:
            self._running[call_id] = True
        return self._runner.cancel(call_id)

    async def cancel_stopped(self) -> None:
        """Cancel the calls that their senders no longer want, whether that was heard or not."""
        if self._running:
            for call_id in await self._calls.find_stopped():
                self.cancel(call_id)

    async def stop(self) -> None:
        await self._runner.stop()

    async def _get(self, call_id: str) -> RemoteCall | None:
        """Return a call; None when there is none, or it was encrypted with a key that this host does not have."""
        try:
            return await self._calls.get(call_id)
        except StorageKeyMissing as error:
            _log.error("%s was not run: %s", call_id, error)
            await self._calls.record_unreadable(call_id, str(error))
            return None

    def _remember(self, claimed: RemoteCall) -> None:
        self._begun[claimed.id, claimed.runs] = None
        while len(self._begun) > _MAX_BEGUN:
            self._begun.pop(next(iter(self._begun)))

    def _find_refusal(self, remote: RemoteCall) -> str:
        """Return why a call must not run here; empty when it may. A record can be written by others than hosts."""
        if not self._calls.is_call_valid(remote):
            return Message(
                "{tool} was not run: the call is not signed with the cluster_key of the host that was to run it.",
                tool=remote.tool,
            )
        if (remote.id, remote.runs + 1) in self._begun:
            return Message("{tool} was not run: the same call has run here before.", tool=remote.tool)
        return ""

    async def _claim(self, remote: RemoteCall) -> RemoteCall | None:
        if remote.state is RemoteCallState.DONE:
            return None
        if refusal := self._find_refusal(remote):
            _log.error("%s from %s: %s", remote.id, remote.sender, refusal)
            await self._calls.refuse(remote, refusal)
            return None
        if remote.state is RemoteCallState.QUEUED:
            if not self._hosts.is_alive(remote.sender) or self._claims.is_too_late(remote):
                await self._calls.stop(remote.id)  # nobody waits for it any more
                return None
            return await self._calls.claim(remote)
        # Its own name on a call that does not run here: a crash of the database has taken back how it ended.
        abandoned = remote.owner == self._calls.host or await self._hosts.is_gone(remote.owner)
        if abandoned and not remote.can_run_again:
            await self._calls.interrupt(remote)
            return None
        return await self._calls.claim(remote, abandoned=abandoned)
