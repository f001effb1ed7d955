"""Conversations: chats that clients store. Each has a small record, one with its messages, and one with their text."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Final, NamedTuple

from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.records.client_json import INTERNAL, Doc, to_client_json
from toolyard.protocol.store import Record, read_integer, read_object, read_objects, read_text

CONVERSATION: Final = "conversation"  # the kind of its records,
MESSAGES: Final = "messages"  # of those with its messages,
TEXT: Final = "conversation_text"  # and of those that a search looks at, all under the same id
PINNED: Final = "pinned"  # the state of the record of an active conversation that is pinned
_SEPARATOR = "\n"


class ConversationState(StrEnum):
    ACTIVE = "active"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    id: Annotated[str, Doc("Chosen by the client.")]
    created: float
    updated: Annotated[float, Doc("When its messages last changed.")]
    version: int = 0
    state: ConversationState = ConversationState.ACTIVE
    title: str = ""
    model: str = ""
    messages: Annotated[int, Doc("How many there are, in all branches.")] = 0
    pinned: bool = False
    leaf: Annotated[str, Doc("The id of the last message of the branch in view; empty: the newest message.")] = ""
    record_id: Annotated[str, INTERNAL]
    caller: Annotated[str, INTERNAL]

    @classmethod
    def from_record(cls, record: Record) -> "Conversation":
        body, is_pinned = record.body, record.state == PINNED
        return cls(
            id=record.key, created=record.created, updated=record.updated, version=record.version,
            state=ConversationState.ACTIVE if is_pinned else ConversationState(record.state),
            title=read_text(body, "title"), model=read_text(body, "model"), messages=read_integer(body, "messages"),
            pinned=is_pinned, leaf=read_text(body, "leaf"), record_id=record.id, caller=record.caller,
        )  # fmt: skip

    def to_record(self) -> Record:
        """Return the record; of a deleted conversation nothing is left but that it was there."""
        is_deleted = self.state is ConversationState.DELETED
        body: JsonObject = {"title": self.title, "model": self.model, "messages": self.messages, "leaf": self.leaf}
        return Record(
            kind=CONVERSATION, id=self.record_id, state=PINNED if self.pinned and not is_deleted else self.state,
            version=self.version, created=self.created, updated=self.updated, caller=self.caller, key=self.id,
            body={} if is_deleted else body,
        )  # fmt: skip

    def to_json(self) -> JsonObject:
        return to_client_json(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationContent:
    """The messages and settings of a conversation, stored as its client sends them."""

    messages: tuple[JsonObject, ...] = ()
    settings: JsonObject = field(default_factory=dict)

    @classmethod
    def from_record(cls, record: Record) -> "ConversationContent":
        return cls(messages=read_objects(record.body, "messages"), settings=read_object(record.body, "settings"))

    def to_record(self, conversation: Conversation, *, version: int) -> Record:
        """Return the record beside that of its conversation; of a deleted one the content is gone."""
        is_deleted = conversation.state is ConversationState.DELETED
        return Record(
            kind=MESSAGES, id=conversation.record_id, state=conversation.state, version=version,
            created=conversation.created, updated=conversation.updated, caller=conversation.caller,
            key=conversation.id, body={} if is_deleted else self.to_json(),
        )  # fmt: skip

    def to_json(self) -> JsonObject:
        return to_client_json(self)


class MessageText(NamedTuple):
    """The text of one message; its id is empty where the client gave it none."""

    id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationText:
    """The title and the text of the messages, in all branches: what a search looks at."""

    title: str = ""
    messages: tuple[MessageText, ...] = ()

    @classmethod
    def from_record(cls, record: Record) -> "ConversationText":
        lengths, start, parts = record.body.get("parts"), 0, []
        for part in lengths if isinstance(lengths, list) else []:
            id_, length = _read_part(part)
            parts.append(MessageText(id_, record.text[start : start + length]))
            start += length + len(_SEPARATOR)
        return cls(title=parts[0].text if parts else "", messages=tuple(parts[1:]))

    def to_record(self, conversation: Conversation, *, version: int) -> Record:
        """Return the record beside that of its conversation; of a deleted one the text is gone."""
        is_deleted = conversation.state is ConversationState.DELETED
        parts = (MessageText("", self.title), *self.messages)
        lengths: list[Json] = [[part.id, len(part.text)] for part in parts]
        return Record(
            kind=TEXT, id=conversation.record_id, state=conversation.state, version=version,
            created=conversation.created, updated=conversation.updated, caller=conversation.caller,
            key=conversation.id, text="" if is_deleted else _SEPARATOR.join(part.text for part in parts),
            body={} if is_deleted else {"parts": lengths},
        )  # fmt: skip


def _read_part(part: Json) -> tuple[str, int]:
    match part:
        case [str(id_), int(length)]:
            return id_, length
        case _:
            return "", 0
