"""Approvals: questions to a person whether a call may run, and their answers; and rules, the answers that are kept."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final

from toolyard.message import Message, to_fields
from toolyard.protocol.access import ApprovalState, DecisionReason, Effect
from toolyard.protocol.json import Json, JsonObject, json_bytes
from toolyard.protocol.records.client_json import INTERNAL, Doc, to_client_json
from toolyard.protocol.store import (
    NewEvent,
    Record,
    read_integer,
    read_message,
    read_objects,
    read_optional_number,
    read_optional_text,
    read_text,
    read_texts,
)

APPROVAL: Final = "approval"  # the kinds of their records


RULE: Final = "rule"
_SUMMARY = 300  # characters of the arguments that a list shows


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenText:
    """A masked text in the arguments of an approval."""

    at: Annotated[str, Doc("The JSON pointer of the text that is masked, or has masks in it.")]
    characters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleTarget:
    """The calls that a rule is about, and its effect."""

    tool: str
    command: str
    effect: Effect


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    id: str
    tool: str
    state: ApprovalState
    caller: str
    created: float
    updated: float
    expires: float | None = None
    chat: str | None = None
    because: DecisionReason | None = None
    answered: float | None = None
    hidden: Annotated[tuple[HiddenText, ...], Doc("The masked texts of the arguments.")] = ()
    call_id: str
    commands: tuple[str, ...] = ()
    risk: str = ""
    origin: str = ""
    arguments: Json = None
    maid: str | None = None
    protected: Annotated[bool, Doc("It writes to a protected path.")] = False
    always_offered: Annotated[bool, Doc("One rule can express it.")] = False
    digest: Annotated[str, Doc("Of exactly the call that is approved.")] = ""
    plugin: str = ""
    reason: Annotated[str, Doc("Why it asks.")] = ""
    answered_by: str | None = None
    note: Annotated[Message | str, Doc("The reason that was given with the answer.")] = ""
    version: Annotated[int, INTERNAL] = 0
    owner: Annotated[str, INTERNAL] = ""  # the host whose call waits
    search_text: Annotated[str, INTERNAL] = ""

    @property
    def rule(self) -> Annotated[RuleTarget | None, Doc("The rule that `always` would make.")]:
        if not self.always_offered:
            return None
        return RuleTarget(tool=self.tool, command=self.commands[0] if self.commands else "", effect=Effect.ALLOW)

    @classmethod
    def from_record(cls, record: Record) -> "Approval":
        body = record.body
        because = read_text(body, "because")
        return cls(
            id=record.id, tool=record.tool, state=ApprovalState(record.state), caller=record.caller,
            created=record.created, updated=record.updated, expires=record.due, version=record.version,
            owner=record.owner, search_text=record.text, digest=record.key,
            chat=read_optional_text(body, "chat"), because=DecisionReason(because) if because else None,
            answered=read_optional_number(body, "answered"),
            hidden=tuple(
                HiddenText(at=read_text(one, "at"), characters=int(read_optional_number(one, "characters") or 0))
                for one in read_objects(body, "hidden")
            ),
            call_id=read_text(body, "call_id"), commands=read_texts(body, "commands"), risk=read_text(body, "risk"),
            origin=read_text(body, "origin"), arguments=body.get("arguments"), maid=read_optional_text(body, "maid"),
            protected=body.get("protected") is True, always_offered=body.get("always_offered") is True,
            plugin=read_text(body, "plugin"), reason=read_text(body, "why"),
            answered_by=read_optional_text(body, "by"), note=read_message(body, "reason"),
        )  # fmt: skip

    def to_record(self) -> Record:
        return Record(
            kind=APPROVAL, id=self.id, state=self.state, version=self.version, created=self.created,
            updated=self.updated, caller=self.caller, tool=self.tool, key=self.digest, owner=self.owner,
            due=self.expires, text=self.search_text, body=self._to_body(),
        )  # fmt: skip

    def to_json(self) -> JsonObject:
        return to_client_json(self)

    def to_list_json(self) -> JsonObject:
        """Return client JSON for a list: of large arguments only their beginning and their size in bytes."""
        row = self.to_json()
        arguments = json_bytes(row.pop("arguments"))
        summary = arguments[: 4 * _SUMMARY].decode(errors="ignore")[:_SUMMARY]
        return {**row, "summary": summary, "arguments_bytes": len(arguments)}

    def to_event(self) -> NewEvent:
        """Return the event that announces the question."""
        data: JsonObject = {"id": self.id, "tool": self.tool, "call_id": self.call_id, "expires": self.expires}
        return NewEvent(type="approval.requested", at=self.created, data=data | self._to_body())

    def _to_body(self) -> JsonObject:
        body: JsonObject = {
            "call_id": self.call_id, "commands": [*self.commands], "risk": self.risk, "origin": self.origin,
            "arguments": self.arguments, "hidden": [to_client_json(one) for one in self.hidden], "maid": self.maid,
            "protected": self.protected, "chat": self.chat, "because": self.because.value if self.because else None,
            "why": self.reason, "always_offered": self.always_offered, "digest": self.digest, "plugin": self.plugin,
        }  # fmt: skip
        if self.answered is not None:
            body |= {"by": self.answered_by, **to_fields("reason", self.note), "answered": self.answered}
        return body


class RuleState(StrEnum):
    ACTIVE = "active"
    REVOKED = "revoked"


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
