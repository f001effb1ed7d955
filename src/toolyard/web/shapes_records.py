"""Bodies of the routes of records, as the OpenAPI shows them. Fields that are not named here may be there too."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from toolyard.web.shapes import Closed, Open


class NewSchedule(Closed):
    tool: Annotated[str, Field(min_length=1, max_length=200)]
    arguments: dict[str, Any] = Field(default_factory=dict)
    at: Annotated[str, Field(max_length=100, description="YYYY-MM-DD-HH:mm in the zone of the settings, or ISO.")] = ""
    cron: Annotated[str, Field(max_length=100, description="A cron expression of five fields; instead of `at`.")] = ""
    maid: Annotated[str | None, Field(max_length=200)] = None


class When(Closed):
    at: Annotated[str, Field(max_length=100)] = ""
    cron: Annotated[str, Field(max_length=100)] = ""
    days: Annotated[int, Field(ge=0, le=31, description="All moments of a cron within so many days, 200 at most.")] = 0


class Preview(BaseModel):
    times: Annotated[list[str], Field(description="With their offset: one of a time, the next five of a cron.")]
    in_seconds: float | None
    zone: str
    note: Annotated[str, Field(description="What the clocks do to it, if they do anything.")]
    problem: str | None


class Failing(Closed):
    reason: Annotated[str, Field(max_length=2000)] = ""


class TaskCount(BaseModel):
    by_state: dict[str, int]


class CallbackNoted(BaseModel):
    at: float
    result: Literal["accepted", "refused"]
    why: str


class TaskShown(Open):
    id: str
    state: str
    plugin: str
    task_id: str
    callbacks: list[CallbackNoted]


class VcpToolCall(Open):
    tool_name: Annotated[str, Field(min_length=1, max_length=200)]
    arguments: dict[str, Any] = Field(default_factory=dict)


class VcpSchedule(Open):
    schedule_time: Annotated[str, Field(max_length=100)]
    task_id: str = ""
    tool_call: VcpToolCall


class Decision(Closed):
    always: bool = False
    for_: Annotated[
        Literal["once", "chat", "always"],
        Field(alias="for", description="`always` makes a rule; `chat` makes one for this chat, until a restart."),
    ] = "once"
    reason: Annotated[str, Field(max_length=2000)] = ""


class Bulk(Closed):
    ids: Annotated[list[str], Field(min_length=1, max_length=100)]
    effect: Literal["allow", "deny"]
    reason: Annotated[str, Field(max_length=2000)] = ""


class BulkAnswered(BaseModel):
    id: str
    state: str
    ok: Annotated[bool, Field(description="False: somebody else was faster.")]


class BulkDone(BaseModel):
    data: list[BulkAnswered]


class RuleSaid(BaseModel):
    tool: str
    command: str
    effect: Literal["allow", "deny"]


class PatchedFile(Open):
    path: str
    operation: str
    structured_patch: list[dict[str, Any]]


class ApprovalShown(Open):
    id: str
    state: str
    tool: str
    caller: str
    reason: Annotated[str, Field(description="Why it asks.")]
    because: str | None
    arguments: Any
    command_line: Annotated[list[str] | None, Field(description="What a plugin runs.")]
    patch: Annotated[list[PatchedFile] | None, Field(description="What it would change, while it waits.")]
    patch_problem: str
    chat: str | None
    excerpt: Annotated[str, Field(description="The last words of the user in its chat.")]
    rule: Annotated[RuleSaid | None, Field(description="What `always` would keep.")]
    answered: float | None
    answered_by: str | None
    note: str


class RulePreview(BaseModel):
    rule: RuleSaid
    matched: int
    looked_at: int


class Trial(Closed):
    tool: Annotated[str, Field(min_length=1, max_length=200)]
    arguments: dict[str, Any] = Field(default_factory=dict)


class NewRule(Closed):
    tool: Annotated[str, Field(min_length=1, max_length=200)]
    command: Annotated[str, Field(max_length=200, description="Only this command of it; empty: all.")] = ""
    effect: Literal["allow", "deny"]


class RuleShown(BaseModel):
    id: str
    tool: str
    command: str
    effect: Literal["allow", "deny"]
    by: str
    created: float
    chat: Annotated[str | None, Field(description="Only for this chat, until the server restarts.")]
    hits: Annotated[int, Field(description="How often it decided since the server started.")]
    last_used: float | None


class RuleList(BaseModel):
    data: list[RuleShown]


class TrialShown(BaseModel):
    asks: bool
    effect: Literal["run", "ask", "deny"]
    because: str
    reason: str
    rule: RuleShown | None


class ConversationDraft(Closed):
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


class ConversationShown(Open):
    id: str
    title: str
    model: str
    created: float
    updated: float
    version: int
    messages: list[dict[str, Any]]
    settings: dict[str, Any]
    state: str


class CallApproval(BaseModel):
    id: str
    state: str
    by: str | None


class Moment(BaseModel):
    at: float
    what: str


class CallShown(Open):
    id: str
    state: str
    tool: str
    caller: str
    command: str | None
    chat: str | None
    started: float
    ended: float | None
    arguments: Any
    envelope: dict[str, Any] | None
    bytes_out: int
    tasks: Annotated[list[str], Field(description="The ids of those that it began.")]
    approval: CallApproval | None
    timeline: list[Moment]
    undoable: Annotated[bool, Field(description="It changed files, and they are as it left them.")]


class ToolCount(BaseModel):
    tool: str
    calls: int
    errors: int
    p50_ms: float | None
    max_ms: float | None


class ErrorCount(BaseModel):
    code: str
    count: int


class CallStatistics(BaseModel):
    since: float
    total: int
    by_state: dict[str, int]
    by_tool: list[ToolCount]
    errors: list[ErrorCount]
    slow: Annotated[list[dict[str, Any]], Field(description="The ten that took longest.")]
