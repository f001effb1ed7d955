"""Calls on their way to another host, as records: queued, then running with an owner, then done.

Each step is one compare-and-set, so whoever sees a call first, twice or too late, it runs at most once: only the one
who moves it to ``running`` may run it, and only the first end is kept. ``runs`` counts the claims, and the
end of an older claim is refused. A call whose owner is gone ends as interrupted. Only a call of an idempotent tool may
be claimed once more instead. An ended call is kept without its arguments until ``forget`` removes it; its story is in
the journal of the host that sent it.
"""

from dataclasses import replace
from typing import Final

from toolyard.engine.clock import Clock
from toolyard.hosts.cluster_key import ClusterSigner
from toolyard.message import Message, to_fields
from toolyard.protocol.envelope import ErrorCode, Failure, Reason
from toolyard.protocol.json import JsonObject
from toolyard.protocol.records.remote_call import (
    REMOTE_CALL,
    RemoteCall,
    RemoteCallState,
    call_to_text,
    outcome_to_text,
)
from toolyard.protocol.store import NewEvent, Query, SharedStore, Signal
from toolyard.protocol.tool import Outcome, ToolCall, ToolSpec

DONE: Final = "remote.done"  # signals
STOP: Final = "remote.stop"
REFUSED: Final = "host.call_refused"  # an event
MAX_OUTCOME: Final = 64 * 2**20  # characters; a plugin's own limit is far below
_KEPT_S = 600.0
_LONGEST_S = 86_400.0  # no call waits so long
_PAGE = 500


