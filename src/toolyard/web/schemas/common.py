"""Schemas shared by several routes."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from toolyard.protocol.offer import OfferMode
from toolyard.web.security.scope import Scope


class OpenModel(BaseModel):
    model_config = ConfigDict(extra="allow")


class StrictModel(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ErrorFields(BaseModel):
    message: str
    type: str
    code: str


class ErrorBody(BaseModel):
    error: ErrorFields


class ToolSummary(OpenModel):
    name: str
    description: str
    risk: Literal["read", "write", "execute", "network"]
    parameters: dict[str, Any]


class ToolList(BaseModel):
    data: list[ToolSummary]


class EnvelopeSchema(OpenModel):
    status: Literal["success", "partial", "error"]
    data: dict[str, Any]
    text: str
    stats: dict[str, Any]
    context: dict[str, Any]


class RecordSummary(OpenModel):
    id: str
    state: str


class OkResponse(OpenModel):
    ok: bool


class ReplyRequest(StrictModel):
    text: Annotated[str, Field(description="The text of the model.")]
    to: Literal["html", "markdown", "terminal", "json"] = "html"
    lang: Literal["en", "zh"] = "en"
    kind: Annotated[
        Literal["auto", "reply", "markdown"],
        Field(description="The kind of text. `auto` detects it, and omits the thinking from the HTML."),
    ] = "reply"
    partial: Annotated[bool, Field(description="The text is incomplete: missing parts are no error.")] = False


class RemoteMediaRequest(StrictModel):
    url: Annotated[str, Field(max_length=8192, description="As in the reply; only public addresses are fetched.")]
    kind: Literal["image", "audio", "video"] = "image"


class ReplyParseError(BaseModel):
    message: str
    line: int
    column: int


class RenderedReply(BaseModel):
    ok: bool
    rendered: str
    kind: Literal["reply", "markdown"]
    think: Annotated[str, Field(description="The thinking, as text.")]
    error: ReplyParseError | None


class NewKey(StrictModel):
    name: Annotated[str, Field(min_length=1, max_length=100)]
    scopes: Annotated[list[Scope], Field(min_length=1)]
    offer: Annotated[OfferMode | None, Field(description="How tools are offered in its chats; null: the setting.")] = (
        None
    )


class KeySummary(BaseModel):
    id: str
    name: str
    scopes: list[Scope]
    created: float
    offer: OfferMode | None


class KeyList(BaseModel):
    data: list[KeySummary]


class CreatedKey(KeySummary):
    key: Annotated[str, Field(description="The secret. It is not stored and cannot be shown again.")]


class SessionInfo(BaseModel):
    key: str
    scopes: list[Scope]
    csrf: Annotated[str, Field(description="The value for X-CSRF-Token; empty when a key was sent.")]
    cursor: Annotated[
        int | None, Field(description="The number of the newest event; null for a key without access to events.")
    ]


class SocketTicket(BaseModel):
    ticket: str
    expires_in: int


class Health(OpenModel):
    status: str
