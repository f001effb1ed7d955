"""``/v1/models``: the available models."""

from http import HTTPStatus

from fastapi import Response

from toolyard.gateway.chats import Chat
from toolyard.message import Message
from toolyard.web.refusal import Refusal
from toolyard.web.responses import CurrentPrincipal, json_response
from toolyard.web.routing import Routes
from toolyard.web.schemas.chat import Model, ModelList
from toolyard.web.security.scope import Scope


def router(chat: Chat) -> Routes:
    routes = Routes("/v1/models", tag="chat", scope=Scope.CHAT)

    @routes.get("", ModelList)
    async def list_models(principal: CurrentPrincipal) -> Response:
        """List the models of every provider, the built-in guide, and the assistants of this key as `assistant/NAME`.

        The models of a provider that does not answer have `"available": false`, and `unavailable` names it.
        """
        models = await chat.models(principal.caller)
        return json_response({"object": "list", "data": models, "unavailable": chat.unavailable_providers()})

    @routes.get("/{id:path}", Model)
    async def show_model(id: str, principal: CurrentPrincipal) -> Response:  # noqa: A002 it is the word of the OpenAPI
        """Return one model by its id, which may contain slashes, or by `PROVIDER/ID`."""
        model = await chat.model(id, principal.caller)
        if model is None:
            raise Refusal(
                HTTPStatus.NOT_FOUND, Message("there is no model '{value}'", value=id[:200]), code="model_not_found"
            )
        return json_response(model)

    return routes
