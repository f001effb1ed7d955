"""Schemas of assistants and attachments."""

from typing import Annotated

from pydantic import Field

from toolyard.protocol.assistant import MAX_TEMPERATURE, MAX_TOKENS, Assistant, AssistantOptions, ReasoningEffort
from toolyard.protocol.attachment import Attachment
from toolyard.protocol.chat_mode import Mode, ReplyForm
from toolyard.web.schemas.common import StrictModel
from toolyard.web.schemas.record_models import extend_model, record_model

ToolName = Annotated[str, Field(min_length=1, max_length=200)]


class AssistantDraft(StrictModel):
    name: Annotated[str, Field(min_length=1, max_length=100, pattern=r"\S")]
    instructions: Annotated[str, Field(max_length=100_000, description="The system prompt.")] = ""
    model: Annotated[str, Field(max_length=200, description="Empty: the one that was used last.")] = ""
    tools: Annotated[
        list[ToolName] | None, Field(max_length=1000, description="The tools that may run; null: all.")
    ] = None
    mode: Annotated[Mode, Field(description="What the tools of the chat may do without asking.")] = Mode.ASK
    temperature: Annotated[float | None, Field(ge=0, le=MAX_TEMPERATURE, allow_inf_nan=False)] = None
    max_tokens: Annotated[int | None, Field(ge=1, le=MAX_TOKENS, description="The longest reply.")] = None
    reasoning_effort: ReasoningEffort | None = None
    reply: Annotated[ReplyForm, Field(description="The form of its replies; json: structured.")] = ReplyForm.TEXT

    def to_options(self) -> AssistantOptions:
        return AssistantOptions(
            name=self.name.strip(),
            instructions=self.instructions,
            model=self.model,
            tools=None if self.tools is None else tuple(self.tools),
            mode=self.mode,
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            reasoning_effort=self.reasoning_effort,
            reply=self.reply,
        )


AssistantRow = record_model("AssistantRow", Assistant)
AssistantList = extend_model("AssistantList", StrictModel, data=list[AssistantRow])  # type: ignore[valid-type]
AttachmentContent = record_model("AttachmentContent", Attachment)


class ProjectFileRow(StrictModel):
    path: Annotated[str, Field(description="Relative to the project.")]


class ProjectFileList(StrictModel):
    data: list[ProjectFileRow]
    truncated: Annotated[bool, Field(description="Whether more files match.")]
