"""``/v1/conversations`` and ``/v1/assistants``: what chat clients store here, and named chat options.

Every key, the owner's too, sees its own only.
"""

from http import HTTPStatus
from typing import Annotated

from fastapi import Path, Query, Response

from toolyard.engine.assistants import Assistants
from toolyard.engine.conversations import Conversations, ConversationUpdate, FoundConversation
from toolyard.message import Message
from toolyard.protocol.json import MAX_VALUES, json_problem
from toolyard.protocol.records.assistant_record import Assistant
from toolyard.protocol.records.conversation_record import ConversationContent
from toolyard.web.answers import After, CurrentPrincipal, Limit, json_response, page_response
from toolyard.web.refusal import Refusal, bad_request, not_found
from toolyard.web.routing import Routes
from toolyard.web.schemas.common import ChangedRecord
from toolyard.web.schemas.records import (
    AssistantDraft,
    AssistantList,
    AssistantRow,
    ConversationChanges,
    ConversationDetail,
    ConversationDraft,
    ConversationPage,
    ConversationRow,
)
from toolyard.web.security.scope import Scope

Id = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,64}$", description="Chosen by the client.")]


def router(conversations: Conversations) -> Routes:
    routes = Routes("/v1/conversations", tag="conversations", scope=Scope.CHAT)

    @routes.get("", ConversationPage)
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

    @routes.get("/{id}", ConversationDetail)
    async def show_conversation(id: Id, principal: CurrentPrincipal) -> Response:  # noqa: A002 it is the word of the OpenAPI
        """Return one conversation with its messages."""
        stored = await conversations.get(principal.caller, id)
        if stored is None:
            raise not_found(_name_conversation(id))
        conversation, content = stored
        return json_response(conversation.to_json() | content.to_json())

    @routes.put("/{id}", ConversationRow)
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
                "conversation '{id}' has changed since version {version}: read it again, then change it",
                id=id,
                version=update.version,
            )
            raise Refusal(HTTPStatus.CONFLICT, message)
        return json_response(conversation.to_json())

    @routes.patch("/{id}", ConversationRow)
    async def change_conversation(id: Id, changes: ConversationChanges, principal: CurrentPrincipal) -> Response:  # noqa: A002
        """Rename a conversation, pin it, or open another branch of it. The messages stay as they are."""
        conversation = await conversations.change(
            principal.caller, id, title=changes.title, pinned=changes.pinned, leaf=changes.leaf
        )
        if conversation is None:
            raise not_found(_name_conversation(id))
        return json_response(conversation.to_json())

    @routes.delete("/{id}", ChangedRecord)
    async def delete_conversation(id: Id, principal: CurrentPrincipal) -> Response:  # noqa: A002
        """Delete a conversation."""
        if not await conversations.delete(principal.caller, id):
            raise not_found(_name_conversation(id))
        return json_response({"ok": True, "id": id})

    return routes


def _name_conversation(id_: str) -> Message:
    return Message("conversation '{id}'", id=id_)


def assistants_router(assistants: Assistants) -> Routes:
    routes = Routes("/v1/assistants", tag="conversations", scope=Scope.CHAT)

    @routes.get("", AssistantList)
    async def list_assistants(principal: CurrentPrincipal) -> Response:
        """List the assistants of this key by name."""
        return json_response({"data": [one.to_json() for one in await assistants.list_all(principal.caller)]})

    @routes.post("", AssistantRow, status=201)
    async def add_assistant(new: AssistantDraft, principal: CurrentPrincipal) -> Response:
        """Store an assistant: a name, and the options of the chats that are started with it."""
        return json_response((await assistants.add(principal.caller, new.to_options())).to_json(), HTTPStatus.CREATED)

    @routes.put("/{id}", AssistantRow)
    async def change_assistant(id: str, new: AssistantDraft, principal: CurrentPrincipal) -> Response:  # noqa: A002 it is the word of the OpenAPI
        """Replace an assistant; chats that were started with it keep their options."""
        return json_response(_require(await assistants.change(principal.caller, id, new.to_options()), id).to_json())

    @routes.delete("/{id}", ChangedRecord)
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
    return Message("assistant '{id}'", id=id_[:100])
