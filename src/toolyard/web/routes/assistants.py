"""``/v1/assistants``: named chat options. Every key, the owner's too, sees its own only."""

from http import HTTPStatus

from fastapi import APIRouter, Response

from toolyard.engine.assistants import Assistants
from toolyard.message import Message
from toolyard.protocol.assistant import Assistant
from toolyard.web.refusal import not_found
from toolyard.web.responses import CurrentPrincipal, json_response
from toolyard.web.schemas.assistants import AssistantDraft, AssistantList, AssistantRow
from toolyard.web.schemas.common import ChangedRecord


def router(assistants: Assistants) -> APIRouter:
    routes = APIRouter(prefix="/v1/assistants", tags=["conversations"])

    @routes.get("", responses={200: {"model": AssistantList}})
    async def list_assistants(principal: CurrentPrincipal) -> Response:
        """List the assistants of this key by name."""
        return json_response({"data": [one.to_json() for one in await assistants.list_all(principal.caller)]})

    @routes.post("", status_code=201, responses={201: {"model": AssistantRow}})
    async def add_assistant(new: AssistantDraft, principal: CurrentPrincipal) -> Response:
        """Store an assistant: a name, and the options of the chats that are started with it."""
        return json_response((await assistants.add(principal.caller, new.to_options())).to_json(), HTTPStatus.CREATED)

    @routes.put("/{id}", responses={200: {"model": AssistantRow}})
    async def change_assistant(id: str, new: AssistantDraft, principal: CurrentPrincipal) -> Response:  # noqa: A002 it is the word of the OpenAPI
        """Replace an assistant; chats that were started with it keep their options."""
        return json_response(_require(await assistants.change(principal.caller, id, new.to_options()), id).to_json())

    @routes.delete("/{id}", responses={200: {"model": ChangedRecord}})
    async def delete_assistant(id: str, principal: CurrentPrincipal) -> Response:  # noqa: A002
        """Delete an assistant."""
        if not await assistants.delete(principal.caller, id):
            raise not_found(_name_assistant(id))
        return json_response({"ok": True, "id": id})

    return routes


def _require(assistant: Assistant | None, id_: str) -> Assistant:
    if assistant is None:
        raise not_found(_name_assistant(id_))
    return assistant


def _name_assistant(id_: str) -> Message:
    return Message("http.assistant", "assistant '{id}'", id=id_[:100])
