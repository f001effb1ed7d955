"""Conversations: chats stored on the server, so that every window of a client shows the same.

Messages and settings are the client's own: objects that are stored as they come, in a record of their own that is read
only when one conversation is opened. Their text has another, which a search looks at. Each conversation belongs to one
caller, and an id is that caller's alone. A change of the messages names the version it was made from, so that of two
windows that write at once the second gets a conflict. Events name the conversation but none of its content: other
callers receive them too. A conversation is as active as its messages: to rename or pin it, or to change its settings,
moves it nowhere in the list. At most ``MAX_BYTES`` each and ``MAX_PER_CALLER`` of one caller. They stay until their
caller deletes them: then the messages are deleted at once, and the empty records like everything else that has ended.

A search finds conversations by the text of their messages, which is read where OpenAI's messages have it (``content``,
a text or parts) and where those of the console have it (``text``, and the text of ``pieces``).
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Final, NamedTuple

from toolyard.crashpoint import crashpoint
from toolyard.engine.clock import Clock
from toolyard.message import Message
from toolyard.protocol.envelope import ErrorCode, Failure
from toolyard.protocol.json import Json, JsonObject, json_bytes
from toolyard.protocol.records.conversation_record import (
    CONVERSATION,
    MESSAGES,
    PINNED,
    TEXT,
    Conversation,
    ConversationContent,
    ConversationState,
    ConversationText,
    MessageText,
)
from toolyard.protocol.search_words import FIRST_UNSPACED, MAX_TEXT, list_prefixes
from toolyard.protocol.store import NewEvent, PageCursor, Query, Record, Store

MAX_BYTES: Final = 8 * 2**20
MAX_PER_CALLER: Final = 5_000
_PAGE = 100
_UNPINNED = (ConversationState.ACTIVE,)
_ACTIVE = (ConversationState.ACTIVE, PINNED)
_AMONG_PINNED = "pinned/"  # at the beginning of the id in a cursor
_MAX_TITLE = 1000
_MAX_ID = 100
MAX_SEARCHED: Final = MAX_TEXT - _MAX_TITLE
_BEFORE, _SNIPPET = 40, 200  # characters
_SPOKEN = "text"  # the kind of the pieces that a reply says; it also has reasoning and calls


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationUpdate:
    """A conversation as its client writes it; ``version`` is the one it was read at, 0 for a new one."""

    title: str = ""
    model: str = ""
    leaf: str = ""
    content: ConversationContent = field(default_factory=ConversationContent)
    version: int = 0


class FoundConversation(NamedTuple):
    """A conversation in a list; after a search, with the text around the hit and the message that it is in."""

    conversation: Conversation
    place: PageCursor  # in the list
    snippet: str = ""
    message_id: str = ""

    def to_json(self) -> JsonObject:
        return self.conversation.to_json() | {"snippet": self.snippet, "message_id": self.message_id}


class Conversations:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._indexing: dict[
            str, asyncio.Task[None]
        ] = {}  # by caller; done: the text of all its conversations is there

    async def page(
        self, caller: str, search: str = "", *, limit: int, after: PageCursor | None = None
    ) -> list[FoundConversation]:
        """Return conversations of one caller, the last active first, and before them the pinned ones.

        Those of a search are sorted by activity alone. A cursor tells by itself whether it is among the pinned ones, so
        pages fit together even if its conversation has been unpinned, has moved up or was deleted meanwhile.
        """
        if search.strip():
            return await self._search(caller, search, limit=limit, after=after)
        found: list[FoundConversation] = []
        if after is None or after.id.startswith(_AMONG_PINNED):
            after = after and PageCursor(at=after.at, id=after.id.removeprefix(_AMONG_PINNED))
            query = Query(states=(PINNED,), caller=caller, by_change=True)
            pinned = await self._store.find(CONVERSATION, query, limit=limit, after=after)
            found += [_to_found(record, _AMONG_PINNED) for record in pinned]
            after = None
        if len(found) < limit:
            query = Query(states=_UNPINNED, caller=caller, by_change=True)
            others = await self._store.find(CONVERSATION, query, limit=limit - len(found), after=after)
            found += map(_to_found, others)
        return found

    async def _search(
        self, caller: str, search: str, *, limit: int, after: PageCursor | None
    ) -> list[FoundConversation]:
        await self._ensure_text(caller)
        query = Query(states=_UNPINNED, caller=caller, text=search, by_change=True)
        texts = await self._store.find(TEXT, query, limit=limit, after=after)
        snippets = await asyncio.to_thread(
            lambda: [find_snippet(ConversationText.from_record(text), search) for text in texts]
        )
        records = await asyncio.gather(*(self._store.get(CONVERSATION, text.id) for text in texts))
        return [
            FoundConversation(
                Conversation.from_record(record),
                PageCursor(at=text.updated, id=text.id),
                snippet.text,
                snippet.message_id,
            )
            for text, record, snippet in zip(texts, records, snippets, strict=True)
            if record is not None and record.state in _ACTIVE
        ]

    async def _ensure_text(self, caller: str) -> None:
        """Make the text records of conversations that an older version stored: once, whoever searches first."""
        task = self._indexing.get(caller)
        if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
            task = self._indexing[caller] = asyncio.create_task(self._index_old(caller))
        await asyncio.shield(task)

    async def _index_old(self, caller: str) -> None:
        texts = await self._store.count(TEXT, Query(states=_UNPINNED, caller=caller))
        if texts == await self._store.count(CONVERSATION, Query(states=_ACTIVE, caller=caller)):
            return
        after: PageCursor | None = None
        while records := await self._store.find(
            CONVERSATION, Query(states=_ACTIVE, caller=caller), limit=_PAGE, after=after
        ):
            for record in records:
                await self._index_one(Conversation.from_record(record))
            after = PageCursor(at=records[-1].created, id=records[-1].id)

    async def _index_one(self, conversation: Conversation) -> None:
        stored = await self._store.get(TEXT, conversation.record_id)
        if stored is not None and stored.state == ConversationState.ACTIVE:
            return
        messages = await self._store.get(MESSAGES, conversation.record_id)
        if messages is not None:
            text = await asyncio.to_thread(
                lambda: extract_text(conversation.title, ConversationContent.from_record(messages).messages)
            )
            await self._store.commit([text.to_record(conversation, version=stored.version if stored else 0)])

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
        stored, content, text = [await self._store.get(kind, key) for kind in (CONVERSATION, MESSAGES, TEXT)]
        before = Conversation.from_record(stored) if stored else None
        is_there = before is not None and before.state is ConversationState.ACTIVE
        if (before.version if before and is_there else 0) != update.version:
            return None
        if not is_there:
            await self._require_room(caller)
        _require_size(update.content)
        is_active = (
            not (is_there and content) or ConversationContent.from_record(content).messages != update.content.messages
        )
        conversation = Conversation(
            id=id_, created=before.created if before and is_there else now,
            updated=before.updated if before and not is_active else now,
            version=before.version if before else 0, title=update.title, model=update.model,
            messages=len(update.content.messages), pinned=before is not None and before.pinned, leaf=update.leaf,
            record_id=key, caller=caller,
        )  # fmt: skip
        words = await asyncio.to_thread(lambda: extract_text(update.title, update.content.messages))
        records = [
            update.content.to_record(conversation, version=content.version if content else 0),
            words.to_record(conversation, version=text.version if text else 0),
        ]
        saved = await self._commit(conversation, records, now)
        crashpoint("conversation.kept")
        return saved

    async def change(
        self, caller: str, id_: str, *, title: str | None = None, pinned: bool | None = None, leaf: str | None = None
    ) -> Conversation | None:
        """Change what is given beside the messages, and return the conversation; None when there is none."""
        while before := await self._get_active(caller, id_):
            conversation = replace(
                before,
                title=before.title if title is None else title,
                pinned=before.pinned if pinned is None else pinned,
                leaf=before.leaf if leaf is None else leaf,
            )
            if conversation == before:
                return before
            text = await self._store.get(TEXT, before.record_id) if title is not None else None
            words = replace(ConversationText.from_record(text), title=conversation.title) if text else None
            records = [words.to_record(conversation, version=text.version)] if words and text else []
            if saved := await self._commit(conversation, records, self._clock.now().timestamp()):
                return saved
        return None

    async def _commit(self, conversation: Conversation, others: Sequence[Record], now: float) -> Conversation | None:
        version = conversation.version + 1
        data: JsonObject = {"id": conversation.id, "caller": conversation.caller, "version": version}
        event = NewEvent(type="conversation.changed", at=now, data=data)
        if not await self._store.commit([conversation.to_record(), *others], [event]):
            return None
        return replace(conversation, version=version)

    async def delete(self, caller: str, id_: str) -> bool:
        """Delete a conversation; False when there is none."""
        while conversation := await self._get_active(caller, id_):
            now = self._clock.now().timestamp()
            deleted = replace(conversation, state=ConversationState.DELETED, updated=now)
            stored = [await self._store.get(kind, conversation.record_id) for kind in (MESSAGES, TEXT)]
            empty = [
                replace(record, state=ConversationState.DELETED, updated=now, text="", body={})
                for record in stored
                if record is not None
            ]
            event = NewEvent(type="conversation.deleted", at=now, data={"id": id_, "caller": caller})
            if await self._store.commit([deleted.to_record(), *empty], [event]):
                return True
        return False

    async def _require_room(self, caller: str) -> None:
        if await self._store.count(CONVERSATION, Query(states=_ACTIVE, caller=caller)) >= MAX_PER_CALLER:
            raise Failure(
                ErrorCode.CONFLICT,
                Message("There are {max_per_caller} conversations already.", max_per_caller=MAX_PER_CALLER),
                hint=Message("Delete some of them first."),
            )

    async def _get_active(self, caller: str, id_: str) -> Conversation | None:
        record = await self._store.get(CONVERSATION, _record_id(caller, id_))
        return Conversation.from_record(record) if record and record.state in _ACTIVE else None


def _to_found(record: Record, section: str = "") -> FoundConversation:
    place = PageCursor(at=record.updated, id=f"{section}{record.id}")
    return FoundConversation(Conversation.from_record(record), place)


def _require_size(content: ConversationContent) -> None:
    if len(json_bytes(content.to_json())) > MAX_BYTES:
        raise Failure(
            ErrorCode.INVALID_PARAM,
            Message("A conversation has {limit} bytes at most.", limit=MAX_BYTES),
            hint=Message("Begin a new one."),
        )


def _record_id(caller: str, id_: str) -> str:
    """Return the record id: clients choose their own ids, and two callers may choose the same."""
    return f"conversation_{sha256(caller.encode()).hexdigest()[:16]}_{id_}"


class Snippet(NamedTuple):
    """The text around a hit, on one line; empty when only the title has it."""

    text: str = ""
    message_id: str = ""


def extract_text(title: str, messages: Sequence[JsonObject]) -> ConversationText:
    """Return the text of a conversation: of a very long one that of the newest messages."""
    texts, left = [], MAX_SEARCHED
    for message in reversed(messages):
        text = _read_text(message)[:left]
        left -= len(text) + 1
        if text:
            texts.append(MessageText(_read_id(message), text))
        if left <= 0:
            break
    return ConversationText(title=title[:_MAX_TITLE], messages=tuple(reversed(texts)))


def _read_id(message: JsonObject) -> str:
    id_ = message.get("id")
    return id_ if isinstance(id_, str) and len(id_) <= _MAX_ID else ""


def _read_text(message: JsonObject) -> str:
    pieces = message.get("pieces")
    spoken = [one.get("text") for one in _list_objects(pieces) if one.get("kind") == _SPOKEN]
    return "\n".join(text for text in map(_join_parts, (message.get("content"), message.get("text"), *spoken)) if text)


def _join_parts(content: Json) -> str:
    if isinstance(content, str):
        return content
    return " ".join(text for part in _list_objects(content) if isinstance(text := part.get("text"), str))


def _list_objects(value: Json) -> Iterable[JsonObject]:
    return (one for one in value if isinstance(one, dict)) if isinstance(value, list) else ()


def find_snippet(text: ConversationText, search: str) -> Snippet:
    """Return the best hit of a search: the newest message that has the phrase, else the one with most of its words."""
    phrase, prefixes = " ".join(search.lower().split()), list_prefixes(search)
    best, best_score, best_at = MessageText("", ""), 0, 0
    for message in reversed(text.messages):
        lowered = _lower(message.text)
        at = _find_word(lowered, phrase)
        places = [at] if at >= 0 else [place for prefix in prefixes if (place := _find_word(lowered, prefix)) >= 0]
        score = len(prefixes) + 1 if at >= 0 else len(places)
        if score > best_score:
            best, best_score, best_at = message, score, min(places)
        if at >= 0:
            break
    return Snippet(_cut_around(best.text, best_at), best.id) if best_score else Snippet()


def _find_word(text: str, prefix: str) -> int:
    """Return where a word of the text begins with ``prefix``; -1 when none does."""
    at = text.find(prefix)
    while at > 0 and prefix[0] < FIRST_UNSPACED and text[at - 1].isalnum() and text[at - 1] < FIRST_UNSPACED:
        at = text.find(prefix, at + 1)
    return at


def _lower(text: str) -> str:
    """Return the text in lower case with every character at its place."""
    lowered = text.lower()
    return (
        lowered if len(lowered) == len(text) else "".join(one if len(one.lower()) > 1 else one.lower() for one in text)
    )


def _cut_around(text: str, at: int) -> str:
    start = max(0, at - _BEFORE)
    if start:  # at a word, unless that is far away
        blank = text.find(" ", start, at)
        start = blank + 1 if blank >= 0 else start
    end = start + _SNIPPET
    cut = " ".join(text[start:end].split())
    return f"{'…' if start else ''}{cut}{'…' if end < len(text) else ''}"
