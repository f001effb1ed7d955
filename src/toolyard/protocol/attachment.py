"""Attachments: files that a person gives a model with a message, as text or as an image.

A client sends the text of one inside ``OPENING`` and ``CLOSING`` in front of the words of the message, so that both the
model and the server know what is a file: a tool request in it never runs, even if the model repeats it.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final

from toolyard.protocol.client_json import Doc, to_client_json
from toolyard.protocol.json import JsonObject

OPENING: Final = "<attached_file "
CLOSING: Final = "</attached_file>"


class AttachmentKind(StrEnum):
    TEXT = "text"
    PDF = "pdf"
    IMAGE = "image"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    name: Annotated[str, Doc("The name of the file; of a project file its path.")]
    kind: AttachmentKind
    size: Annotated[int, Doc("The bytes of the complete file.")]
    text: Annotated[str, Doc("The beginning of its text; empty for an image.")] = ""
    truncated: Annotated[bool, Doc("Whether the file has more text.")] = False
    pages: Annotated[int | None, Doc("The pages of a PDF.")] = None
    image: Annotated[str, Doc("An image as a data URI; else empty.")] = ""

    def to_json(self) -> JsonObject:
        return to_client_json(self)


def find_attached_text(content: str) -> str:
    """Return the files in the text of a message, from the first opening to the last closing; empty without any.

    A file may contain a closing of its own, so nothing between the two counts as the words of a person.
    """
    start, end = content.find(OPENING), content.rfind(CLOSING)
    return content[start:end] if 0 <= start < end else ""
