"""Schemas of Responses, as far as Toolyard reads it. What a client adds to it is passed on, so the models are open."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from toolyard.web.schemas.common import OpenModel


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
