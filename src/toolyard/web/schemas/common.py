"""Schemas shared by several routes."""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from toolyard.protocol.envelope import ErrorCode


class OpenModel(BaseModel):
    """An object with members that others decide on: a provider, a plugin or a client."""

    model_config = ConfigDict(extra="allow")


class StrictModel(BaseModel):
    model_config = ConfigDict(extra="forbid")


class NestedMessage(BaseModel):
    text: str
    code: str
    params: "dict[str, str | float | bool | NestedMessage]"


MessageParams: TypeAlias = dict[str, str | float | bool | NestedMessage]
Code = Annotated[str, Field(description="The code of the sentence beside it; missing if it has none.")]
Params = Annotated[MessageParams, Field(default_factory=dict, description="The parameters of the sentence.")]


class MessageFields(BaseModel):
    message: str
    message_code: Code = ""
    message_params: Params


class TextRow(BaseModel):
    text: str
    text_code: Code = ""
    text_params: Params


class ErrorFields(MessageFields):
    type: str
    code: str
    param: Annotated[str | None, Field(description="Always null; OpenAI's clients expect it in errors of chats.")] = (
        None
    )


class ErrorBody(BaseModel):
    error: ErrorFields


class FunctionDefinition(BaseModel):
    name: str
    description: str
    parameters: Annotated[dict[str, Any], Field(description="A JSON Schema.")]


class EnvelopeError(BaseModel):
    code: ErrorCode
    message: str


class CallError(MessageFields):
    """The error in the record of a call, and in its events."""

    code: ErrorCode


class EnvelopeContext(OpenModel):
    cwd: str
    params_input: Annotated[Any, Field(description="The arguments as they were sent.")]
    path_resolved: Annotated[str, Field(description="The path that the tool worked on, relative to the project.")] = ""
    reason: Annotated[str | None, Field(description="The specific cause of an error.")] = None
    message_code: Annotated[str, Field(description="The code of the error's message; missing if it has none.")] = ""
    message_params: Annotated[MessageParams, Field(default_factory=dict, description="The parameters of it.")]
    hint: Annotated[str, Field(description="What to do next, as at the end of the text of a failure.")] = ""
    hint_code: Code = ""
    hint_params: Params
    text_code: Annotated[str, Field(description="The code of the text; missing if it has none.")] = ""
    text_params: Annotated[MessageParams, Field(default_factory=dict, description="The parameters of the text.")]
    truncation_skip: bool = False
    warnings: list[str] = Field(default_factory=list)


class Envelope(BaseModel):
    status: Literal["success", "partial", "error"]
    data: Annotated[dict[str, Any], Field(description="The result for programs; each tool has its own members.")]
    text: Annotated[str, Field(description="The result for people and models.")]
    error: Annotated[EnvelopeError | None, Field(description="Only when `status` is `error`.")] = None
    stats: dict[str, float | str]
    context: EnvelopeContext


class SpecialAction(BaseModel):
    special_action: Annotated[
        str, Field(alias="_specialAction", description="What the tool asks the client to do; missing if nothing.")
    ] = ""
    payload: Annotated[Any, Field(description="What the tool adds for that action.")] = None


class StoredAction(SpecialAction):
    payload_left_out: Annotated[
        bool, Field(description="The payload was too large: only the answer in the `vcp` dialect has it.")
    ] = False


class OkResponse(BaseModel):
    ok: bool


class ChangedRecord(OkResponse):
    id: str


class Readiness(BaseModel):
    status: Annotated[str, Field(description="`ready`, or the problem.")]
    limits: Annotated[dict[str, float], Field(description="Every limit, with `?verbose`.")] = Field(
        default_factory=dict
    )
    running: Annotated[int, Field(description="The number of running requests, with `?verbose`.")] = 0
