"""``/v1/conversations``: conversations that chat clients store here. Every key, the owner's too, sees its own only."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from toolyard.engine.conversations import Conversations, ConversationUpdate, FoundConversation
from toolyard.message import Message
from toolyard.protocol.conversation import ConversationContent
from toolyard.protocol.json import MAX_VALUES, json_problem
from toolyard.web.refusal import Refusal, bad_request, not_found
from toolyard.web.responses import After, CurrentPrincipal, Limit, json_response, page_response
from toolyard.web.schemas.common import ChangedRecord
from toolyard.web.schemas.records import (
    ConversationChanges,
    ConversationDetail,
    ConversationDraft,
    ConversationPage,
    ConversationRow,
)

Id = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,64}$", description="Chosen by the client.")]


def router(conversations: Conversations) -> APIRouter:
    routes = APIRouter(prefix="/v1/conversations", tags=["conversations"])

    @routes.get("", responses={200: {"model": ConversationPage}})
    async def list_conversations(
        principal: CurrentPrincipal,
        after: After,
        limit: Limit = 50,
        search: Annotated[str, Query(max_length=200, description="Words in the title or the messages.")] = "",
    ) -> Response:
        """List the conversations of this key: the pinned ones first, then those whose messages changed last.

        A search looks at the title and at the messages of all branches, and answers with the text around a hit, the
        last active first. A word also finds longer ones that begin with it.
        """
        found = await conversations.page(principal.caller, search, limit=limit, after=after)
        return page_response(
            found,
            limit,
            FoundConversation.to_json,
            lambda one: one.place,
        )

    @routes.get("/{id}", responses={200: {"model": ConversationDetail}})
    async def show_conversation(id: Id, principal: CurrentPrincipal) -> Response:  # noqa: A002 it is the word of the OpenAPI
        """Return one conversation with its messages."""
        stored = await conversations.get(principal.caller, id)
        if stored is None:
            raise not_found(_name_conversation(id))
        conversation, content = stored
        return json_response(conversation.to_json() | content.to_json())

    @routes.put("/{id}", responses={200: {"model": ConversationRow}})
    async def put_conversation(id: Id, new: ConversationDraft, principal: CurrentPrincipal) -> Response:  # noqa: A002
        """Store a conversation; 409 when another client has changed it since `version`."""
        content = ConversationContent(messages=tuple(new.messages), settings=new.settings)
        problem = json_problem(content.to_json(), "body", most=MAX_VALUES)
        if problem:
            raise bad_request(problem)
        update = ConversationUpdate(
            title=new.title, model=new.model, leaf=new.leaf, content=content, version=new.version
        )
        conversation = await conversations.put(principal.caller, id, update)
        if conversation is None:
            message = Message(
                "conversation.version_conflict",
                "conversation '{id}' has changed since version {version}: read it again, then change it",
                id=id,
                version=update.version,
            )
            raise Refusal(HTTPStatus.CONFLICT, message)
        return json_response(conversation.to_json())

    @routes.patch("/{id}", responses={200: {"model": ConversationRow}})
    async def change_conversation(id: Id, changes: ConversationChanges, principal: CurrentPrincipal) -> Response:  # noqa: A002
        """Rename a conversation, pin it, or open another branch of it. The messages stay as they are."""
        conversation = await conversations.change(
            principal.caller, id, title=changes.title, pinned=changes.pinned, leaf=changes.leaf
        )
        if conversation is None:
            raise not_found(_name_conversation(id))
        return json_response(conversation.to_json())

    @routes.delete("/{id}", responses={200: {"model": ChangedRecord}})
    async def delete_conversation(id: Id, principal: CurrentPrincipal) -> Response:  # noqa: A002
        """Delete a conversation."""
        if not await conversations.delete(principal.caller, id):
            raise not_found(_name_conversation(id))
        return json_response({"ok": True, "id": id})

    return routes


def _name_conversation(id_: str) -> Message:
    return Message("http.conversation", "conversation '{id}'", id=id_)
