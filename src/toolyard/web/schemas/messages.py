"""Schemas of Anthropic's Messages, as far as Toolyard reads or writes them; most are open, as those of chat are."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from toolyard.web.schemas.chat import ToolyardOptions
from toolyard.web.schemas.common import OpenModel


class MessageBlock(OpenModel):
    type: str


class InputMessage(OpenModel):
    role: Literal["user", "assistant", "system", "developer"]
    content: str | list[MessageBlock]


class MessagesBody(OpenModel):
    model: str = ""
    messages: Annotated[list[InputMessage], Field(min_length=1)]
    max_tokens: Annotated[int | None, Field(ge=1)] = None
    system: str | list[MessageBlock] | None = None
    stream: bool | None = None
    tools: Annotated[list[dict[str, Any]], Field(description="The client's own tools.")] = Field(default_factory=list)
    toolyard: ToolyardOptions | None = None


class MessagesUsage(OpenModel):
    input_tokens: int
    output_tokens: int


class MessagesAnswer(OpenModel):
    id: str
    type: Literal["message"]
    role: Literal["assistant"]
    model: str
    content: list[MessageBlock]
    stop_reason: str | None
    stop_sequence: str | None
    usage: MessagesUsage


class TokenCount(BaseModel):
    input_tokens: int


class MessagesFault(OpenModel):
    type: str
    message: str


class MessagesError(BaseModel):
    type: Literal["error"]
    error: MessagesFault
    request_id: str = ""


class MessagesModel(BaseModel):
    type: Literal["model"]
    id: str
    display_name: str
    created_at: str


class MessagesModelList(BaseModel):
    data: list[MessagesModel]
    has_more: bool
    first_id: str | None
    last_id: str | None
