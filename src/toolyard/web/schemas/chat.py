"""Schemas of chat: OpenAI's chat completions and Responses, Anthropic's Messages, and what Toolyard adds.

They have what Toolyard reads or writes. What a provider or a client adds to it is passed on, so most models are open.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from toolyard.gateway.turns.display import Show
from toolyard.protocol.records.assistant_record import Mode
from toolyard.settings import OfferMode
from toolyard.web.schemas.common import MessageFields, OpenModel, StrictModel


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


class ResponseUsage(OpenModel):
    input_tokens: int
    output_tokens: int
    total_tokens: int


class ResponseObject(OpenModel):
    id: str
    object: Literal["response"]
    created_at: int
    status: str
    model: str
    output: list[dict[str, Any]]
    usage: ResponseUsage | None = None


class DeletedResponse(BaseModel):
    id: str
    object: Literal["response"]
    deleted: bool


class InputItemList(BaseModel):
    object: Literal["list"]
    data: list[dict[str, Any]]
    first_id: str | None
    last_id: str | None
    has_more: bool


class Estimate(BaseModel):
    estimate: Annotated[bool, Field(description="The number was not counted by the provider.")]


class InputTokens(BaseModel):
    object: Literal["response.input_tokens"]
    input_tokens: int
    toolyard: Estimate


class CompactedResponse(BaseModel):
    id: str
    object: Literal["response.compaction"]
    created_at: int
    output: list[dict[str, Any]]
    usage: ResponseUsage


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


class PromptRow(BaseModel):
    name: Annotated[str, Field(description="System messages name it as {{NAME}}.")]
    kind: Annotated[
        Literal["prompt", "variable", "agent", "toolbox"],
        Field(description="A prompt file or a variable; agent and toolbox: of a VCPToolBox installation."),
    ]
    place: Annotated[str, Field(description="The file that it stands in.")]
    text: Annotated[str, Field(description="Its text as it is written, cut after 2,000 characters.")]
    characters: Annotated[int, Field(description="The length of the whole text.")]
    description: str
    model: Annotated[str | None, Field(description="Of an assistant: its model, or empty. Null: it is none.")]


class PromptProblemRow(MessageFields):
    place: str


class UnfilledName(BaseModel):
    name: str
    requests: Annotated[int, Field(description="The requests whose system messages had it, since the server started.")]


class PromptList(BaseModel):
    folders: Annotated[list[str], Field(description="Where prompt files are looked for.")]
    installation: Annotated[str | None, Field(description="The VCPToolBox installation whose prompts are used.")]
    data: list[PromptRow]
    problems: list[PromptProblemRow]
    unfilled: Annotated[list[UnfilledName], Field(description="Names in system messages that nothing fills.")]


class PromptDraft(StrictModel):
    text: Annotated[str, Field(max_length=1_000_000, description="A system message.")]
    model: Annotated[str, Field(max_length=200, description="The model that it would be for.")] = ""


class FilledText(BaseModel):
    text: Annotated[str, Field(description="The system message as the model would get it.")]
    characters: int
    unfilled: Annotated[list[str], Field(description="Names in it that nothing fills.")]
    lists_tools: Annotated[bool, Field(description="Whether it lists tools, so that none are offered besides.")]
