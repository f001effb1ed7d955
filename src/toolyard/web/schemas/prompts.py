"""Schemas of prompts."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from toolyard.web.schemas.common import MessageFields, StrictModel


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
