"""Conversations: chats that clients store, a small record of each and another with its messages."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Final

from toolyard.protocol.client_json import INTERNAL, Doc, to_client_json
from toolyard.protocol.json import JsonObject
from toolyard.protocol.record_body import read_integer, read_object, read_objects, read_text
from toolyard.protocol.store import Record

CONVERSATION: Final = "conversation"  # the kind of its records,
MESSAGES: Final = "messages"  # and of those with its messages, under the same id


class ConversationState(StrEnum):
    ACTIVE = "active"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    id: Annotated[str, Doc("Chosen by the client.")]
    created: float
    updated: float
    version: int = 0
    state: ConversationState = ConversationState.ACTIVE
    title: str = ""
    model: str = ""
    messages: Annotated[int, Doc("How many there are.")] = 0
    record_id: Annotated[str, INTERNAL]
    caller: Annotated[str, INTERNAL]
    search_text: Annotated[str, INTERNAL] = ""

    @classmethod
    def from_record(cls, record: Record) -> "Conversation":
        body = record.body
        return cls(
            id=record.key, created=record.created, updated=record.updated, version=record.version,
            state=ConversationState(record.state), title=read_text(body, "title"), model=read_text(body, "model"),
            messages=read_integer(body, "messages"), record_id=record.id, caller=record.caller, search_text=record.text,
        )  # fmt: skip

    def to_record(self) -> Record:
        """Return the record; of a deleted conversation nothing is left but that it was there."""
        is_deleted = self.state is ConversationState.DELETED
        body: JsonObject = {"title": self.title, "model": self.model, "messages": self.messages}
        return Record(
            kind=CONVERSATION, id=self.record_id, state=self.state, version=self.version, created=self.created,
            updated=self.updated, caller=self.caller, key=self.id, text="" if is_deleted else self.search_text,
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
