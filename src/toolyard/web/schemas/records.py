"""Schemas of schedules, tasks, approvals, rules and conversations.

Most are built from the stored values themselves, so that the two cannot disagree: a route answers with the ``to_json``
of a value, and its model has the members of ``client_fields`` and those that the route adds. Such models are closed:
an answer with another member does not match them.
"""

from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, Field, create_model

from toolyard.engine.rules import MAX_RULE_COMMAND
from toolyard.protocol.content import Attachment
from toolyard.protocol.records.approval_record import Approval, Rule, RuleTarget
from toolyard.protocol.records.assistant_record import (
    MAX_TEMPERATURE,
    MAX_TOKENS,
    Assistant,
    AssistantOptions,
    Mode,
    ReasoningEffort,
    ReplyForm,
)
from toolyard.protocol.records.audit_record import AuditEntry
from toolyard.protocol.records.client_json import ClientField, client_fields, is_value_type
from toolyard.protocol.records.conversation_record import Conversation, ConversationContent
from toolyard.protocol.records.schedule_record import Schedule
from toolyard.protocol.records.task_record import Task
from toolyard.web.schemas.common import Code, Params, StrictModel
from toolyard.workspace.folder_listing import EntryType


def record_model(
    name: str, value_type: type, added: type[BaseModel] = StrictModel, *, without: str = ""
) -> type[BaseModel]:
    """Build the model of a value's client JSON, with the members that a route adds; ``without`` names one it drops.

    A member of ``added`` describes the value's member of the same name more exactly, or replaces it.
    """
    left_out = {without, *added.model_fields}
    fields = {key: field for key, field in client_fields(value_type).items() if key not in left_out}
    model = extend_model(name, added, **{key: _to_annotation(field) for key, field in fields.items()})
    codes: Any = {f"{key}_code": (Code, "") for key, field in fields.items() if field.is_message}
    params: Any = {f"{key}_params": (Params, ...) for key, field in fields.items() if field.is_message}
    with_codes: type[BaseModel] = create_model(name, __base__=model, **codes, **params)
    return with_codes if codes else model


def page_model(name: str, row: type[BaseModel]) -> type[BaseModel]:
    """Build the model of a page of rows."""
    return extend_model(name, StrictModel, data=list[row], next=str | None)  # type: ignore[valid-type]


def extend_model(name: str, base: type[BaseModel], /, **members: Any) -> type[BaseModel]:
    """Build a model with more members, all of which are always there."""
    required: Any = {key: (kind, ...) for key, kind in members.items()}
    model: type[BaseModel] = create_model(name, __base__=base, **required)
    return model


@cache
def _nested_model(value_type: type) -> type[BaseModel]:
    return record_model(value_type.__name__, value_type)


def _to_annotation(field: ClientField) -> Any:
    kind = _to_model_type(field.type)
    return Annotated[kind, Field(description=field.description)] if field.description else kind


