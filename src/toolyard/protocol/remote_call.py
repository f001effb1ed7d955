"""Remote calls: calls on their way to another host, from the queue to their outcome."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from toolyard.protocol.call import ToolCall
from toolyard.protocol.failure import Failure, Reason
from toolyard.protocol.json import JsonObject
from toolyard.protocol.outcome import Outcome
from toolyard.protocol.outcome_json import call_from_text, outcome_from_text
from toolyard.protocol.record_body import read_integer, read_message, read_object, read_optional_text, read_text
from toolyard.protocol.store import Record

REMOTE_CALL: Final = "remote"  # the kind of its records
_MAX_RUNS = 2  # of an idempotent tool


class RemoteCallState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteCall:
    """A call for another host; ``runs`` counts its claims, so that an older one can be told from the last."""

    id: str
    state: RemoteCallState
    created: float
    updated: float
    caller: str
    tool: str
    sender: str  # the host that waits for it
    owner: str = ""  # the host that runs it
    due: float | None = None  # it must not begin later
    call_text: str = ""  # until it has ended
    is_idempotent: bool = False
    runs: int = 0
    is_stopped: bool = False  # its sender no longer wants it
    outcome_text: str | None = None
    failure: JsonObject | None = None  # instead of an outcome
    signature: str = ""  # by the host that sends it
    end_signature: str = ""  # by the host that ended it
    version: int = 0

    @property
    def has_run_twice(self) -> bool:
        return self.runs == _MAX_RUNS

    @property
    def can_run_again(self) -> bool:
        is_running = self.state is RemoteCallState.RUNNING
        return is_running and self.is_idempotent and not self.is_stopped and self.runs < _MAX_RUNS

    def is_same_run(self, claimed: "RemoteCall") -> bool:
        """Return whether this call still runs by that claim."""
        return (self.state, self.owner, self.runs) == (RemoteCallState.RUNNING, claimed.owner, claimed.runs)

    def to_call(self) -> ToolCall:
        return call_from_text(self.call_text)

    def to_outcome(self) -> Outcome:
        """Return the outcome of an ended call; raise its Failure when it never ran to an end."""
        if self.failure is not None:
            reason, message = Reason(read_text(self.failure, "reason")), read_message(self.failure, "message")
            raise Failure(reason, message, hint=read_message(self.failure, "hint"))
        return outcome_from_text(self.outcome_text or "")

    @classmethod
    def from_record(cls, record: Record) -> "RemoteCall":
        body = record.body
        return cls(
            id=record.id, state=RemoteCallState(record.state), created=record.created, updated=record.updated,
            caller=record.caller, tool=record.tool, sender=record.key, owner=record.owner, due=record.due,
            version=record.version, call_text=read_text(body, "call"), is_idempotent=body.get("idempotent") is True,
            runs=read_integer(body, "runs"), is_stopped=body.get("stop") is True,
            outcome_text=read_optional_text(body, "outcome"), failure=read_object(body, "failure") or None,
            signature=read_text(body, "signature"), end_signature=read_text(body, "end_signature"),
        )  # fmt: skip

    def to_record(self) -> Record:
        """Return the record; an ended call is stored without its arguments."""
        body: JsonObject = {"runs": self.runs, "idempotent": self.is_idempotent}
        if self.state is not RemoteCallState.DONE:
            body["call"] = self.call_text
            if self.is_stopped:
                body["stop"] = True
        signatures = {"signature": self.signature, "end_signature": self.end_signature}
        body |= {name: text for name, text in signatures.items() if text}
        if self.outcome_text is not None:
            body["outcome"] = self.outcome_text
        if self.failure is not None:
            body["failure"] = self.failure
        return Record(
            kind=REMOTE_CALL, id=self.id, state=self.state, version=self.version, created=self.created,
            updated=self.updated, caller=self.caller, tool=self.tool, key=self.sender, owner=self.owner, due=self.due,
            body=body,
        )  # fmt: skip
