"""Calls of the journal: a small record for each call, and another with its complete result."""

from enum import StrEnum
from typing import Annotated, Final, NamedTuple

from toolyard.message import Message, to_fields
from toolyard.protocol.envelope import move_codes
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.records.client_json import INTERNAL, Doc, to_client_json
from toolyard.protocol.store import (
    NewEvent,
    Record,
    read_message,
    read_number,
    read_object,
    read_optional_number,
    read_optional_text,
    read_text,
    read_texts,
)

CALL: Final = "call"  # the kind of its records,
RESULT: Final = "result"  # and of those with its complete result
KEPT: Final = "kept"  # the state of a result
_IN_EVENTS = ("origin", "maid", "text", "time_ms", "reason", "error", "retry_of", "undone")


class CallState(StrEnum):
    RUNNING = "running"
    SUCCESS = "success"
    PARTIAL = "partial"
    ERROR = "error"
    CANCELLED = "cancelled"  # somebody stopped it, or did not allow it: no error of its tool
    INTERRUPTED = "interrupted"


ENDED: Final = tuple(state for state in CallState if state is not CallState.RUNNING)


class Undo(NamedTuple):
    """The restore of the files that a call had changed."""

    at: float
    by: str


class CallRecord(NamedTuple):
    """A call of the journal. A named tuple: one is made for every call, and the class itself at every start."""

    id: str
    tool: str
    state: CallState
    caller: str
    started: float
    updated: Annotated[float, INTERNAL]
    arguments: Annotated[Json, Doc("Shortened in a list.")] = None
    origin: str = ""
    maid: str | None = None
    chat: str | None = None
    project: Annotated[
        str, Doc("The folder of the project in which it ran; empty for calls before this was noted.")
    ] = ""
    retry_of: Annotated[str | None, Doc("The call that it repeats.")] = None
    text: Annotated[Message | str | None, Doc("The beginning of the result's text.")] = None
    time_ms: Annotated[float | None, Doc("How long it ran, without the wait for a person.")] = None
    ran: Annotated[float | None, Doc("When its tool began.")] = None
    waited_ms: Annotated[float | None, Doc("How long it waited for permission.")] = None
    bytes_out: Annotated[int | None, Doc("Of its envelope.")] = None
    tasks: Annotated[tuple[str, ...], Doc("The ids of those that it began.")] = ()
    reason: str | None = None
    error: JsonObject | None = None
    undone: Annotated[Undo | None, Doc("When its files were put back.")] = None
    version: Annotated[int, INTERNAL] = 0
    owner: Annotated[str, INTERNAL] = ""
    search_text: Annotated[str, INTERNAL] = ""

    @property
    def ended(self) -> Annotated[float | None, Doc("When it ended.")]:
        return None if self.state is CallState.RUNNING else self.updated

    @property
    def error_code(self) -> str:
        return read_text(self.error, "code") if self.error else ""

    @property
    def cause(self) -> str:
        """Return the finest name of its error: the reason, else the code."""
        return (self.reason or self.error_code) if self.error else ""

    @classmethod
    def from_record(cls, record: Record) -> "CallRecord":
        body = record.body
        size, undone = body.get("bytes_out"), read_object(body, "undone")
        return cls(
            id=record.id, tool=record.tool, state=CallState(record.state), caller=record.caller, started=record.created,
            updated=record.updated, version=record.version, owner=record.owner, search_text=record.text,
            project=record.project,
            arguments=body.get("arguments"), origin=read_text(body, "origin"), maid=read_optional_text(body, "maid"),
            chat=read_optional_text(body, "chat"), retry_of=read_optional_text(body, "retry_of"),
            text=_read_text(body), time_ms=read_optional_number(body, "time_ms"),
            ran=read_optional_number(body, "ran"), waited_ms=read_optional_number(body, "waited_ms"),
            bytes_out=size if isinstance(size, int) else None, tasks=read_texts(body, "tasks"),
            reason=read_optional_text(body, "reason"), error=read_object(body, "error") or None,
            undone=Undo(at=read_number(undone, "at"), by=read_text(undone, "by")) if undone else None,
        )  # fmt: skip

    def to_record(self) -> Record:
        body: JsonObject = {"arguments": self.arguments, "origin": self.origin, "maid": self.maid, "chat": self.chat}
        if self.retry_of is not None:
            body["retry_of"] = self.retry_of
        if self.text is not None:
            body |= {**to_fields("text", self.text), "reason": self.reason, "error": self.error}
        if self.time_ms is not None:
            body |= {
                "time_ms": self.time_ms, "ran": self.ran, "bytes_out": self.bytes_out, "tasks": [*self.tasks],
            }  # fmt: skip
        if self.waited_ms is not None:
            body["waited_ms"] = self.waited_ms
        if self.undone is not None:
            body["undone"] = to_client_json(self.undone)
        return Record(
            kind=CALL, id=self.id, state=self.state, version=self.version, created=self.started, updated=self.updated,
            caller=self.caller, tool=self.tool, key=self.retry_of or "", code=self.cause, owner=self.owner,
            project=self.project, text=self.search_text, body=body,
        )  # fmt: skip

    def to_json(self) -> JsonObject:
        return to_client_json(self)

    def to_event(self, type_: str, at: float, action: JsonObject | None = None) -> NewEvent:
        """Return what happened to it as an event; ``action`` is the special action that its tool asks clients for."""
        data: JsonObject = {"id": self.id, "tool": self.tool, "caller": self.caller, "state": self.state.value}
        for name in _IN_EVENTS:
            value = getattr(self, name)
            if name == "text" and value is not None:
                data |= to_fields(name, value)
            elif value is not None:
                data[name] = to_client_json(value) if name == "undone" else value
        return NewEvent(type=f"call.{type_}", at=at, data={**data, **(action or {})})


def _read_text(body: JsonObject) -> str | None:
    return read_message(body, "text") if isinstance(body.get("text"), str) else None


class CallResult(NamedTuple):
    """The complete result of a call: its arguments, its envelope, its special action, and the process of a plugin."""

    id: str
    created: float
    updated: float
    arguments: Json
    envelope: JsonObject | None
    process: JsonObject | None = None
    action: JsonObject | None = None

    @classmethod
    def from_record(cls, record: Record) -> "CallResult":
        body = record.body
        return cls(
            id=record.id, created=record.created, updated=record.updated, arguments=body.get("arguments"),
            envelope=dict(move_codes(read_object(body, "envelope"))) or None,
            process=read_object(body, "process") or None, action=read_object(body, "action") or None,
        )  # fmt: skip

    def to_record(self) -> Record:
        body: JsonObject = {"arguments": self.arguments, "envelope": self.envelope}
        body |= {"process": self.process} if self.process else {}
        body |= {"action": self.action} if self.action else {}
        return Record(kind=RESULT, id=self.id, state=KEPT, created=self.created, updated=self.updated, body=body)

    def to_json(self) -> JsonObject:
        """Return the members that a call has beside those of its record."""
        content: JsonObject = {"arguments": self.arguments, "envelope": self.envelope, **(self.action or {})}
        return {**content, "process": self.process} if self.process else content
