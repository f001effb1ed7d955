"""Extras: data that travel beside an envelope and are written only by dialects."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from toolyard.protocol.json import Json, JsonObject, json_bytes

if TYPE_CHECKING:
    from toolyard.protocol.content import Blob, Media, Part

MAX_PAYLOAD: Final = 64 * 1024  # bytes of the payload of a special action in events and records
_MAX_NAME = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Extras:
    parts: "tuple[Part, ...]" = ()
    note: str = ""  # follows the parts: the reason why the result is partial, and the next step
    content_key: str = ""  # the key of ``data`` under which the host describes the parts
    attached: "tuple[Media | Blob, ...]" = ()  # media from elsewhere in ``data``, replaced there by references
    details: JsonObject | None = None  # those of a VCP v2 answer, written unchanged
    mcp: JsonObject | None = None  # of an MCP server: its ``structured_content``, if it has one, written unchanged
    action: str | None = None  # ``_specialAction`` of the VCP dialect
    payload: Json = None
    before: str | None = None  # the file's text before a write
    after: str | None = None
    reads: bool | None = None  # in a batch: its content is the answer; None: decided by the tool's risk

    def describe_action(self) -> JsonObject:
        """Return the special action as every client reads it (000 §1.2): ``_specialAction`` and ``payload``, if any."""
        action: JsonObject = {} if self.action is None else {"_specialAction": self.action}
        return action if self.payload is None else {**action, "payload": self.payload}

    def summarize_action(self) -> JsonObject:
        """Return the same for what is stored and pushed: a large payload is left out, and only the answer has it."""
        if self.action is None:
            return {}
        action = {**self.describe_action(), "_specialAction": self.action[:_MAX_NAME]}
        if self.payload is not None and len(json_bytes(self.payload)) > MAX_PAYLOAD:
            action |= {"payload": None, "payload_left_out": True}
        return action
