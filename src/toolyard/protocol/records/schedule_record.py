"""Schedules: calls that run later, once or repeatedly, with their runs."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Final

from toolyard.message import Message
from toolyard.protocol.json import JsonObject
from toolyard.protocol.records.client_json import INTERNAL, Doc, to_client_json
from toolyard.protocol.store import (
    NewEvent,
    Record,
    read_message,
    read_number,
    read_object,
    read_objects,
    read_optional_number,
    read_optional_text,
    read_text,
)

SCHEDULE: Final = "schedule"  # the kind of its records
_MAX_RUNS = 50


class ScheduleState(StrEnum):
    SCHEDULED = "scheduled"
    PAUSED = "paused"  # it waits until it is resumed
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"  # its time passed while no host was running
    INTERRUPTED = "interrupted"  # the host went down while it ran


class LateReason(StrEnum):
    """The reason for which a run did not begin at its time."""

    NO_HOST = "no_host"  # no server was running
    BUSY = "busy"  # one was, with too much else to do
    STORAGE = "storage"  # one was, and could not write down that it runs


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRun:
    """A run that has ended."""

    call_id: str
    state: ScheduleState
    text: Message | str
    at: float
    late_s: Annotated[float | None, Doc("By how much it missed its time.")] = None
    late_because: LateReason | None = None

    @classmethod
    def from_body(cls, run: JsonObject) -> "ScheduleRun":
        return cls(
            call_id=read_text(run, "call_id"), state=ScheduleState(read_text(run, "state")),
            text=read_message(run, "text"), at=read_number(run, "at"), late_s=read_optional_number(run, "late_s"),
            late_because=_read_reason(run),
        )  # fmt: skip

    def to_body(self) -> JsonObject:
        """Return the run as it is stored: without lateness when it was on time."""
        late = self.late_s is not None
        return {name: value for name, value in to_client_json(self).items() if late or not name.startswith("late_")}


def _read_reason(body: JsonObject) -> LateReason | None:
    reason = read_text(body, "late_because")
    return LateReason(reason) if reason else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    id: str
    tool: str
    state: ScheduleState
    caller: str
    created: float
    updated: float
    due: Annotated[float | None, Doc("Its next time.")] = None
    scheduled_for: Annotated[str, Doc("Its next or last time, in the zone of the settings.")] = ""
    at: str | None = None
    cron: str | None = None
    zone: str = ""
    arguments: JsonObject = field(default_factory=dict)
    maid: str | None = None
    origin: str = ""
    runs: Annotated[tuple[ScheduleRun, ...], Doc("The last 50, oldest first.")] = ()
    chat: Annotated[str | None, Doc("The chat that made it.")] = None
    approved: Annotated[str, INTERNAL] = ""  # the digest of the call that a person approved
    call_id: Annotated[str, INTERNAL] = ""  # of the run that began last,
    was_due: Annotated[float | None, INTERNAL] = None  # with the time that it was due at,
    late_s: Annotated[float | None, INTERNAL] = None  # and its lateness
    late_because: Annotated[LateReason | None, INTERNAL] = None
    version: Annotated[int, INTERNAL] = 0
    owner: Annotated[str, INTERNAL] = ""
    search_text: Annotated[str, INTERNAL] = ""

    @property
    def is_waiting(self) -> bool:
        return self.state in (ScheduleState.SCHEDULED, ScheduleState.PAUSED)

    @property
    def proposed(self) -> Annotated[bool, Doc("Nobody has approved its call yet: it asks when it runs.")]:
        return self.is_waiting and not self.approved

    def end_run(self, state: ScheduleState, text: str, at: float) -> ScheduleRun:
        """Return the run that began last, as it has ended."""
        return ScheduleRun(
            call_id=self.call_id, state=state, text=text, at=at, late_s=self.late_s or None,
            late_because=self.late_because if self.late_s else None,
        )  # fmt: skip

    def add_run(self, run: ScheduleRun) -> tuple[ScheduleRun, ...]:
        return (*self.runs, run)[-_MAX_RUNS:]

    @classmethod
    def from_record(cls, record: Record) -> "Schedule":
        body = record.body
        return cls(
            id=record.id, tool=record.tool, state=ScheduleState(record.state), caller=record.caller,
            created=record.created, updated=record.updated, due=record.due, version=record.version, owner=record.owner,
            search_text=record.text, scheduled_for=read_text(body, "for"), at=read_text(body, "at") or None,
            cron=read_text(body, "cron") or None, zone=read_text(body, "zone"),
            arguments=read_object(body, "arguments"), maid=read_optional_text(body, "maid"),
            origin=read_text(body, "origin"),
            runs=tuple(ScheduleRun.from_body(run) for run in read_objects(body, "runs")),
            chat=read_optional_text(body, "chat"), approved=read_text(body, "approved"),
            call_id=read_text(body, "call_id"), was_due=read_optional_number(body, "was_due"),
            late_s=read_optional_number(body, "late_s"), late_because=_read_reason(body),
        )  # fmt: skip

    def to_record(self) -> Record:
        body: JsonObject = {
            "arguments": self.arguments, "maid": self.maid, "at": self.at or "", "cron": self.cron or "",
            "zone": self.zone, "for": self.scheduled_for, "approved": self.approved, "origin": self.origin,
            "runs": [run.to_body() for run in self.runs], "chat": self.chat,
        }  # fmt: skip
        if self.call_id:
            body |= {
                "call_id": self.call_id, "was_due": self.was_due, "late_s": self.late_s,
                "late_because": self.late_because.value if self.late_because else None,
            }  # fmt: skip
        return Record(
            kind=SCHEDULE, id=self.id, state=self.state, version=self.version, created=self.created,
            updated=self.updated, caller=self.caller, tool=self.tool, owner=self.owner, due=self.due,
            text=self.search_text, body=body,
        )  # fmt: skip

    def to_json(self) -> JsonObject:
        return to_client_json(self)

    def to_event(self, type_: str, at: float, run: ScheduleRun | None = None) -> NewEvent:
        data: JsonObject = {"id": self.id, "tool": self.tool, "state": self.state.value, "due": self.due}
        return NewEvent(type=f"schedule.{type_}", at=at, data=data | (run.to_body() if run else {}))
