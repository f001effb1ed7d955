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
    text: Annotated[str, Field(description="What the model said.")]
    to: Literal["html", "markdown", "terminal", "json"] = "html"
    lang: Literal["en", "zh"] = "en"
    kind: Annotated[
        Literal["auto", "reply", "markdown"],
        Field(description="What the text is. `auto` finds out, and leaves the thinking out of the HTML."),
    ] = "reply"
    partial: Annotated[bool, Field(description="It is still being written: what is missing is no fault.")] = False


class RemoteMediaRequest(StrictModel):
    url: Annotated[str, Field(max_length=8192, description="As the reply has it; only public addresses are asked.")]
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
    offer: Annotated[OfferMode | None, Field(description="How its chats are offered tools; null: as the setting.")] = (
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
    key: Annotated[str, Field(description="The key itself. It is not stored and cannot be shown again.")]


class SessionInfo(BaseModel):
    key: str
    scopes: list[Scope]
    csrf: Annotated[str, Field(description="What X-CSRF-Token has to be; empty when a key was sent.")]
    cursor: Annotated[int | None, Field(description="The newest event now; null for a key that may not hear events.")]


class SocketTicket(BaseModel):
    ticket: str
    expires_in: int


class Health(OpenModel):
    status: str
