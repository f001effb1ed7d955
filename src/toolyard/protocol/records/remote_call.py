"""Remote calls: calls on their way to another host, from the queue to their outcome, and the text they travel as.

The text is exact: the value read equals the value written, media bytes, long integers and stray surrogates included;
only a tuple inside a JSON value comes back as a list. It is plain ASCII, so every store and wire carries it unchanged.
Read only what a Toolyard wrote: other text is a ValueError, KeyError or InvalidEnvelope. Hosts are the processes that
share a database, as they announce themselves, and the tools they offer.
"""

import base64
import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Final

from toolyard.protocol.content import Blob, Link, Media, Part, Text
from toolyard.protocol.envelope import Envelope, Extras, Failure, Reason
from toolyard.protocol.json import JsonObject
from toolyard.protocol.records.client_json import INTERNAL, to_client_json
from toolyard.protocol.store import (
    NewEvent,
    Record,
    read_integer,
    read_message,
    read_object,
    read_optional_text,
    read_text,
    read_texts,
)
from toolyard.protocol.tool import BatchItem, Course, Origin, Outcome, ToolCall

REMOTE_CALL: Final = "remote"  # the kind of its records
_MAX_RUNS = 2  # of an idempotent tool
_STAYS_HERE = ("use_id", "auto_safe", "unreadable")  # of a call: decided or used before it is sent
HOST: Final = "host"  # the kind of its records
OFFER: Final = "offer"  # the tools of a host, apart from its heartbeat because they are large and change seldom


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


def call_to_text(call: ToolCall) -> str:
    return _to_text(_write_call(call))


def call_from_text(text: str) -> ToolCall:
    return _read_call(json.loads(text))


def outcome_to_text(outcome: Outcome) -> str:
    return _to_text(_write_outcome(outcome))


def outcome_from_text(text: str) -> Outcome:
    return _read_outcome(json.loads(text))


def _to_text(value: dict[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _write_call(call: ToolCall) -> dict[str, Any]:
    return {name: getattr(call, name) for name in ToolCall.__dataclass_fields__ if name not in _STAYS_HERE}


def _read_call(value: dict[str, Any]) -> ToolCall:
    return ToolCall(**{**value, "origin": Origin(value["origin"])})


def _write_outcome(outcome: Outcome) -> dict[str, Any]:
    batch = [
        {"call": _write_call(item.call), "outcome": _write_outcome(item.outcome), "reads": item.reads}
        for item in outcome.batch
    ]
    return {
        "envelope": outcome.envelope.to_json(), "root": outcome.root, "arguments": outcome.arguments,
        "extras": _write_extras(outcome.extras), "batch": batch, "course": outcome.course._asdict(),
    }  # fmt: skip


def _read_outcome(value: dict[str, Any]) -> Outcome:
    batch = (
        BatchItem(_read_call(item["call"]), _read_outcome(item["outcome"]), item["reads"]) for item in value["batch"]
    )
    return Outcome(
        envelope=Envelope.from_dict(value["envelope"]), root=value["root"], arguments=value["arguments"],
        extras=_read_extras(value["extras"]), batch=tuple(batch), course=Course(**value["course"]),
    )  # fmt: skip


def _write_extras(extras: Extras) -> dict[str, Any]:
    value = {name: getattr(extras, name) for name in Extras.__dataclass_fields__}
    return value | {name: [_write_part(part) for part in value[name]] for name in ("parts", "attached")}


def _read_extras(value: dict[str, Any]) -> Extras:
    parts, attached = ([_read_part(part) for part in value[name]] for name in ("parts", "attached"))
    media = tuple(part for part in attached if isinstance(part, Media | Blob))
    return Extras(**{**value, "parts": tuple(parts), "attached": media})


def _write_part(part: Part) -> dict[str, Any]:
    value = {name: getattr(part, name) for name in type(part).__dataclass_fields__}
    if isinstance(part, Media | Blob):
        value["data"] = base64.b64encode(part.data).decode("ascii")
    if part.original is None:
        del value["original"]
    return value


def _read_part(value: dict[str, Any]) -> Part:
    value.setdefault("original", None)
    if "data" in value:
        value["data"] = base64.b64decode(value["data"], validate=True)
    if "mime" in value:
        return Media(**value)
    return Blob(**value) if "data" in value else Link(**value) if "kind" in value else Text(**value)


class HostState(StrEnum):
    UP = "up"
    LEFT = "left"  # it announced that it leaves
    LOST = "lost"  # its lease ran out


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    id: str
    state: HostState
    created: float
    updated: float
    machine: str
    keeps: bool  # it settles what dead hosts leave behind
    offer: int  # the version of its offer
    tools: tuple[str, ...]
    term: int = 1
    version: Annotated[int, INTERNAL] = 0
    signature: Annotated[str, INTERNAL] = ""  # of what it says about itself and its offer

    @classmethod
    def from_record(cls, record: Record) -> "Host":
        body = record.body
        return cls(
            id=record.id, state=HostState(record.state), created=record.created, updated=record.updated,
            machine=read_text(body, "machine"), keeps=body.get("keeps") is True, offer=read_integer(body, "offer"),
            tools=read_texts(body, "tools"), term=read_integer(body, "term") or 1, version=record.version,
            signature=read_text(body, "signature"),
        )  # fmt: skip

    def to_record(self) -> Record:
        return Record(
            kind=HOST, id=self.id, state=self.state, version=self.version, created=self.created, updated=self.updated,
            body={
                "machine": self.machine, "keeps": self.keeps, "offer": self.offer, "tools": [*self.tools],
                "term": self.term, "signature": self.signature,
            },
        )  # fmt: skip

    def to_json(self) -> JsonObject:
        return to_client_json(self)

    def to_event(self) -> NewEvent:
        data: JsonObject = {"id": self.id, "machine": self.machine, "tools": [*self.tools]}
        return NewEvent(type=f"host.{self.state.value}", at=self.updated, data=data)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostOffer:
    """The specs of the tools that a host offers, as texts."""

    id: str
    created: float
    updated: float
    tools: tuple[str, ...]
    version: int = 0

    @classmethod
    def from_record(cls, record: Record) -> "HostOffer":
        return cls(
            id=record.id, created=record.created, updated=record.updated, tools=read_texts(record.body, "tools"),
            version=record.version,
        )  # fmt: skip

    def to_record(self) -> Record:
        return Record(
            kind=OFFER, id=self.id, state=HostState.UP, version=self.version, created=self.created,
            updated=self.updated, body={"tools": [*self.tools]},
        )  # fmt: skip
