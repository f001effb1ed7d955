"""Schemas of schedules, tasks, approvals, rules and conversations. Responses may have further fields."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from toolyard.web.schemas.common import OpenModel, StrictModel


class NewSchedule(StrictModel):
    tool: Annotated[str, Field(min_length=1, max_length=200)]
    arguments: dict[str, Any] = Field(default_factory=dict)
    at: Annotated[str, Field(max_length=100, description="YYYY-MM-DD-HH:mm in the zone of the settings, or ISO.")] = ""
    cron: Annotated[str, Field(max_length=100, description="A cron expression of five fields; instead of `at`.")] = ""
    maid: Annotated[str | None, Field(max_length=200)] = None


class ScheduleDetail(OpenModel):
    id: str
    state: str
    tool: str
    condition: Annotated[str, Field(description="Its state, or `late`, or `blocked` while an approval is pending.")]
    late_s: Annotated[float | None, Field(description="By how much it has missed its time.")]
    late_because: Annotated[str | None, Field(description="`no_host`, `busy` or `storage`.")]
    approval: Annotated[str | None, Field(description="The approval that its run waits for.")]
    chat: Annotated[str | None, Field(description="The chat that made it.")]
    chat_kept: Annotated[bool, Field(description="Whether this key has a conversation of that id.")]


class ScheduleTime(StrictModel):
    at: Annotated[str, Field(max_length=100, description="As people type it, too: `tomorrow 9:00`, `in 1 hour`.")] = ""
    cron: Annotated[str, Field(max_length=100)] = ""
    days: Annotated[int, Field(ge=0, le=31, description="All moments of a cron within so many days, 200 at most.")] = 0


class SchedulePreview(BaseModel):
    at: Annotated[str | None, Field(description="The time as a schedule takes it.")]
    times: Annotated[list[str], Field(description="With their offset: one of a time, the next five of a cron.")]
    in_seconds: float | None
    zone: str
    offset: Annotated[str, Field(description="Of the zone at this moment.")]
    note: Annotated[str, Field(description="What the clocks do to it, if they do anything.")]
    problem: str | None


class TaskFailure(StrictModel):
    reason: Annotated[str, Field(max_length=2000)] = ""


class TaskCount(BaseModel):
    by_state: dict[str, int]


class CallbackRow(BaseModel):
    at: float
    result: Literal["accepted", "duplicate", "refused"]
    status: Annotated[int, Field(description="What it was answered: 200, 401 or 409.")]
    why: str


class PushTarget(BaseModel):
    target: Annotated[str | None, Field(description="The clients that are told: VCPLog or VCPInfo; null: both.")]
    type: str
    open: Annotated[bool, Field(description="Whether the channels are open, so that anybody can be told.")]


class PushRow(OpenModel):
    at: float
    target: str | None
    type: str
    clients: Annotated[int, Field(description="How many listened.")]
    reached: Annotated[int, Field(description="How many of them took it.")]
    again: Annotated[bool, Field(description="Somebody asked for it.")]


class TaskDetail(OpenModel):
    id: str
    state: str
    plugin: str
    task_id: str
    chat: str | None
    chat_kept: Annotated[bool, Field(description="Whether this key has a conversation of that id.")]
    callbacks: list[CallbackRow]
    push: Annotated[PushTarget | None, Field(description="What the manifest wants pushed; null: nothing.")]
    pushes: list[PushRow]


class VcpToolCall(OpenModel):
    tool_name: Annotated[str, Field(min_length=1, max_length=200)]
    arguments: dict[str, Any] = Field(default_factory=dict)


class VcpSchedule(OpenModel):
    schedule_time: Annotated[str, Field(max_length=100)]
    task_id: str = ""
    tool_call: VcpToolCall


class ApprovalDecision(StrictModel):
    always: bool = False
    for_: Annotated[
        Literal["once", "chat", "always"],
        Field(alias="for", description="`always` makes a rule; `chat` makes one for this chat, until a restart."),
    ] = "once"
    reason: Annotated[str, Field(max_length=2000)] = ""


class BulkDecision(StrictModel):
    ids: Annotated[list[str], Field(min_length=1, max_length=100)]
    effect: Literal["allow", "deny"]
    reason: Annotated[str, Field(max_length=2000)] = ""


class BulkDecisionRow(BaseModel):
    id: str
    state: str
    ok: Annotated[bool, Field(description="False: somebody else was faster.")]


class BulkDecisionResult(BaseModel):
    data: list[BulkDecisionRow]


class RuleFields(BaseModel):
    tool: str
    command: str
    effect: Literal["allow", "deny"]


class PatchedFile(OpenModel):
    path: str
    operation: str
    structured_patch: list[dict[str, Any]]


class MaskedText(BaseModel):
    at: Annotated[str, Field(description="The JSON pointer of the text that is masked, or has masks in it.")]
    characters: int


class RevealedArguments(BaseModel):
    id: str
    arguments: dict[str, Any]


class ApprovalDetail(OpenModel):
    id: str
    state: str
    tool: str
    caller: str
    reason: Annotated[str, Field(description="Why it asks.")]
    because: str | None
    arguments: Any
    hidden: Annotated[list[MaskedText], Field(description="What is masked in the arguments.")]
    command_line: Annotated[list[str] | None, Field(description="What a plugin runs.")]
    patch: Annotated[list[PatchedFile] | None, Field(description="What it would change, while it waits.")]
    patch_problem: str
    chat: str | None
    excerpt: Annotated[str, Field(description="The last words of the user in its chat.")]
    rule: Annotated[RuleFields | None, Field(description="What `always` would keep.")]
    answered: float | None
    answered_by: str | None
    note: str


class RulePreview(BaseModel):
    rule: RuleFields
    matched: int
    looked_at: int


class RuleTrial(StrictModel):
    tool: Annotated[str, Field(min_length=1, max_length=200)]
    arguments: dict[str, Any] = Field(default_factory=dict)


class NewRule(StrictModel):
    tool: Annotated[str, Field(min_length=1, max_length=200)]
    command: Annotated[str, Field(max_length=200, description="Only this command of it; empty: all.")] = ""
    effect: Literal["allow", "deny"]


class RuleRow(BaseModel):
    id: str
    tool: str
    command: str
    effect: Literal["allow", "deny"]
    by: str
    created: float
    chat: Annotated[str | None, Field(description="Only for this chat, until the server restarts.")]
    plugin: Annotated[
        str | None, Field(description="The plugin that it is about: it does not hold for another of the same name.")
    ]
    hits: Annotated[int, Field(description="How often it decided.")]
    last_used: float | None


class RuleList(BaseModel):
    data: list[RuleRow]


class RuleTrialResult(BaseModel):
    asks: bool
    effect: Literal["run", "ask", "deny"]
    because: str
    reason: str
    rule: RuleRow | None


class ConversationDraft(StrictModel):
    title: Annotated[str, Field(max_length=200)] = ""
    model: Annotated[str, Field(max_length=200)] = ""
    messages: list[dict[str, Any]] = Field(default_factory=list, max_length=20_000, description="Stored as they come.")
    settings: dict[str, Any] = Field(default_factory=dict)
    version: Annotated[int, Field(ge=0, le=2**53, description="The one it was read at; 0: it is new.")] = 0


class ConversationRow(BaseModel):
    id: str
    title: str
    model: str
    created: float
    updated: float
    version: int
    messages: Annotated[int, Field(description="How many there are.")]
    state: str


class ConversationPage(BaseModel):
    data: list[ConversationRow]
    next: str | None


class ConversationDetail(OpenModel):
    id: str
    title: str
    model: str
    created: float
    updated: float
    version: int
    messages: list[dict[str, Any]]
    settings: dict[str, Any]
    state: str
