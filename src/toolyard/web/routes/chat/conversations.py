"""``/v1/conversations`` and ``/v1/assistants``: what chat clients store here, and named chat options.

Every key, the owner's too, sees its own only.
"""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import Path, Query, Response
from pydantic import Field

from toolyard.engine.chats.assistants import Assistants
from toolyard.engine.chats.conversations import Conversations, ConversationUpdate, FoundConversation
from toolyard.message import Message
from toolyard.protocol.json import MAX_VALUES, json_problem
from toolyard.protocol.records.assistant_record import (
    MAX_TEMPERATURE,
    MAX_TOKENS,
    Assistant,
    AssistantOptions,
    Mode,
    ReasoningEffort,
    ReplyForm,
)
from toolyard.protocol.records.conversation_record import Conversation, ConversationContent
from toolyard.web.answers import After, CurrentPrincipal, Limit, json_response, page_response
from toolyard.web.refusal import Refusal, bad_request, not_found
from toolyard.web.routing import Routes
from toolyard.web.schemas.common import ChangedRecord, StrictModel
from toolyard.web.schemas.records import extend_model, page_model, record_model
from toolyard.web.security.scope import Scope


class ConversationDraft(StrictModel):
    title: Annotated[str, Field(max_length=200)] = ""
    model: Annotated[str, Field(max_length=200)] = ""
    messages: list[dict[str, Any]] = Field(default_factory=list, max_length=20_000, description="Stored unchanged.")
    settings: dict[str, Any] = Field(default_factory=dict)
    leaf: Annotated[
        str,
        Field(max_length=100, description="The id of the last message of the branch in view, if there are several."),
    ] = ""
    version: Annotated[
        int, Field(ge=0, le=2**53, description="The version that was read; 0 for a new conversation.")
    ] = 0


class ConversationChanges(StrictModel):
    """Changes beside the messages; what is left out stays."""

    title: Annotated[str | None, Field(max_length=200)] = None
    pinned: bool | None = None
    leaf: Annotated[
        str | None, Field(max_length=100, description="The id of the last message of the branch to open.")
    ] = None


class _SearchHit(StrictModel):
    snippet: Annotated[str, Field(description="After a search, the text around a hit; empty if only the title has it.")]
    message_id: Annotated[str, Field(description="The message that the snippet is of.")]


ConversationRow = record_model("ConversationRow", Conversation)


ConversationPage = page_model("ConversationPage", record_model("FoundConversation", Conversation, _SearchHit))


ConversationDetail = record_model(
    "ConversationDetail",
    Conversation,
    record_model("ConversationContent", ConversationContent),
)


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
