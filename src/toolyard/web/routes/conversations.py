"""``/v1/conversations``: what a client of the chat keeps here. Everybody, the owner too, sees their own only."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from toolyard.engine.conversations import Conversations, ConversationUpdate, to_json
from toolyard.protocol.json import MAX_VALUES, JsonObject, json_problem
from toolyard.protocol.store import PageCursor
from toolyard.web.answers import After, Limit, Who, answer, page
from toolyard.web.refusal import Refusal, bad_request, not_found
from toolyard.web.shapes import Done
from toolyard.web.shapes_records import ConversationDraft, ConversationPage, ConversationRow, ConversationShown

Id = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,64}$", description="Chosen by the client.")]


def router(conversations: Conversations) -> APIRouter:
    routes = APIRouter(prefix="/v1/conversations", tags=["conversations"])

    @routes.get("", responses={200: {"model": ConversationPage}})
    async def list_conversations(
        who: Who,
        after: After,
        limit: Limit = 50,
        search: Annotated[str, Query(max_length=200, description="Words of the title or of the messages.")] = "",
    ) -> Response:
        """The conversations of this key, newest first."""
        found = await conversations.page(who.caller, search, limit=limit, after=after)
        return page(found, limit, to_json, lambda one: PageCursor(created=one.created, id=one.id))

    @routes.get("/{id}", responses={200: {"model": ConversationShown}})
    async def show_conversation(id: Id, who: Who) -> Response:  # noqa: A002 it is the word of the OpenAPI
        """One with its messages."""
        found = await conversations.get(who.caller, id)
        if found is None:
            raise not_found(f"conversation '{id}'")
        return answer(found)

    @routes.put("/{id}", responses={200: {"model": ConversationRow}})
    async def put_conversation(id: Id, new: ConversationDraft, who: Who) -> Response:  # noqa: A002
        """Keep a conversation as it is now; 409 when another window has changed it since `version`."""
        draft = ConversationUpdate(
            title=new.title, model=new.model, messages=new.messages, settings=new.settings, version=new.version
        )
        kept: JsonObject = {"messages": list(draft.messages), "settings": draft.settings}
        problem = json_problem(kept, "body", most=MAX_VALUES)
        if problem:
            raise bad_request(problem)
        record = await conversations.put(who.caller, id, draft)
        if record is None:
            message = f"conversation '{id}' is not at version {draft.version}: read it again, then change it"
            raise Refusal(HTTPStatus.CONFLICT, message)
        return answer(to_json(record))

    @routes.delete("/{id}", responses={200: {"model": Done}})
    async def delete_conversation(id: Id, who: Who) -> Response:  # noqa: A002
        """Forget a conversation."""
        if not await conversations.delete(who.caller, id):
            raise not_found(f"conversation '{id}'")
        return answer({"ok": True, "id": id})

    return routes
