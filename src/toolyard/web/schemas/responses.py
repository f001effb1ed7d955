"""Schemas of Responses, as far as Toolyard reads it. What a client adds to it is passed on, so the models are open."""

from typing import Annotated, Any, Literal

from pydantic import Field

from toolyard.web.schemas.common import OpenModel


class ResponsesRequest(OpenModel):
    model: str = ""
    input: Annotated[str | list[dict[str, Any]], Field(description="A text, or a list of items.")] = ""
    instructions: str | None = None
    stream: bool | None = None
    store: bool | None = None
    background: bool | None = None
    previous_response_id: str | None = None
    conversation: Annotated[str | dict[str, Any] | None, Field(description="An id, or an object with `id`.")] = None
    tools: list[dict[str, Any]] | None = None


class ResponseObject(OpenModel):
    id: str
    object: Literal["response"]
    created_at: int
    status: str
    model: str
    output: list[dict[str, Any]]
    usage: dict[str, Any] | None = None
