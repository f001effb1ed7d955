"""The models that can be asked for: ``/v1/models``."""

from http import HTTPStatus

from fastapi import APIRouter, Response

from toolyard.gateway.chat import Chat
from toolyard.web.answers import answer
from toolyard.web.refusal import Refusal


def router(chat: Chat) -> APIRouter:
    routes = APIRouter(prefix="/v1/models", tags=["chat"])

    @routes.get("", response_model=None)
    async def list_models() -> Response:
        """The models of every provider, and the built-in guide."""
        return answer({"object": "list", "data": await chat.models()})

    @routes.get("/{id:path}", response_model=None)
    async def show_model(id: str) -> Response:  # noqa: A002 it is the word of the OpenAPI
        """One model by its id, which may hold slashes, or by the name of its provider and its id there."""
        found = await chat.model(id)
        if found is None:
            raise Refusal(HTTPStatus.NOT_FOUND, f"there is no model '{id[:200]}'", code="model_not_found")
        return answer(found)

    return routes