class RemoteCalls:
    """The remote calls as one host sees them. ``host`` is the name of the owner; it changes with the term."""

    def __init__(self, store: SharedStore, clock: Clock, *, host: str, signer: ClusterSigner | None = None) -> None:
        self._store, self._clock, self.host = store, clock, host
        self._signer = signer or ClusterSigner()

    async def submit(self, call: ToolCall, spec: ToolSpec, *, due: float | None = None) -> None:
        """Send a call that must not begin after ``due``, by the clock of the store.

        Not lasting by itself: the queue's own commit comes later, and takes everything before it to the disk.
        """
        now = self._now()
        sent = RemoteCall(
            id=call.id, state=RemoteCallState.QUEUED, created=now, updated=now, caller=call.caller, tool=spec.name,
            sender=self.host, due=due, call_text=call_to_text(call), is_idempotent=spec.idempotent,
        )  # fmt: skip
        if not await self._store.commit([self._signer.sign_call(sent).to_record()], lasting=False):
            raise Failure(
                ErrorCode.CONFLICT,
                Message("A call with the id {id} was sent before.", id=call.id),
                hint=Message("Use a new id."),
            )

    async def get(self, call_id: str) -> RemoteCall | None:
        record = await self._store.get(REMOTE_CALL, call_id)
        return RemoteCall.from_record(record) if record else None

    async def claim(self, call: RemoteCall, *, abandoned: bool = False) -> RemoteCall | None:
        """Take a call to run it, on the disk before it runs; None when it is no longer available.

        ``abandoned`` says that its owner is gone.
        """
        if call.state is not RemoteCallState.QUEUED and not (abandoned and call.can_run_again):
            return None
        claimed = replace(call, state=RemoteCallState.RUNNING, updated=self._now(), owner=self.host, runs=call.runs + 1)
        won = await self._store.commit([claimed.to_record()])
        return replace(claimed, version=claimed.version + 1) if won else None

    async def finish(self, claimed: RemoteCall, outcome: Outcome) -> bool:
        """Store the outcome of a run and notify the sender; False when the call has ended, or runs elsewhere.

        Not lasting by itself, as ``submit``: the queue forgets the call only later.
        """
        text = outcome_to_text(outcome)
        if len(text) > MAX_OUTCOME:
            return await self._commit_end(claimed, failure=_too_large_failure(outcome))
        return await self._commit_end(claimed, outcome_text=text)

    def is_call_valid(self, call: RemoteCall) -> bool:
        """Return whether a host of this cluster has sent the call, exactly as it is."""
        return self._signer.is_call_valid(call)

    def require_valid_end(self, call: RemoteCall) -> None:
        """Raise Failure unless a host of this cluster has ended the call."""
        if not self._signer.is_end_valid(call):
            raise Failure(
                Reason.INTERRUPTED,
                Message(
                    "{tool} ran on another host, but its result is not signed with the cluster_key and is not used.",
                    tool=call.tool,
                ),
                hint=Message("Find out who else writes to the database before you call it again."),
            )

    async def refuse(self, call: RemoteCall, reason: str) -> None:
        """End a call that must not run here, and record that somebody tried."""
        failure = Failure(Reason.DENIED, reason, hint=Message("Set the same cluster_key on every host."))
        changed = self._to_ended(call, failure=failure)
        await self._store.commit(
            [changed.to_record()],
            [self._refused(call.id, call.tool, call.sender, reason)],
            signals=[Signal(DONE, call.id)],
        )

    async def record_unreadable(self, call_id: str, reason: str) -> None:
        """Record that a call could not be read here; its sender ends it when its time is over."""
        await self._store.commit([], [self._refused(call_id, "", "", reason)])

    def _refused(self, call_id: str, tool: str, sender: str, reason: str) -> NewEvent:
        data: JsonObject = {"id": call_id, "tool": tool, "sender": sender, "host": self.host, "reason": reason}
        return NewEvent(type=REFUSED, at=self._now(), data=data)

    async def cancel_claimed(self, claimed: RemoteCall) -> bool:
        """End a call that was stopped after it was claimed, before it ran."""
        return await self._commit_end(claimed, failure=_cancelled_failure(claimed))

    async def _commit_end(
        self, claimed: RemoteCall, *, outcome_text: str | None = None, failure: Failure | None = None
    ) -> bool:
        call: RemoteCall | None = claimed
        while call is not None and call.is_same_run(claimed):
            ended = self._to_ended(call, outcome_text=outcome_text, failure=failure)
            if await self._store.commit([ended.to_record()], lasting=False, signals=[Signal(DONE, call.id)]):
                return True
            call = await self.get(claimed.id)
        return False

    async def stop(self, call_id: str) -> RemoteCall | None:
        """End a call that waits; ask the owner of one that runs to stop it. Return the call as it is now."""
        while (call := await self.get(call_id)) is not None and call.state is not RemoteCallState.DONE:
            if call.state is RemoteCallState.QUEUED:
                changed, signal = self._to_ended(call, failure=_cancelled_failure(call)), Signal(DONE, call_id)
            else:
                changed, signal = replace(call, updated=self._now(), is_stopped=True), Signal(STOP, call_id)
            if call.is_stopped or await self._store.commit([changed.to_record()], lasting=False, signals=[signal]):
                return changed
        return call

    async def interrupt(self, call: RemoteCall) -> bool:
        """End a running call whose owner is gone."""
        machine = call.owner.partition("/")[0]
        lost = Failure(
            Reason.INTERRUPTED,
            Message(
                "{tool} was cut off while it ran on {machine}: what it had done by then is not known.{twice}",
                tool=call.tool,
                machine=machine,
                twice=Message(" It was run twice, because it may be repeated.") if call.has_run_twice else "",
            ),
            hint=Message("Look at what it may have changed before you call it again."),
        )
        changed = self._to_ended(call, failure=lost)
        return await self._store.commit([changed.to_record()], signals=[Signal(DONE, call.id)])

    async def confirm(self, claimed: RemoteCall) -> None:
        """Raise Failure unless a claimed call is still to be run here, by this claim of it."""
        call = await self.get(claimed.id)
        if call is None or not call.is_same_run(claimed):
            raise Failure(
                Reason.INTERRUPTED,
                Message("{tool} was not started: the call was ended by another host.", tool=claimed.tool),
            )
        if call.is_stopped:
            raise _cancelled_failure(claimed)

    async def find_stopped(self) -> list[str]:
        """Return the ids of the calls that run here and that their senders no longer want."""
        query = Query(states=(RemoteCallState.RUNNING,), owner=self.host)
        records = await self._store.find(REMOTE_CALL, query, limit=_PAGE)
        return [call.id for call in map(RemoteCall.from_record, records) if call.is_stopped]

    async def remove_old_records(self) -> None:
        """Ended calls, and those that were taken back before they came into the queue."""
        for state, kept_s in ((RemoteCallState.DONE, _KEPT_S), (RemoteCallState.QUEUED, _LONGEST_S)):
            await self._store.remove(REMOTE_CALL, self._now() - kept_s, states=(state,), limit=_PAGE)

    def _to_ended(
        self, call: RemoteCall, *, outcome_text: str | None = None, failure: Failure | None = None
    ) -> RemoteCall:
        ended = replace(
            call, state=RemoteCallState.DONE, updated=self._now(), owner="", call_text="", is_stopped=False,
            outcome_text=outcome_text, failure=_failure_to_json(failure) if failure else None, signature="",
        )  # fmt: skip
        return self._signer.sign_end(ended)

    def _now(self) -> float:
        return self._clock.now().timestamp()


def _failure_to_json(failure: Failure) -> JsonObject:
    reason = failure.reason.value if failure.reason else Reason.INTERRUPTED.value
    return {"reason": reason, **to_fields("message", failure.message), **to_fields("hint", failure.hint)}


def _cancelled_failure(call: RemoteCall) -> Failure:
    return Failure(Reason.CANCELLED, Message("{tool} was cancelled before it began.", tool=call.tool))


def _too_large_failure(outcome: Outcome) -> Failure:
    return Failure(
        Reason.OUTPUT_TOO_LARGE,
        Message(
            "It ran on another host and ended there ({value}), but its result is larger than {max_outcome} "
            "characters and was not sent back.",
            value=outcome.envelope.status.value,
            max_outcome=MAX_OUTCOME,
        ),
        hint=Message("Ask for less at a time."),
    )
