"""Schemas of chat: OpenAI's protocol as far as Toolyard reads it, and what Toolyard adds.

What a provider or a client adds to it is passed on, so most of these models are open.
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


class ChatChoice(OpenModel):
    index: int
    message: ChatMessage
    finish_reason: str | None = None


class ChatCompletion(OpenModel):
    id: str
    object: str
    created: int
    model: str
    choices: list[ChatChoice]
    usage: ChatUsage | None = None


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


class InterruptResult(BaseModel):
    status: Literal["success"]
    message: str


class ChatOffer(BaseModel):
    mode: OfferMode
    tools: list[str]
    tokens: int
    left_out: list[str]


class ChatRound(BaseModel):
    sent: Annotated[Any, Field(description="The request to the model; as a text if it was cut.")]


class ChatWork(BaseModel):
    round: int
    tool: str
    state: str
    text: str


class ChatDetail(BaseModel):
    id: str
    model: str
    started: float
    state: str
    error: str | None
    offer: ChatOffer
    unfilled: Annotated[list[str], Field(description="The names of placeholders in its prompt that nothing fills.")]
    rounds: list[ChatRound]
    work: list[ChatWork]
    cursor: Annotated[int | None, Field(description="The newest event of its stream; null if it cannot be followed.")]


class Model(OpenModel):
    id: str


class ModelList(BaseModel):
    object: Literal["list"]
    data: list[Model]
    unavailable: list[str] = Field(description="Providers that did not answer when they were asked for their models")
