"""Assistants: named sets of chat options that a caller keeps, to start a chat with one press."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final

from toolyard.protocol.json import JsonObject
from toolyard.protocol.records.client_json import INTERNAL, Doc, to_client_json
from toolyard.protocol.store import NewEvent, Record, read_optional_number, read_optional_text, read_text, read_texts

ASSISTANT: Final = "assistant"  # the kind of its records
MAX_TOKENS: Final = 10_000_000
MAX_TEMPERATURE: Final = 2.0


class AssistantState(StrEnum):
    ACTIVE = "active"
    DELETED = "deleted"


class ReasoningEffort(StrEnum):
    """The values of OpenAI's ``reasoning_effort``."""

    NONE = "none"
    MINIMAL = "minimal"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    XHIGH = "xhigh"


class Mode(StrEnum):
    ASK = "ask"  # as the owner's settings say
    AUTO_SAFE = "auto-safe"  # changes of our own file tools that can be undone run without asking
    READ_ONLY = "read-only"  # what would change anything is refused


class ReplyForm(StrEnum):
    TEXT = "text"
    JSON = "json"  # structured: think, content and attachments, see ``protocol.reply``


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantOptions:
    """The options of a chat as a caller names and keeps them."""

    name: str
    instructions: Annotated[str, Doc("The system prompt.")] = ""
    model: Annotated[str, Doc("Empty: the one that was used last.")] = ""
    tools: Annotated[tuple[str, ...] | None, Doc("The tools that may run; null: all.")] = None
    mode: Annotated[Mode, Doc("What the tools of the chat may do without asking.")] = Mode.ASK
    temperature: Annotated[float | None, Doc("Null: the provider's default.")] = None
    max_tokens: Annotated[int | None, Doc("The longest reply; null: the provider's default.")] = None
    reasoning_effort: Annotated[ReasoningEffort | None, Doc("Null: the provider's default.")] = None
    reply: Annotated[ReplyForm, Doc("The form of its replies; json: structured.")] = ReplyForm.TEXT


@dataclass(frozen=True, slots=True, kw_only=True)
class Assistant(AssistantOptions):
    id: str
    created: float
    updated: float
    state: Annotated[AssistantState, INTERNAL] = AssistantState.ACTIVE
    version: Annotated[int, INTERNAL] = 0
    caller: Annotated[str, INTERNAL]

    @classmethod
    def from_record(cls, record: Record) -> "Assistant":
        body = record.body
        tokens, effort = read_optional_number(body, "max_tokens"), read_optional_text(body, "reasoning_effort")
        return cls(
            id=record.id, created=record.created, updated=record.updated, state=AssistantState(record.state),
            version=record.version, caller=record.caller, name=record.key, instructions=read_text(body, "instructions"),
            model=read_text(body, "model"), tools=read_texts(body, "tools") if "tools" in body else None,
            mode=Mode(read_text(body, "mode") or Mode.ASK), temperature=read_optional_number(body, "temperature"),
            max_tokens=None if tokens is None else int(tokens),
            reasoning_effort=None if effort is None else ReasoningEffort(effort),
            reply=ReplyForm(read_text(body, "reply") or ReplyForm.TEXT),
        )  # fmt: skip

    def to_record(self) -> Record:
        """Return the record; of a deleted assistant nothing is left but that it was there."""
        is_deleted = self.state is AssistantState.DELETED
        own: JsonObject = {
            "instructions": self.instructions,
            "model": self.model,
            "tools": None if self.tools is None else list(self.tools),
            "mode": self.mode.value,
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "reasoning_effort": self.reasoning_effort.value if self.reasoning_effort else None,
            "reply": self.reply.value,
        }
        return Record(
            kind=ASSISTANT, id=self.id, state=self.state, version=self.version, created=self.created,
            updated=self.updated, caller=self.caller, key="" if is_deleted else self.name,
            body={} if is_deleted else {name: value for name, value in own.items() if value is not None},
        )  # fmt: skip

    def to_json(self) -> JsonObject:
        return to_client_json(self)

    def to_event(self) -> NewEvent:
        """Return the event that announces a change; it names none of the content: other callers receive it too."""
        kind = "deleted" if self.state is AssistantState.DELETED else "changed"
        return NewEvent(type=f"assistant.{kind}", at=self.updated, data={"id": self.id, "caller": self.caller})
