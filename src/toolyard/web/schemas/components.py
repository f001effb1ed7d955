"""Schemas that FastAPI does not find by itself: bodies that a route reads on its own, and messages of streams."""

from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from toolyard.web.schemas.chat import ChatCompletionChunk, ChatRequest, InterruptRequest, MessagesBody, ResponsesRequest
from toolyard.web.schemas.common import ErrorBody
from toolyard.web.schemas.dialects import BackendMessage
from toolyard.web.schemas.events import ServerEvent
from toolyard.web.schemas.plugins import McpServersFile

_TEMPLATE: Final = "#/components/schemas/{model}"
_MODELS: Final[tuple[type[BaseModel], ...]] = (
    BackendMessage,
    ChatCompletionChunk,
    ChatRequest,
    ErrorBody,
    InterruptRequest,
    McpServersFile,
    MessagesBody,
    ResponsesRequest,
    ServerEvent,
)


def refer_to(model: type[BaseModel]) -> dict[str, str]:
    """Return the reference to the schema of one of these models."""
    return {"$ref": _TEMPLATE.format(model=model.__name__)}


def add_components(document: dict[str, Any]) -> None:
    """Add the schemas of these models to an OpenAPI document."""
    _, made = models_json_schema([(model, "validation") for model in _MODELS], ref_template=_TEMPLATE)
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    schemas |= {name: schema for name, schema in made["$defs"].items() if name not in schemas}
