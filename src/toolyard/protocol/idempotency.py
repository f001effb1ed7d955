"""Idempotent requests: the record of a request under the key that its client chose."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from toolyard.protocol.json import JsonObject
from toolyard.protocol.record_body import read_optional_text, read_text
from toolyard.protocol.store import Record

IDEMPOTENCY: Final = "idempotency"  # the kind of its records,
RESPONSE: Final = "idempotency_response"  # and of those with the answer to a request


class RequestState(StrEnum):
    RUNNING = "running"
    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    RELEASED = "released"  # nothing of it has run


ENDED: Final = (RequestState.FINISHED, RequestState.INTERRUPTED, RequestState.RELEASED)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRecord:
    id: str
    state: RequestState
    created: float
    updated: float
    caller: str
    fingerprint: str  # a digest of its route and body
    call: str = ""  # the id of the call that it starts,
    chat: str = ""  # or of the chat
    response: str | None = None  # the id of the record with its response
    owner: str = ""
    version: int = 0

    @classmethod
    def from_record(cls, record: Record) -> "RequestRecord":
        body = record.body
        return cls(
            id=record.id, state=RequestState(record.state), created=record.created, updated=record.updated,
            caller=record.caller, owner=record.owner, version=record.version,
            fingerprint=read_text(body, "fingerprint"), call=read_text(body, "call"), chat=read_text(body, "chat"),
            response=read_optional_text(body, "response"),
        )  # fmt: skip

    def to_record(self) -> Record:
        body: JsonObject = {"fingerprint": self.fingerprint, "call": self.call, "chat": self.chat}
        if self.response is not None:
            body["response"] = self.response
        return Record(
            kind=IDEMPOTENCY, id=self.id, state=self.state, version=self.version, created=self.created,
            updated=self.updated, caller=self.caller, owner=self.owner, body=body,
        )  # fmt: skip
