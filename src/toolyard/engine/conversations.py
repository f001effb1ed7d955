"""Conversations: what a client of the chat keeps here between visits, so that every window shows the same.

Messages and settings are the client's own: objects that are stored as they come, in a record of their own that is read
only when one conversation is opened. Each belongs to one caller, and an id is that caller's alone. A change names the
version it was made from, so that of two windows that write at once the second is told instead of winning. Events name
the conversation and tell nothing of what is in it: others hear them too. At most ``MAX_BYTES`` each and ``MAX_EACH`` of
one caller. They stay until their caller deletes them: then the messages are gone at once, and the empty records are
forgotten like everything else that has ended.
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
from toolyard.protocol.store import NewEvent, Place, Query, Record, Store

KIND: Final = "conversation"
MESSAGES: Final = "messages"  # of a conversation, under the same id
MAX_BYTES: Final = 8 * 2**20
MAX_EACH: Final = 5_000
_SEARCHED = 20_000  # characters of title and words that a search looks at


class State(StrEnum):
    ACTIVE = "active"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A conversation as its client has it; ``version`` is the one it was read at, 0 for a new one."""

    title: str = ""
    model: str = ""
    messages: list[JsonObject] = field(default_factory=list)
    settings: JsonObject = field(default_factory=dict)
    version: int = 0


class Conversations:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock

    async def page(self, caller: str, search: str, *, limit: int, after: Place | None = None) -> list[Record]:
        """Of one caller, newest first."""
        query = Query(states=(State.ACTIVE,), caller=caller, text=search)
        return await self._store.find(KIND, query, limit=limit, after=after)

    async def get(self, caller: str, id_: str) -> JsonObject | None:
        """One with its messages, both as they were at one moment."""
        record = await self._active(caller, id_)
        while record is not None:
            kept = await self._store.get(MESSAGES, record.id)
            now = await self._active(caller, id_)
            if now == record:
                return {**shown(record), **kept.body} if kept else None
            record = now
        return None

    async def has(self, caller: str, id_: str) -> bool:
        return bool(id_) and await self._active(caller, id_) is not None

    async def put(self, caller: str, id_: str, draft: Draft) -> Record | None:
        """The conversation as it is stored now; None when it had changed since ``draft`` was read."""
        key, now = _key(caller, id_), self._clock.now().timestamp()
        stored, kept = await self._store.get(KIND, key), await self._store.get(MESSAGES, key)
        is_there = stored is not None and stored.state == State.ACTIVE
        if (stored.version if stored and is_there else 0) != draft.version:
            return None
        if not is_there:
            await self._require_room(caller)
        record = Record(
            kind=KIND, id=key, state=State.ACTIVE, version=stored.version if stored else 0,
            created=stored.created if stored and is_there else now, updated=now, caller=caller, key=id_,
            text=_words(draft), body={"title": draft.title, "model": draft.model, "messages": len(draft.messages)},
        )  # fmt: skip
        messages = replace(record, kind=MESSAGES, version=kept.version if kept else 0, text="", body=_content(draft))
        told: JsonObject = {"id": id_, "caller": caller, "version": record.version + 1}
        event = NewEvent(type="conversation.changed", at=now, data=told)
        if not await self._store.commit([record, messages], [event]):
            return None
        crashpoint("conversation.kept")
        return replace(record, version=record.version + 1)

    async def delete(self, caller: str, id_: str) -> bool:
        """Whether there was one."""
        while record := await self._active(caller, id_):
            now = self._clock.now().timestamp()
            gone = replace(record, state=State.DELETED, updated=now, text="", body={})
            kept = await self._store.get(MESSAGES, record.id)
            empty = [replace(kept, state=State.DELETED, updated=now, body={})] if kept else []
            event = NewEvent(type="conversation.deleted", at=now, data={"id": id_, "caller": caller})
            if await self._store.commit([gone, *empty], [event]):
                return True
        return False

    async def _require_room(self, caller: str) -> None:
        if await self._store.count(KIND, Query(states=(State.ACTIVE,), caller=caller)) >= MAX_EACH:
            raise Failure(
                ErrorCode.CONFLICT, f"There are {MAX_EACH} conversations already.", hint="Delete some of them first."
            )

    async def _active(self, caller: str, id_: str) -> Record | None:
        record = await self._store.get(KIND, _key(caller, id_))
        return record if record is not None and record.state == State.ACTIVE else None


def shown(record: Record) -> JsonObject:
    """A conversation in a list: ``messages`` is how many there are."""
    return {
        "id": record.key, "created": record.created, "updated": record.updated, "version": record.version,
        "state": record.state, **record.body,
    }  # fmt: skip


def _content(draft: Draft) -> JsonObject:
    content: JsonObject = {"messages": list(draft.messages), "settings": draft.settings}
    if len(json_bytes(content)) > MAX_BYTES:
        raise Failure(
            ErrorCode.INVALID_PARAM, f"A conversation has {MAX_BYTES} bytes at most.", hint="Begin a new one."
        )
    return content


def _key(caller: str, id_: str) -> str:
    """Where it is stored: ids are chosen by clients, and two callers may choose the same."""
    return f"conversation_{sha256(caller.encode()).hexdigest()[:16]}_{id_}"


def _words(draft: Draft) -> str:
    texts = [draft.title, *(_text(message.get("content")) for message in draft.messages)]
    words, size = [], 0
    for text in texts:
        words.append(text[: _SEARCHED - size])
        size += len(words[-1]) + 1
        if size >= _SEARCHED:
            break
    return " ".join(words)


def _text(content: Json) -> str:
    if isinstance(content, list):
        return " ".join(_text(part.get("text")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""
