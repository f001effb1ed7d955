"""Audit entries: who allowed or changed what, when and from where."""

from dataclasses import dataclass, field
from typing import Annotated, Final

from toolyard.protocol.json import JsonObject
from toolyard.protocol.records.client_json import Doc, to_client_json
from toolyard.protocol.store import PageCursor, Record, read_object, read_text

AUDIT: Final = "audit"  # the kind of its records
KEPT: Final = "kept"  # their state
RUN: Final = "call.run"  # the action of an entry that is made from the journal


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Somebody who does something, and from where."""

    name: str  # a caller, such as key:owner
    way: str = ""  # key, session, cli, mcp or auto
    address: str = ""

    @classmethod
    def from_name(cls, by: "Actor | str") -> "Actor":
        """Return an actor; a bare name is one of whom nothing else is known."""
        return cls(name=by) if isinstance(by, str) else by


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    id: str
    at: float
    action: Annotated[str, Doc("Such as approval.allowed, plugin.allowed or key.created; call.run is a run.")]
    by: Annotated[str, Doc("The caller, such as key:owner or cli.")]
    way: Annotated[str, Doc("How it came in: key, session, cli, mcp, auto, or the origin of a run.")] = ""
    address: Annotated[str, Doc("The address of the client; empty on this machine's command line.")] = ""
    tool: str = ""
    plugin: str = ""
    target: Annotated[str, Doc("The id or name of what it is about.")] = ""
    detail: JsonObject = field(default_factory=dict)

    @property
    def place(self) -> PageCursor:
        return PageCursor(at=self.at, id=self.id)

    @classmethod
    def from_record(cls, record: Record) -> "AuditEntry":
        body = record.body
        return cls(
            id=record.id, at=record.created, action=read_text(body, "action"), by=record.caller,
            way=read_text(body, "way"), address=read_text(body, "address"), tool=record.tool, plugin=record.key,
            target=read_text(body, "target"), detail=read_object(body, "detail"),
        )  # fmt: skip

    def to_record(self) -> Record:
        body: JsonObject = {
            "action": self.action, "way": self.way, "address": self.address, "target": self.target,
            "detail": self.detail,
        }  # fmt: skip
        return Record(
            kind=AUDIT, id=self.id, state=KEPT, created=self.at, updated=self.at, caller=self.by, tool=self.tool,
            key=self.plugin, body=body,
        )  # fmt: skip

    def to_json(self) -> JsonObject:
        return to_client_json(self)
