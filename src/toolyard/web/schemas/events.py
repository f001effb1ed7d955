"""Schemas of the messages of ``/ws``: one model for each kind of data, with the types of events that have it.

The models are closed, and the tests compare with them whatever their servers send.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, RootModel

from toolyard.protocol.access import DecisionReason, Effect
from toolyard.protocol.records.call_record import CallState
from toolyard.protocol.records.schedule_record import LateReason, ScheduleState
from toolyard.protocol.records.task_record import TaskState
from toolyard.web.schemas.common import CallError, Code, Params, StoredAction, StrictModel
from toolyard.web.schemas.records import MaskedText


class _Event(BaseModel):
    seq: Annotated[int, Field(description="Its number: the cursor after which the next one comes.")]
    at: Annotated[float, Field(description="When it happened, in seconds since 1970.")]


class UndoData(StrictModel):
    at: float
    by: str


class CallEventData(StoredAction, StrictModel):
    id: str
    tool: str
    caller: str
    state: CallState
    origin: str = ""
    maid: str | None = None
    retry_of: Annotated[str | None, Field(description="The call that it repeats.")] = None
    text: Annotated[str | None, Field(description="The beginning of the result's text.")] = None
    text_code: Code = ""
    text_params: Params
    time_ms: Annotated[float | None, Field(description="How long it ran, without the wait for a person.")] = None
    reason: str | None = None
    error: CallError | None = None
    undone: Annotated[UndoData | None, Field(description="When its files were put back.")] = None


class CallEvent(_Event):
    """A call began, ended, or was undone."""

    type: Literal["call.started", "call.finished", "call.undone"]
    data: CallEventData


class CallProgressData(StrictModel):
    id: str
    tool: str
    caller: str
    done: Annotated[float | None, Field(description="From 0 to 1; null when it is not known.")]
    text: Annotated[str, Field(description="What it reported since the last event.")]


class CallProgressEvent(_Event):
    """A running call says how far it is."""

    type: Literal["call.progress"]
    data: CallProgressData


class TaskEventData(StrictModel):
    id: str
    plugin: str
    task_id: Annotated[str, Field(description="The id that the plugin gave.")]
    call_id: str


class TaskStartedEvent(_Event):
    """A task in the background began."""

    type: Literal["task.started"]
    data: TaskEventData


class TaskProgressData(TaskEventData):
    done: Annotated[float | None, Field(description="From 0 to 1; null when it is not known.")]
    text: str


class TaskProgressEvent(_Event):
    """A task says how far it is."""

    type: Literal["task.progress"]
    data: TaskProgressData


class TaskEndedData(TaskEventData):
    state: TaskState
    result: Annotated[Any, Field(description="The body of the callback; null without one.")]
    message: str
    message_code: Code = ""
    message_params: Params


class TaskEndedEvent(_Event):
    """A task ended; with `task.push`, its result is pushed once more."""

    type: Literal["task.succeeded", "task.failed", "task.timed_out", "task.cancelled", "task.interrupted", "task.push"]
    data: TaskEndedData


class TaskPushedData(StrictModel):
    id: str
    seq: Annotated[int, Field(description="The number of the event that was pushed.")]
    at: float
    target: str | None
    type: str
    clients: Annotated[int, Field(description="Number of listeners.")]
    reached: Annotated[int, Field(description="Number of listeners that took it.")]
    again: Annotated[bool, Field(description="Whether it was pushed again on request.")]


class TaskPushedEvent(_Event):
    """The result of a task was pushed to clients."""

    type: Literal["task.pushed"]
    data: TaskPushedData


class ScheduleEventData(StrictModel):
    id: str
    tool: str
    state: ScheduleState
    due: Annotated[float | None, Field(description="When it runs next.")]
    call_id: Annotated[str | None, Field(description="The call of the run that ended, with the members below.")] = None
    at: float | None = None
    text: str | None = None
    text_code: Code = ""
    text_params: Params
    late_s: Annotated[float | None, Field(description="By how much the run missed its time.")] = None
    late_because: LateReason | None = None


class ScheduleEvent(_Event):
    """A schedule was added or changed, or a run began or ended."""

    type: Literal[
        "schedule.added",
        "schedule.changed",
        "schedule.scheduled",
        "schedule.paused",
        "schedule.running",
        "schedule.done",
        "schedule.failed",
        "schedule.cancelled",
        "schedule.expired",
        "schedule.interrupted",
    ]
    data: ScheduleEventData


class ApprovalRequestedData(StrictModel):
    id: str
    tool: str
    call_id: str
    expires: float | None
    commands: list[str]
    risk: str
    origin: str
    arguments: Annotated[Any, Field(description="The arguments of the call.")]
    hidden: Annotated[list[MaskedText], Field(description="The masked texts of the arguments.")]
    maid: str | None
    protected: Annotated[bool, Field(description="It writes to a protected path.")]
    chat: str | None
    because: DecisionReason | None
    why: Annotated[str, Field(description="Why it asks.")]
    always_offered: Annotated[bool, Field(description="One rule can express it.")]
    digest: Annotated[str, Field(description="Of exactly the call that is approved.")]
    plugin: str


class ApprovalRequestedEvent(_Event):
    """A call waits for approval."""

    type: Literal["approval.requested"]
    data: ApprovalRequestedData


class ApprovalEndedData(StrictModel):
    id: str
    state: Literal["allowed", "denied", "expired", "interrupted"]
    call_id: str
    by: Annotated[str | None, Field(description="Who answered; missing if nobody did.")] = None
    because: Annotated[DecisionReason | None, Field(description="Why nobody was asked.")] = None


class ApprovalEndedEvent(_Event):
    """An approval was answered, or waits no more."""

    type: Literal["approval.allowed", "approval.denied", "approval.expired", "approval.interrupted"]
    data: ApprovalEndedData


class RuleAddedData(StrictModel):
    id: str
    tool: str
    command: str
    effect: Effect


class RuleAddedEvent(_Event):
    """A rule of approvals was added."""

    type: Literal["approval.rule"]
    data: RuleAddedData


class IdData(StrictModel):
    id: str


class RuleRevokedEvent(_Event):
    """A rule of approvals was revoked."""

    type: Literal["approval.rule_revoked"]
    data: IdData


class ConversationChangedData(StrictModel):
    id: str
    caller: str
    version: int


class ConversationChangedEvent(_Event):
    """A conversation was stored."""

    type: Literal["conversation.changed"]
    data: ConversationChangedData


class OwnedIdData(StrictModel):
    id: str
    caller: str


class OwnedEvent(_Event):
    """A conversation was deleted, or an assistant stored or deleted."""

    type: Literal["conversation.deleted", "assistant.changed", "assistant.deleted"]
    data: OwnedIdData


class NoData(StrictModel):
    pass


class PluginChangedEvent(_Event):
    """Plugins or their tools have changed: list them again."""

    type: Literal["plugin.changed"]
    data: NoData


class HostData(StrictModel):
    id: str
    machine: str
    tools: list[str]


class HostEvent(_Event):
    """A host of several came up, left or was lost."""

    type: Literal["host.up", "host.left", "host.lost"]
    data: HostData


class HostRefusalData(StrictModel):
    id: str
    tool: str
    sender: str
    host: str
    reason: str


class HostRefusalEvent(_Event):
    """A host refused a call of another."""

    type: Literal["host.call_refused"]
    data: HostRefusalData


class GapData(StrictModel):
    from_: Annotated[int, Field(alias="from")]
    to: int


class GapEvent(_Event):
    """Events of these numbers are no longer stored: reload what you show."""

    type: Literal["gap"]
    data: GapData


class ServerEvent(
    RootModel[
        Annotated[
            CallEvent
            | CallProgressEvent
            | TaskStartedEvent
            | TaskProgressEvent
            | TaskEndedEvent
            | TaskPushedEvent
            | ScheduleEvent
            | ApprovalRequestedEvent
            | ApprovalEndedEvent
            | RuleAddedEvent
            | RuleRevokedEvent
            | ConversationChangedEvent
            | OwnedEvent
            | PluginChangedEvent
            | HostEvent
            | HostRefusalEvent
            | GapEvent,
            Field(discriminator="type"),
        ]
    ]
):
    """A message of the WebSocket `/ws`: `type` tells which data it has."""
