"""Schemas of calls. Responses may have further fields."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from toolyard.web.schemas.common import OpenModel


class CallApproval(BaseModel):
    id: str
    state: str
    by: str | None
    because: str | None = None


class TimelineStep(BaseModel):
    at: float
    what: Annotated[
        str,
        Field(
            description="`called`, `asked`, `unasked`, how the approval ended, `started`, `first_output`, `ended`,"
            " `callback`, `task_ended`, `undone`."
        ),
    ]
    by: Annotated[str | None, Field(description="Who allowed, denied or undid it.")]
    task: Annotated[str | None, Field(description="Whose callback or end it was.")]
    result: Annotated[str | None, Field(description="What became of the callback, or of the task.")]


class UndoMark(BaseModel):
    at: float
    by: str


class RetrySummary(BaseModel):
    id: str
    state: str
    started: float


class ProcessDetail(OpenModel):
    pid: int
    argv: list[str]
    environment: Annotated[list[str], Field(description="Only the names.")]
    started: float
    first_output: float | None
    exit_code: int | None
    signal: int | None
    limits_hit: list[str]
    stderr: str
    noise: Annotated[str, Field(description="What stood on stdout beside the answer.")]


class FileSide(BaseModel):
    state: Annotated[
        Literal["text", "none", "binary", "too_large", "gone"],
        Field(description="`none`: there was no file; `gone`: it has changed since, and nobody has it any more."),
    ]
    bytes: int | None
    text: str | None


class CallFile(BaseModel):
    path: str
    before: FileSide
    after: FileSide


class CallFiles(BaseModel):
    data: list[CallFile]


class CallDetail(OpenModel):
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
    time_ms: Annotated[float | None, Field(description="How long it ran; the wait for a person is no part of it.")]
    waited_ms: Annotated[float | None, Field(description="How long it waited for permission.")]
    bytes_out: Annotated[int | None, Field(description="Of its envelope.")]
    tasks: Annotated[list[str], Field(description="The ids of those that it began.")]
    retry_of: Annotated[str | None, Field(description="The call that it repeats.")]
    retries: Annotated[list[RetrySummary], Field(description="The calls that repeat it, newest first.")]
    approval: CallApproval | None
    timeline: list[TimelineStep]
    process: Annotated[ProcessDetail | None, Field(description="Of a plugin.")]
    undone: Annotated[UndoMark | None, Field(description="When its files were put back.")]
    undoable: Annotated[bool, Field(description="It changed files, and they are as it left them.")]


class ToolCount(BaseModel):
    tool: str
    calls: int
    errors: int
    cancelled: Annotated[int, Field(description="Stopped, or not allowed: no errors.")]
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
    slow: Annotated[list[dict[str, Any]], Field(description="The ten that ran longest.")]
