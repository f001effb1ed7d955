"""A structured reply as a value. ``to_dict`` is its client JSON; the names in the enums are part of it.

Reply and Attachment are tuples, which are made twice as fast as dataclasses: most replies are read in microseconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from toolyard.protocol.json import Json, JsonObject, json_bytes

MAX_BYTES = 2 * 1024 * 1024
MAX_ATTACHMENTS = 64
MAX_ATTACHMENT_BYTES = 1024 * 1024


class AttachmentType(StrEnum):
    MERMAID = "mermaid"
    CODE = "code"
    LATEX = "latex"
    IMAGE = "image"
    TABLE = "table"
    CHART = "chart"
    AUDIO = "audio"
    VIDEO = "video"


TYPES = frozenset(map(str, AttachmentType))


class Repair(StrEnum):
    """A repair that was made. The reply is the most likely intended one."""

    FENCE = "fence"
    TEXT_AROUND = "text_around"
    THINK_TAGS = "think_tags"
    DOUBLE_ENCODED = "double_encoded"
    HTML_ENTITIES = "html_entities"
    SEVERAL_OBJECTS = "several_objects"
    MISSING_BRACE = "missing_brace"
    MISMATCHED_BRACKET = "mismatched_bracket"
    COMMENTS = "comments"
    TRAILING_COMMA = "trailing_comma"
    MISSING_COMMA = "missing_comma"
    EXTRA_COMMA = "extra_comma"
    MISSING_COLON = "missing_colon"
    FULL_WIDTH = "full_width"
    QUOTES = "quotes"
    INNER_QUOTES = "inner_quotes"
    MISSING_QUOTE = "missing_quote"
    UNQUOTED = "unquoted"
    LITERALS = "literals"
    RAW_CONTROL = "raw_control"
    ESCAPES = "escapes"
    LATEX = "latex"
    SURROGATES = "surrogates"
    CONCATENATION = "concatenation"
    STRAY_TEXT = "stray_text"
    TRUNCATED = "truncated"


class ProblemCode(StrEnum):
    """A fault of a reply that could be read all the same."""

    MISSING_ATTACHMENT = "MISSING_ATTACHMENT"
    MISMATCHED_TYPE = "MISMATCHED_TYPE"
    UNUSED_ATTACHMENT = "UNUSED_ATTACHMENT"
    UNKNOWN_TYPE = "UNKNOWN_TYPE"
    DUPLICATE_KEY = "DUPLICATE_KEY"
    WRONG_TYPE = "WRONG_TYPE"
    INVALID_ATTACHMENT = "INVALID_ATTACHMENT"
    MISSING_LANGUAGE = "MISSING_LANGUAGE"
    TOO_LARGE = "TOO_LARGE"
    TOO_MANY = "TOO_MANY"


@dataclass(frozen=True, slots=True)
class Problem:
    code: ProblemCode
    message: str
    id: str | None = None  # of the attachment it is about

    def to_dict(self) -> JsonObject:
        named: JsonObject = {} if self.id is None else {"id": self.id}
        return {"code": self.code.value, "message": self.message, **named}


class Attachment(NamedTuple):
    """``type`` is in lower case and may be one we do not know; ``content`` is data only for tables and charts."""

    id: str
    type: str
    content: Json
    language: str | None = None
    title: str | None = None

    @property
    def kind(self) -> AttachmentType | None:
        return AttachmentType(self.type) if self.type in TYPES else None

    def to_dict(self) -> JsonObject:
        named = {"language": self.language, "title": self.title}
        return {"type": self.type, "content": self.content, **{k: v for k, v in named.items() if v is not None}}


_NO_ATTACHMENTS: Mapping[str, Attachment] = MappingProxyType({})


class Reply(NamedTuple):
    content: str
    think: str | None = None
    attachments: Mapping[str, Attachment] = _NO_ATTACHMENTS
    problems: tuple[Problem, ...] = ()
    repairs: tuple[Repair, ...] = ()

    @property
    def ok(self) -> bool:
        return True

    @property
    def is_truncated(self) -> bool:
        return Repair.TRUNCATED in self.repairs

    def to_text(self) -> str:
        """Return the reply as a model should have written it."""
        attachments: JsonObject = {id_: attachment.to_dict() for id_, attachment in self.attachments.items()}
        fields: JsonObject = {"think": self.think, "content": self.content, "attachments": attachments}
        return json_bytes({key: value for key, value in fields.items() if value}).decode()

    def to_dict(self) -> JsonObject:
        return {
            "ok": True,
            "think": self.think,
            "content": self.content,
            "attachments": {id_: attachment.to_dict() for id_, attachment in self.attachments.items()},
            "problems": [problem.to_dict() for problem in self.problems],
            "repairs": [repair.value for repair in self.repairs],
        }


class Fault(StrEnum):
    """The reason why a text is no reply at all; ``ReplyError.message`` says it in English."""

    TOO_LARGE = "too_large"
    TOO_DEEP = "too_deep"
    SYNTAX = "syntax"
    NO_OBJECT = "no_object"
    NO_CONTENT = "no_content"
    CONTENT_NO_TEXT = "content_no_text"
    CONTENT_EMPTY = "content_empty"


@dataclass(frozen=True, slots=True)
class ReplyError:
    """The reason and the place. ``line`` and ``column`` count from 1, in code points."""

    message: str
    line: int
    column: int
    raw: str
    fault: Fault | None = field(default=None, compare=False)  # for translations of the message

    @property
    def ok(self) -> bool:
        return False

    @classmethod
    def at(cls, raw: str, position: int, message: str, fault: Fault) -> "ReplyError":
        before = raw.rfind("\n", 0, position)
        return cls(message, raw.count("\n", 0, position) + 1, position - before, raw, fault)

    def to_dict(self) -> JsonObject:
        error: JsonObject = {"message": self.message, "line": self.line, "column": self.column}
        return {"ok": False, "error": error, "raw": self.raw}
