"""``/v1/models``: the available models."""

from http import HTTPStatus
from typing import Annotated, Any, Literal

from fastapi import Query, Request, Response
from pydantic import BaseModel, Field

from toolyard.gateway.chats import Chat
from toolyard.gateway.protocols.messages.models import list_models_page, to_model
from toolyard.message import Message
from toolyard.web.answers import CurrentPrincipal, json_response
from toolyard.web.refusal import Refusal
from toolyard.web.routing import Routes
from toolyard.web.schemas.chat import MessagesError
from toolyard.web.schemas.common import ErrorBody, OpenModel
from toolyard.web.security.request_head import ANTHROPIC_VERSION
from toolyard.web.security.scope import Scope


class Model(OpenModel):
    id: str


class ModelList(BaseModel):
    object: Literal["list"]
    data: list[Model]
    unavailable: list[str] = Field(description="Providers that did not answer when they were asked for their models")


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


MaxModels = Annotated[int, Query(ge=1, le=1000, description="Of a page, in Anthropic's shape.")]


def router(chat: Chat) -> Routes:
    routes = Routes("/v1/models", tag="chat", scope=Scope.CHAT)
    errors: dict[int | str, dict[str, Any]] = {
        "default": {"model": ErrorBody | MessagesError, "description": "An error."}
    }

    @routes.get("", ModelList | MessagesModelList, responses=errors)
    async def list_models(
        request: Request, principal: CurrentPrincipal, limit: MaxModels = 20, after_id: str = "", before_id: str = ""
    ) -> Response:
        """List the models of every provider, the built-in guide, and the assistants of this key as `assistant/NAME`.

        The models of a provider that does not answer have `"available": false`, and `unavailable` names it. A request
        with `anthropic-version` gets them in Anthropic's shape, page by page.
        """
        models = await chat.models(principal.caller)
        if ANTHROPIC_VERSION in request.headers:
            return json_response(list_models_page(models, limit, after_id, before_id))
        return json_response({"object": "list", "data": models, "unavailable": chat.unavailable_providers()})

    @routes.get("/{id:path}", Model | MessagesModel, responses=errors)
    async def show_model(id: str, request: Request, principal: CurrentPrincipal) -> Response:  # noqa: A002 it is the word of the OpenAPI
        """Return one model by its id, which may contain slashes, or by `PROVIDER/ID`."""
        model = await chat.model(id, principal.caller)
        if model is None:
            raise Refusal(
                HTTPStatus.NOT_FOUND, Message("there is no model '{value}'", value=id[:200]), code="model_not_found"
            )
        return json_response(to_model(model) if ANTHROPIC_VERSION in request.headers else model)

    return routes
