"""Extras: data that travel beside an envelope and are written only by dialects."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolyard.protocol.json import Json, JsonObject

if TYPE_CHECKING:
    from toolyard.protocol.content import Blob, Media, Part


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