def _to_model_type(kind: Any) -> Any:
    """Return the type for pydantic: an object of JSON has any members, a tuple is a list, a value is its model."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is dict:
        return dict[str, Any]
    if origin is tuple:
        return list[_to_model_type(parts[0])]  # type: ignore[misc]
    if origin in (Union, UnionType):
        is_any_json = {dict, list} <= {get_origin(part) for part in parts}
        return Any if is_any_json else Union[tuple(map(_to_model_type, parts))]  # noqa: UP007 known only now
    return _nested_model(kind) if is_value_type(kind) else kind


class NewSchedule(StrictModel):
    tool: Annotated[str, Field(min_length=1, max_length=200)]
    arguments: dict[str, Any] = Field(default_factory=dict)
    at: Annotated[
        str, Field(max_length=100, description="YYYY-MM-DD-HH:mm in the configured time zone, or ISO 8601.")
    ] = ""
    cron: Annotated[str, Field(max_length=100, description="A cron expression of five fields, instead of `at`.")] = ""
    maid: Annotated[str | None, Field(max_length=200)] = None


class _ScheduleCondition(StrictModel):
    condition: Annotated[
        str, Field(description="Its state, or `proposed`, `late`, or `blocked` while an approval is pending.")
    ]
    late_s: Annotated[float | None, Field(description="Seconds since its time.")]
    late_because: Annotated[str | None, Field(description="`no_host`, `busy` or `storage`.")]
    approval: Annotated[str | None, Field(description="The approval that its run waits for.")]


class MaskedText(StrictModel):
    at: Annotated[str, Field(description="The JSON pointer of the text that is masked, or has masks in it.")]
    characters: int


class _ScheduleDetails(_ScheduleCondition):
    hidden: Annotated[list[MaskedText], Field(description="The masked texts of the arguments.")]
    chat_kept: Annotated[bool, Field(description="Whether this key has a conversation of that id.")]


ScheduleDetail = record_model("ScheduleDetail", Schedule, _ScheduleDetails)
SchedulePage = page_model("SchedulePage", record_model("ScheduleRow", Schedule, _ScheduleCondition))


class ScheduleTime(StrictModel):
    at: Annotated[str, Field(max_length=100, description="Phrases too: `tomorrow 9:00`, `in 1 hour`.")] = ""
    cron: Annotated[str, Field(max_length=100)] = ""
    days: Annotated[
        int, Field(ge=0, le=31, description="All times of a cron expression within so many days, at most 200.")
    ] = 0


class SchedulePreview(BaseModel):
    at: Annotated[str | None, Field(description="The time in the format of a schedule.")]
    times: Annotated[list[str], Field(description="With offset: one for a time, the next five for a cron expression.")]
    in_seconds: float | None
    zone: str
    offset: Annotated[str, Field(description="The current offset of the zone.")]
    note: Annotated[str, Field(description="A note about a daylight saving change, if any.")]
    note_code: Code = ""
    note_params: Params
    problem: str | None
    problem_code: Code = ""
    problem_params: Params


class TaskFailure(StrictModel):
    reason: Annotated[str, Field(max_length=2000)] = ""


class TaskCount(BaseModel):
    by_state: dict[str, int]


class CallbackRow(BaseModel):
    at: float
    result: Literal["accepted", "duplicate", "refused"]
    status: Annotated[int, Field(description="The response status: 200, 401 or 409.")]
    why: str
    why_code: Code = ""
    why_params: Params


class PushTarget(BaseModel):
    target: Annotated[str | None, Field(description="The clients that get it: VCPLog or VCPInfo; null: both.")]
    type: str
    open: Annotated[bool, Field(description="Whether the channels are enabled.")]


class PushRow(BaseModel):
    seq: Annotated[int, Field(description="The number of the event that was pushed.")]
    at: float
    target: str | None
    type: str
    clients: Annotated[int, Field(description="Number of listeners.")]
    reached: Annotated[int, Field(description="Number of listeners that took it.")]
    again: Annotated[bool, Field(description="Whether it was pushed again on request.")]


class TaskProgress(BaseModel):
    done: Annotated[float | None, Field(description="From 0 to 1; null when it is not known.")] = None
    text: str = ""


class LateCallback(BaseModel):
    at: float
    duplicate: Annotated[bool, Field(description="It had the body of the first one.")] = False
    body: Annotated[Any, Field(description="Of a callback that differs, as the plugin sent it.")] = None


class _TaskSummary(StrictModel):
    progress: Annotated[TaskProgress, Field(description="As the plugin last reported it; empty at first.")]
    audit: Annotated[list[LateCallback], Field(description="Late and repeated callbacks.")]
    pushes: list[PushRow]


class _TaskDetails(_TaskSummary):
    chat_kept: Annotated[bool, Field(description="Whether this key has a conversation of that id.")]
    callbacks: list[CallbackRow]
    push: Annotated[PushTarget | None, Field(description="The push in the manifest; null without one.")]


TaskDetail = record_model("TaskDetail", Task, _TaskDetails)
AuditPage = page_model("AuditPage", record_model("AuditRow", AuditEntry))
TaskPage = page_model("TaskPage", record_model("TaskRow", Task, _TaskSummary))


class VcpToolCall(BaseModel):
    tool_name: Annotated[str, Field(min_length=1, max_length=200)]
    arguments: dict[str, Any] = Field(default_factory=dict)


class VcpSchedule(BaseModel):
    schedule_time: Annotated[str, Field(max_length=100)]
    task_id: str = ""
    tool_call: VcpToolCall


class VcpScheduleDetails(BaseModel):
    taskId: str  # noqa: N815 as VCPToolBox names it
    scheduledTime: str  # noqa: N815


class VcpScheduleAnswer(BaseModel):
    status: Literal["success"]
    message: str
    details: VcpScheduleDetails


class VcpScheduleRefusal(BaseModel):
    status: Literal["error"]
    error: str


class ApprovalDecision(StrictModel):
    always: bool = False
    for_: Annotated[
        Literal["once", "chat", "always"],
        Field(alias="for", description="`always` adds a rule; `chat` adds one for this chat, until a restart."),
    ] = "once"
    reason: Annotated[str, Field(max_length=2000)] = ""


class BulkDecision(StrictModel):
    ids: Annotated[list[str], Field(min_length=1, max_length=100)]
    effect: Literal["allow", "deny"]
    reason: Annotated[str, Field(max_length=2000)] = ""


class BulkDecisionRow(BaseModel):
    id: str
    state: str
    ok: Annotated[bool, Field(description="False when another answer came first.")]


class BulkDecisionResult(BaseModel):
    data: list[BulkDecisionRow]


class AnsweredApproval(BaseModel):
    id: str
    state: str


class PatchHunk(BaseModel):
    oldStart: int  # noqa: N815 as npm diff names it
    oldLines: int  # noqa: N815
    newStart: int  # noqa: N815
    newLines: int  # noqa: N815
    lines: list[str]


class PatchedFile(BaseModel):
    path: str
    operation: str
    from_: Annotated[str, Field(alias="from", description="The earlier path of a moved file.")] = ""
    structured_patch: list[PatchHunk]


class RevealedArguments(BaseModel):
    id: str
    arguments: dict[str, Any]


class _ApprovalDetails(StrictModel):
    command_line: Annotated[list[str] | None, Field(description="The command of a plugin.")]
    patch: Annotated[list[PatchedFile] | None, Field(description="A preview of its changes, while it waits.")]
    patch_problem: str
    patch_problem_code: Code = ""
    patch_problem_params: Params
    excerpt: Annotated[str, Field(description="The last user message of its chat.")]


class _ApprovalSummary(StrictModel):
    summary: Annotated[str, Field(description="The beginning of its arguments.")]
    arguments_bytes: int


ApprovalDetail = record_model("ApprovalDetail", Approval, _ApprovalDetails)
ApprovalPage = page_model("ApprovalPage", record_model("ApprovalRow", Approval, _ApprovalSummary, without="arguments"))


class _RuleMatches(StrictModel):
    matched: int
    looked_at: int


RulePreview = extend_model("RulePreview", _RuleMatches, rule=record_model("RuleTarget", RuleTarget))


class RuleTrial(StrictModel):
    tool: Annotated[str, Field(min_length=1, max_length=200)]
    arguments: dict[str, Any] = Field(default_factory=dict)


class NewRule(StrictModel):
    tool: Annotated[str, Field(min_length=1, max_length=200)]
    command: Annotated[str, Field(max_length=MAX_RULE_COMMAND, description="Only this command; empty: all.")] = ""
    effect: Literal["allow", "deny"]


RuleRow = record_model("RuleRow", Rule)
RuleList = extend_model("RuleList", StrictModel, data=list[RuleRow])  # type: ignore[valid-type]


class _RuleTrialVerdict(StrictModel):
    asks: bool
    effect: Literal["run", "ask", "deny"]
    because: str
    reason: str


RuleTrialResult = extend_model("RuleTrialResult", _RuleTrialVerdict, rule=RuleRow | None)


class ConversationDraft(StrictModel):
    title: Annotated[str, Field(max_length=200)] = ""
    model: Annotated[str, Field(max_length=200)] = ""
    messages: list[dict[str, Any]] = Field(default_factory=list, max_length=20_000, description="Stored unchanged.")
    settings: dict[str, Any] = Field(default_factory=dict)
    leaf: Annotated[
        str,
        Field(max_length=100, description="The id of the last message of the branch in view, if there are several."),
    ] = ""
    version: Annotated[
        int, Field(ge=0, le=2**53, description="The version that was read; 0 for a new conversation.")
    ] = 0


class ConversationChanges(StrictModel):
    """Changes beside the messages; what is left out stays."""

    title: Annotated[str | None, Field(max_length=200)] = None
    pinned: bool | None = None
    leaf: Annotated[
        str | None, Field(max_length=100, description="The id of the last message of the branch to open.")
    ] = None


class _SearchHit(StrictModel):
    snippet: Annotated[str, Field(description="After a search, the text around a hit; empty if only the title has it.")]
    message_id: Annotated[str, Field(description="The message that the snippet is of.")]


ConversationRow = record_model("ConversationRow", Conversation)
ConversationPage = page_model("ConversationPage", record_model("FoundConversation", Conversation, _SearchHit))
ConversationDetail = record_model(
    "ConversationDetail",
    Conversation,
    record_model("ConversationContent", ConversationContent),
)
ToolName = Annotated[str, Field(min_length=1, max_length=200)]


class AssistantDraft(StrictModel):
    name: Annotated[str, Field(min_length=1, max_length=100, pattern=r"\S")]
    instructions: Annotated[str, Field(max_length=100_000, description="The system prompt.")] = ""
    model: Annotated[str, Field(max_length=200, description="Empty: the one that was used last.")] = ""
    tools: Annotated[
        list[ToolName] | None, Field(max_length=1000, description="The tools that may run; null: all.")
    ] = None
    mode: Annotated[Mode, Field(description="What the tools of the chat may do without asking.")] = Mode.ASK
    temperature: Annotated[float | None, Field(ge=0, le=MAX_TEMPERATURE, allow_inf_nan=False)] = None
    max_tokens: Annotated[int | None, Field(ge=1, le=MAX_TOKENS, description="The longest reply.")] = None
    reasoning_effort: ReasoningEffort | None = None
    reply: Annotated[ReplyForm, Field(description="The form of its replies; json: structured.")] = ReplyForm.TEXT

    def to_options(self) -> AssistantOptions:
        return AssistantOptions(
            name=self.name.strip(),
            instructions=self.instructions,
            model=self.model,
            tools=None if self.tools is None else tuple(self.tools),
            mode=self.mode,
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            reasoning_effort=self.reasoning_effort,
            reply=self.reply,
        )


AssistantRow = record_model("AssistantRow", Assistant)
AssistantList = extend_model("AssistantList", StrictModel, data=list[AssistantRow])  # type: ignore[valid-type]
AttachmentContent = record_model("AttachmentContent", Attachment)


class ProjectFileRow(StrictModel):
    path: Annotated[str, Field(description="Relative to the project.")]


class ProjectFileList(StrictModel):
    data: list[ProjectFileRow]
    truncated: Annotated[bool, Field(description="Whether more files match.")]


class ProjectEntry(BaseModel):
    name: str
    path: Annotated[str, Field(description="Relative to the root.")]
    type: EntryType


class ProjectFolder(BaseModel):
    path: Annotated[str, Field(description="Relative to the root, which is `.`; links are resolved.")]
    entries: list[ProjectEntry]
    truncated: Annotated[bool, Field(description="There are more entries than were returned.")]
