"""Bodies of requests and answers as the OpenAPI shows them. Fields that are not named here may be there too."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from toolyard.web.scope import Scope


class _Open(BaseModel):
    model_config = ConfigDict(extra="allow")


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Error(BaseModel):
    message: str
    type: str
    code: str


class ErrorBody(BaseModel):
    error: Error


class ToolShown(_Open):
    name: str
    description: str
    risk: Literal["read", "write", "execute", "network"]
    parameters: dict[str, Any]


class ToolList(BaseModel):
    data: list[ToolShown]


class EnvelopeShown(_Open):
    status: Literal["success", "partial", "error"]
    data: dict[str, Any]
    text: str
    stats: dict[str, Any]
    context: dict[str, Any]


class RecordShown(_Open):
    id: str
    state: str


class RecordPage(BaseModel):
    data: list[RecordShown]
    next: str | None


class NewSchedule(_Closed):
    tool: Annotated[str, Field(min_length=1, max_length=200)]
    arguments: dict[str, Any] = {}
    at: Annotated[str, Field(max_length=100, description="YYYY-MM-DD-HH:mm in the zone of the settings, or ISO.")] = ""
    cron: Annotated[str, Field(max_length=100, description="A cron expression of five fields; instead of `at`.")] = ""
    maid: Annotated[str | None, Field(max_length=200)] = None


class VcpToolCall(_Open):
    tool_name: Annotated[str, Field(min_length=1, max_length=200)]
    arguments: dict[str, Any] = {}


class VcpSchedule(_Open):
    schedule_time: Annotated[str, Field(max_length=100)]
    task_id: str = ""
    tool_call: VcpToolCall


class Decision(_Closed):
    always: bool = False
    reason: Annotated[str, Field(max_length=2000)] = ""


class NewRule(_Closed):
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


class RuleList(BaseModel):
    data: list[RuleShown]


class Done(_Open):
    ok: bool


class Reply(_Closed):
    text: Annotated[str, Field(description="What the model said.")]
    to: Literal["html", "markdown", "terminal", "json"] = "html"
    lang: Literal["en", "zh"] = "en"


class Rendered(BaseModel):
    ok: bool
    rendered: str


class NewKey(_Closed):
    name: Annotated[str, Field(min_length=1, max_length=100)]
    scopes: Annotated[list[Scope], Field(min_length=1)]


class KeyShown(BaseModel):
    id: str
    name: str
    scopes: list[Scope]
    created: float


class KeyList(BaseModel):
    data: list[KeyShown]


class KeyMade(KeyShown):
    key: Annotated[str, Field(description="The key itself. It is not stored and cannot be shown again.")]


class Session(BaseModel):
    key: str
    scopes: list[Scope]
    csrf: Annotated[str, Field(description="What X-CSRF-Token has to be; empty when a key was sent.")]


class Ticket(BaseModel):
    ticket: str
    expires_in: int


class Health(_Open):
    status: str
