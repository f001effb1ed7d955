"""Conversations: chats stored on the server, so that every window of a client shows the same.

Messages and settings are the client's own: objects that are stored as they come, in a record of their own that is read
only when one conversation is opened. Each belongs to one caller, and an id is that caller's alone. A change names the
version it was made from, so that of two windows that write at once the second gets a conflict. Events name the
conversation but none of its content: other callers receive them too. At most ``MAX_BYTES`` each and
``MAX_PER_CALLER`` of one caller. They stay until their caller deletes them: then the messages are deleted at once, and
the empty records like everything else that has ended.
"""

from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Final

from toolyard.crashpoint import crashpoint
from toolyard.engine.clock import Clock
from toolyard.message import Message
from toolyard.protocol.conversation import (
    CONVERSATION,
    MESSAGES,
    Conversation,
    ConversationContent,
    ConversationState,
)
from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure
from toolyard.protocol.json import Json, JsonObject, json_bytes
from toolyard.protocol.store import NewEvent, PageCursor, Query, Store

MAX_BYTES: Final = 8 * 2**20
MAX_PER_CALLER: Final = 5_000
_MAX_SEARCHED = 20_000  # characters of title and words that a search looks at


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationUpdate:
    """A conversation as its client writes it; ``version`` is the one it was read at, 0 for a new one."""

    title: str = ""
    model: str = ""
    content: ConversationContent = field(default_factory=ConversationContent)
    version: int = 0


class Conversations:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock

    async def page(
        self, caller: str, search: str, *, limit: int, after: PageCursor | None = None
    ) -> list[Conversation]:
        """Return the conversations of one caller, newest first."""
        query = Query(states=(ConversationState.ACTIVE,), caller=caller, text=search)
        records = await self._store.find(CONVERSATION, query, limit=limit, after=after)
        return [Conversation.from_record(record) for record in records]

    async def get(self, caller: str, id_: str) -> tuple[Conversation, ConversationContent] | None:
        """Return one conversation with its content, read consistently."""
        conversation = await self._get_active(caller, id_)
        while conversation is not None:
            stored = await self._store.get(MESSAGES, conversation.record_id)
            now = await self._get_active(caller, id_)
            if now == conversation:
                return (conversation, ConversationContent.from_record(stored)) if stored else None
            conversation = now
        return None

    async def has(self, caller: str, id_: str) -> bool:
        return bool(id_) and await self._get_active(caller, id_) is not None

    async def put(self, caller: str, id_: str, update: ConversationUpdate) -> Conversation | None:
        """Store a conversation and return it; None when it has changed since ``update`` was read."""
        key, now = _record_id(caller, id_), self._clock.now().timestamp()
        stored, content = await self._store.get(CONVERSATION, key), await self._store.get(MESSAGES, key)
        is_there = stored is not None and stored.state == ConversationState.ACTIVE
        if (stored.version if stored and is_there else 0) != update.version:
            return None
        if not is_there:
            await self._require_room(caller)
        _require_size(update.content)
        conversation = Conversation(
            id=id_, created=stored.created if stored and is_there else now, updated=now,
            version=stored.version if stored else 0, title=update.title, model=update.model,
            messages=len(update.content.messages), record_id=key, caller=caller, search_text=_searchable_text(update),
        )  # fmt: skip
        messages = update.content.to_record(conversation, version=content.version if content else 0)
        data: JsonObject = {"id": id_, "caller": caller, "version": conversation.version + 1}
        event = NewEvent(type="conversation.changed", at=now, data=data)
        if not await self._store.commit([conversation.to_record(), messages], [event]):
            return None
        crashpoint("conversation.kept")
        return replace(conversation, version=conversation.version + 1)

    async def delete(self, caller: str, id_: str) -> bool:
        """Delete a conversation; False when there is none."""
        while conversation := await self._get_active(caller, id_):
            now = self._clock.now().timestamp()
            deleted = replace(conversation, state=ConversationState.DELETED, updated=now)
            stored = await self._store.get(MESSAGES, conversation.record_id)
            empty = [replace(stored, state=ConversationState.DELETED, updated=now, body={})] if stored else []
            event = NewEvent(type="conversation.deleted", at=now, data={"id": id_, "caller": caller})
            if await self._store.commit([deleted.to_record(), *empty], [event]):
                return True
        return False

    async def _require_room(self, caller: str) -> None:
        if (
            await self._store.count(CONVERSATION, Query(states=(ConversationState.ACTIVE,), caller=caller))
            >= MAX_PER_CALLER
        ):
            raise Failure(
                ErrorCode.CONFLICT,
                Message(
                    "conversation.conversations_already",
                    "There are {max_per_caller} conversations already.",
                    max_per_caller=MAX_PER_CALLER,
                ),
                hint="Delete some of them first.",
            )

    async def _get_active(self, caller: str, id_: str) -> Conversation | None:
        record = await self._store.get(CONVERSATION, _record_id(caller, id_))
        is_active = record is not None and record.state == ConversationState.ACTIVE
        return Conversation.from_record(record) if record and is_active else None


def _require_size(content: ConversationContent) -> None:
    if len(json_bytes(content.to_json())) > MAX_BYTES:
        raise Failure(
            ErrorCode.INVALID_PARAM,
            Message(
                "conversation.conversation_bytes_most", "A conversation has {limit} bytes at most.", limit=MAX_BYTES
            ),
            hint="Begin a new one.",
        )


def _record_id(caller: str, id_: str) -> str:
    """Return the record id: clients choose their own ids, and two callers may choose the same."""
    return f"conversation_{sha256(caller.encode()).hexdigest()[:16]}_{id_}"


def _searchable_text(update: ConversationUpdate) -> str:
    texts = [update.title, *(_message_text(message.get("content")) for message in update.content.messages)]
    words, size = [], 0
    for text in texts:
        words.append(text[: _MAX_SEARCHED - size])
        size += len(words[-1]) + 1
        if size >= _MAX_SEARCHED:
            break
    return " ".join(words)


def _message_text(content: Json) -> str:
    if isinstance(content, list):
        return " ".join(_message_text(part.get("text")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""
