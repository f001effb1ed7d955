"""Schemas of results in the dialects, and of the answers in VCPToolBox's formats."""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, Field

from toolyard.web.schemas.common import Envelope, SpecialAction, StoredAction


class TextPart(BaseModel):
    type: Literal["text"]
    text: str


class MediaUrl(BaseModel):
    url: Annotated[str, Field(description="A data URI.")]


class ImageUrlPart(BaseModel):
    type: Literal["image_url"]
    image_url: MediaUrl


class VideoUrlPart(BaseModel):
    type: Literal["video_url"]
    video_url: MediaUrl


class AudioData(BaseModel):
    data: Annotated[str, Field(description="Base64.")]
    format: str


class InputAudioPart(BaseModel):
    type: Literal["input_audio"]
    input_audio: AudioData


class FileData(BaseModel):
    filename: str
    file_data: Annotated[str, Field(description="A data URI.")]


class FilePart(BaseModel):
    type: Literal["file"]
    file: FileData


class OpenAiToolMessage(BaseModel):
    role: Literal["tool"]
    tool_call_id: str
    content: str | list[TextPart | ImageUrlPart | VideoUrlPart | InputAudioPart | FilePart]


class Base64Source(BaseModel):
    type: Literal["base64"]
    media_type: str
    data: str


class AnthropicMedia(BaseModel):
    type: Literal["image", "document"]
    source: Base64Source


class AnthropicToolResult(BaseModel):
    type: Literal["tool_result"]
    tool_use_id: str
    content: str | list[TextPart | AnthropicMedia]
    is_error: bool


class McpMedia(BaseModel):
    type: Literal["image", "audio"]
    data: Annotated[str, Field(description="Base64.")]
    mimeType: str  # noqa: N815 as MCP names it


class McpBlob(BaseModel):
    uri: str
    mimeType: str  # noqa: N815
    blob: Annotated[str, Field(description="Base64.")]


class McpResource(BaseModel):
    type: Literal["resource"]
    resource: McpBlob


class McpMeta(BaseModel):
    envelope: Annotated[Envelope, Field(alias="toolyard/envelope")]
    action: Annotated[
        SpecialAction,
        Field(alias="toolyard/specialAction", description="What the tool asks the client to do, if anything."),
    ] = Field(default_factory=SpecialAction)


class McpToolResult(BaseModel):
    content: list[TextPart | McpMedia | McpResource]
    structuredContent: Annotated[  # noqa: N815 as MCP names it
        Any, Field(description="Of a tool of an MCP server: what the server sent, if it sent any.")
    ] = None
    isError: bool  # noqa: N815
    meta: Annotated[McpMeta, Field(alias="_meta", description="For programs: no model reads it.")]


class BackendMessage(StoredAction):
    type: Literal["backend_only"]
    tool_name: str
    tool_use_id: str
    uuid: str
    data: Annotated[Any, Field(description="The data of the tool in the back end's shape; of a failure, a text.")]


class VcpResult(BaseModel):
    content: Annotated[list[Any], Field(description="The parts for the model; those of a plugin as it printed them.")]
    details: Annotated[dict[str, Any], Field(description="The data of the tool, and `message`.")]


class VcpAnswer(SpecialAction):
    status: Literal["success", "error"]
    error: Annotated[str, Field(description="Only when `status` is `error`.")] = ""
    result: VcpResult


ToolResult: TypeAlias = Envelope | VcpAnswer | BackendMessage | OpenAiToolMessage | AnthropicToolResult | McpToolResult


class _HumanAnswer(BaseModel):
    timestamp: str
    MaidName: Annotated[str, Field(description="The signer of the request, if it has one.")] = ""


class HumanResult(SpecialAction, VcpResult, _HumanAnswer):
    pass


class HumanError(_HumanAnswer):
    plugin_error: str


class HumanSchedule(BaseModel):
    status: Literal["success"]
    scheduled: bool
    taskId: str  # noqa: N815 as VCPToolBox names it
    tool_name: str
    requestedAt: str  # noqa: N815
    scheduledTime: str  # noqa: N815


HumanAnswer: TypeAlias = HumanResult | HumanError | HumanSchedule


class HumanRefusal(BaseModel):
    error: str


class CallbackAnswer(BaseModel):
    status: Literal["success", "error"]
    message: Annotated[str, Field(description="Only when `status` is `error`.")] = ""
    duplicate: Annotated[bool, Field(description="The result was stored already.")] = False
