"""Rules: stored answers that allow or deny calls of a tool without asking."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final

from toolyard.protocol.approval import Effect
from toolyard.protocol.client_json import INTERNAL, Doc, to_client_json
from toolyard.protocol.json import JsonObject
from toolyard.protocol.record_body import read_integer, read_optional_number, read_optional_text, read_text
from toolyard.protocol.store import NewEvent, Record

RULE: Final = "rule"  # the kind of its records


class RuleState(StrEnum):
    ACTIVE = "active"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleTarget:
    """The calls that a rule is about, and its effect."""

    tool: str
    command: str
    effect: Effect


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    id: str
    tool: str
    command: Annotated[str, Doc("Only this command of the tool; empty: all.")] = ""
    created: float
    chat: Annotated[str | None, Doc("Only for this chat, until the server restarts.")] = None
    plugin: Annotated[
        str | None, Doc("The plugin that it is about: it does not hold for another of the same name.")
    ] = None
    effect: Effect
    by: str
    hits: Annotated[int, Doc("How often it decided.")] = 0
    last_used: float | None = None
    state: Annotated[RuleState, INTERNAL] = RuleState.ACTIVE
    version: Annotated[int, INTERNAL] = 0
    updated: Annotated[float, INTERNAL]
    caller: Annotated[str, INTERNAL] = ""  # of a rule for a chat

    @classmethod
    def from_record(cls, record: Record) -> "Rule":
        body = record.body
        return cls(
            id=record.id, tool=record.tool, command=record.key, created=record.created, updated=record.updated,
            state=RuleState(record.state), version=record.version, caller=record.caller,
            chat=read_optional_text(body, "chat"), plugin=read_optional_text(body, "plugin"),
            effect=Effect(read_text(body, "effect")), by=read_text(body, "by"), hits=read_integer(body, "hits"),
            last_used=read_optional_number(body, "last_used"),
        )  # fmt: skip

    def to_record(self) -> Record:
        body: JsonObject = {"effect": self.effect.value, "by": self.by}
        if self.chat is not None:
            body["chat"] = self.chat
        if self.plugin is not None:
            body["plugin"] = self.plugin
        if self.hits:
            body |= {"hits": self.hits, "last_used": self.last_used}
        return Record(
            kind=RULE, id=self.id, state=self.state, version=self.version, created=self.created, updated=self.updated,
            tool=self.tool, key=self.command, caller=self.caller, body=body,
        )  # fmt: skip

    def to_json(self) -> JsonObject:
        return to_client_json(self)

    def to_event(self) -> NewEvent:
        """Return the event that announces a new rule."""
        data: JsonObject = {"id": self.id, "tool": self.tool, "command": self.command, "effect": self.effect.value}
        return NewEvent(type="approval.rule", at=self.created, data=data)
