"""Schemas of calls."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from toolyard.protocol.call_record import CallRecord
from toolyard.web.schemas.common import Envelope, EnvelopeError, StrictModel
from toolyard.web.schemas.record_models import extend_model, page_model, record_model


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
    by: Annotated[str | None, Field(description="The caller that allowed, denied or undid it.")]
    task: Annotated[str | None, Field(description="The task of the callback or end.")]
    result: Annotated[str | None, Field(description="The result of the callback or the task.")]


class RetrySummary(BaseModel):
    id: str
    state: str
    started: float


class ProcessDetail(BaseModel):
    pid: int
    argv: list[str]
    folder: str
    environment: Annotated[list[str], Field(description="Names of its environment variables.")]
    warm: Annotated[bool, Field(description="Whether it was started from a prepared interpreter.")]
    started: float
    first_output: float | None
    exit_code: int | None
    signal: int | None
    limits_hit: list[str]
    stdout_bytes: int | None
    stderr: str
    noise: Annotated[str, Field(description="Output on stdout besides the answer.")]


class FileSide(BaseModel):
    state: Annotated[
        Literal["text", "none", "binary", "too_large", "gone"],
        Field(description="`none`: there was no file; `gone`: it has changed since and is no longer stored."),
    ]
    bytes: int | None
    text: str | None


class CallFile(BaseModel):
    path: str
    before: FileSide
    after: FileSide


class CallFiles(BaseModel):
    data: list[CallFile]


class _CallError(StrictModel):
    error: EnvelopeError | None


class _CallSummary(_CallError):
    command: str | None


class _CallDetails(_CallSummary):
    envelope: Envelope | None
    retries: Annotated[list[RetrySummary], Field(description="The calls that repeat it, newest first.")]
    approval: CallApproval | None
    timeline: list[TimelineStep]
    process: Annotated[ProcessDetail | None, Field(description="The process, for plugins.")]
    undoable: Annotated[bool, Field(description="Whether its changes can be undone: the files are unchanged since.")]


CallDetail = record_model("CallDetail", CallRecord, _CallDetails)
CallPage = page_model("CallPage", record_model("CallRow", CallRecord, _CallSummary))


class ToolCount(BaseModel):
    tool: str
    calls: int
    errors: int
    cancelled: Annotated[int, Field(description="Cancelled or denied calls, which are no errors.")]
    p50_ms: float | None
    max_ms: float | None


class ErrorCount(BaseModel):
    code: str
    count: int


class _CallCounts(StrictModel):
    since: float
    counted_since: Annotated[float, Field(description="The start of the oldest call that is counted, if `is_capped`.")]
    is_capped: Annotated[bool, Field(description="There are more calls: only the newest 10,000 are counted.")]
    total: int
    by_state: dict[str, int]
    by_tool: list[ToolCount]
    errors: list[ErrorCount]


_SlowCall = record_model("SlowCall", CallRecord, _CallError)
CallStatistics = extend_model(
    "CallStatistics",
    _CallCounts,
    slow=Annotated[list[_SlowCall], Field(description="The ten slowest calls.")],  # type: ignore[valid-type]
)
