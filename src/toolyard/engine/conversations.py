"""Conversations: chats stored on the server, so that every window of a client shows the same.

Messages and settings are the client's own: objects that are stored as they come, in a record of their own that is read
only when one conversation is opened. Each belongs to one caller, and an id is that caller's alone. A change names the
version it was made from, so that of two windows that write at once the second gets a conflict. Events name the
conversation but none of its content: other callers receive them too. At most ``MAX_BYTES`` each and
``MAX_PER_CALLER`` of one caller. They stay until their caller deletes them: then the messages are deleted at once, and
the empty records like everything else that has ended.
"""

from dataclasses import dataclass, field, replace
from enum import StrEnum
from hashlib import sha256
from typing import Final

from toolyard.crashpoint import crashpoint
from toolyard.engine.clock import Clock
from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure
from toolyard.protocol.json import Json, JsonObject, json_bytes
from toolyard.protocol.store import NewEvent, PageCursor, Query, Record, Store

KIND: Final = "conversation"
MESSAGES: Final = "messages"  # of a conversation, under the same id
MAX_BYTES: Final = 8 * 2**20
MAX_PER_CALLER: Final = 5_000
_MAX_SEARCHED = 20_000  # characters of title and words that a search looks at


class ConversationState(StrEnum):
    ACTIVE = "active"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationUpdate:
    """A conversation as its client writes it; ``version`` is the one it was read at, 0 for a new one."""

    title: str = ""
    model: str = ""
    messages: list[JsonObject] = field(default_factory=list)
    settings: JsonObject = field(default_factory=dict)
    version: int = 0


class Conversations:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock

    async def page(self, caller: str, search: str, *, limit: int, after: PageCursor | None = None) -> list[Record]:
        """Return the conversations of one caller, newest first."""
        query = Query(states=(ConversationState.ACTIVE,), caller=caller, text=search)
        return await self._store.find(KIND, query, limit=limit, after=after)

    async def get(self, caller: str, id_: str) -> JsonObject | None:
        """Return one conversation with its messages, read consistently."""
        record = await self._get_active(caller, id_)
        while record is not None:
            messages = await self._store.get(MESSAGES, record.id)
            now = await self._get_active(caller, id_)
            if now == record:
                return {**to_json(record), **messages.body} if messages else None
            record = now
        return None

    async def has(self, caller: str, id_: str) -> bool:
        return bool(id_) and await self._get_active(caller, id_) is not None

    async def put(self, caller: str, id_: str, draft: ConversationUpdate) -> Record | None:
        """Store a conversation and return its record; None when it has changed since ``draft`` was read."""
        key, now = _record_id(caller, id_), self._clock.now().timestamp()
        stored, content = await self._store.get(KIND, key), await self._store.get(MESSAGES, key)
        is_there = stored is not None and stored.state == ConversationState.ACTIVE
        if (stored.version if stored and is_there else 0) != draft.version:
            return None
        if not is_there:
            await self._require_room(caller)
        record = Record(
            kind=KIND, id=key, state=ConversationState.ACTIVE, version=stored.version if stored else 0,
            created=stored.created if stored and is_there else now, updated=now, caller=caller, key=id_,
            text=_searchable_text(draft),
            body={"title": draft.title, "model": draft.model, "messages": len(draft.messages)},
        )  # fmt: skip
        messages = replace(
            record, kind=MESSAGES, version=content.version if content else 0, text="", body=_build_content(draft)
        )
        data: JsonObject = {"id": id_, "caller": caller, "version": record.version + 1}
        event = NewEvent(type="conversation.changed", at=now, data=data)
        if not await self._store.commit([record, messages], [event]):
            return None
        crashpoint("conversation.kept")
        return replace(record, version=record.version + 1)

    async def delete(self, caller: str, id_: str) -> bool:
        """Delete a conversation; False when there is none."""
        while record := await self._get_active(caller, id_):
            now = self._clock.now().timestamp()
            deleted = replace(record, state=ConversationState.DELETED, updated=now, text="", body={})
            messages = await self._store.get(MESSAGES, record.id)
            empty = [replace(messages, state=ConversationState.DELETED, updated=now, body={})] if messages else []
            event = NewEvent(type="conversation.deleted", at=now, data={"id": id_, "caller": caller})
            if await self._store.commit([deleted, *empty], [event]):
                return True
        return False

    async def _require_room(self, caller: str) -> None:
        if await self._store.count(KIND, Query(states=(ConversationState.ACTIVE,), caller=caller)) >= MAX_PER_CALLER:
            raise Failure(
                ErrorCode.CONFLICT,
                f"There are {MAX_PER_CALLER} conversations already.",
                hint="Delete some of them first.",
            )

    async def _get_active(self, caller: str, id_: str) -> Record | None:
        record = await self._store.get(KIND, _record_id(caller, id_))
        return record if record is not None and record.state == ConversationState.ACTIVE else None


def to_json(record: Record) -> JsonObject:
    """Return a conversation as JSON for a list: ``messages`` is their number."""
    return {
        "id": record.key, "created": record.created, "updated": record.updated, "version": record.version,
        "state": record.state, **record.body,
    }  # fmt: skip


def _build_content(draft: ConversationUpdate) -> JsonObject:
    content: JsonObject = {"messages": list(draft.messages), "settings": draft.settings}
    if len(json_bytes(content)) > MAX_BYTES:
        raise Failure(
            ErrorCode.INVALID_PARAM, f"A conversation has {MAX_BYTES} bytes at most.", hint="Begin a new one."
        )
    return content


def _record_id(caller: str, id_: str) -> str:
    """Return the record id: clients choose their own ids, and two callers may choose the same."""
    return f"conversation_{sha256(caller.encode()).hexdigest()[:16]}_{id_}"


def _searchable_text(draft: ConversationUpdate) -> str:
    texts = [draft.title, *(_message_text(message.get("content")) for message in draft.messages)]
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
