"""Schemas of chat that several routes share, or that FastAPI does not find by itself: requests, chunks and errors.

They have what Toolyard reads or writes. What a provider or a client adds to it is passed on, so most models are open.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from toolyard.gateway.turns.display import Show
from toolyard.protocol.records.assistant_record import Mode
from toolyard.settings import OfferMode
from toolyard.web.schemas.common import OpenModel, StrictModel


class FunctionCall(BaseModel):
    name: str
    arguments: Annotated[str, Field(description="JSON.")]


class ChatToolCall(OpenModel):
    id: str
    type: Literal["function"]
    function: FunctionCall


class ChatPart(OpenModel):
    type: str
    text: str = ""


class ChatMessage(OpenModel):
    role: str
    content: str | list[ChatPart] | None = None
    tool_calls: list[ChatToolCall] = Field(default_factory=list)
    tool_call_id: str = ""


class ToolyardOptions(StrictModel):
    chat: Annotated[
        str,
        Field(
            pattern="^[A-Za-z0-9_.-]{0,128}$",
            description="An id chosen by the client; the reply then survives a disconnect.",
        ),
    ] = ""
    show: Annotated[Show | None, Field(description="How the calls of tools are shown in the answer.")] = None
    tools: Annotated[list[str] | None, Field(description="The tools that may run; null: all.")] = None
    mode: Annotated[Mode, Field(description="What the tools of this chat may do without asking.")] = Mode.ASK
    offer: Annotated[OfferMode | None, Field(description="How tools are offered to the model.")] = None


class ChatRequest(OpenModel):
    model: str = ""
    messages: Annotated[list[ChatMessage], Field(min_length=1)]
    stream: bool | None = None
    tools: Annotated[list[dict[str, Any]], Field(description="The client's own tools, as the provider takes them.")] = (
        Field(default_factory=list)
    )
    toolyard: ToolyardOptions | None = None


class ChatUsage(OpenModel):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0


class FunctionCallDelta(BaseModel):
    name: str = ""
    arguments: str = ""


class ChatToolCallDelta(OpenModel):
    index: int
    id: str = ""
    type: str = ""
    function: FunctionCallDelta | None = None


class ChatDelta(OpenModel):
    role: str = ""
    content: str | None = None
    tool_calls: list[ChatToolCallDelta] = Field(default_factory=list)


class ChatChunkChoice(OpenModel):
    index: int
    delta: ChatDelta
    finish_reason: str | None = None


class ChatCompletionChunk(OpenModel):
    """One server-sent event of a streamed completion."""

    id: str
    object: str
    created: int
    model: str
    choices: list[ChatChunkChoice]
    usage: ChatUsage | None = None


class ProviderError(OpenModel):
    message: Annotated[Any, Field(description="Mostly a text.")] = None


class ProviderErrorBody(BaseModel):
    """An error as a provider wrote it."""

    error: ProviderError


class InterruptRequest(StrictModel):
    requestId: Annotated[str, Field(description="As in the request to stop.")] = ""  # noqa: N815 as clients name it
    messageId: Annotated[str, Field(description="Another name of `requestId`.")] = ""  # noqa: N815
    chat: Annotated[str, Field(description="The id of the chat to stop.")] = ""


class ConversationName(OpenModel):
    id: str


class ResponsesRequest(OpenModel):
    model: str = ""
    input: Annotated[str | list[dict[str, Any]], Field(description="A text, or a list of items.")] = ""
    instructions: str | None = None
    stream: bool | None = None
    store: bool | None = None
    background: bool | None = None
    previous_response_id: str | None = None
    conversation: Annotated[str | ConversationName | None, Field(description="An id, or an object with it.")] = None
    tools: list[dict[str, Any]] | None = None


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


class MessagesFault(OpenModel):
    type: str
    message: str


class MessagesError(BaseModel):
    type: Literal["error"]
    error: MessagesFault
    request_id: str = ""
