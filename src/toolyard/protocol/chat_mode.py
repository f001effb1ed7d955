"""The mode of a chat, what its calls may do without approval, and the form of its replies."""

from enum import StrEnum


class Mode(StrEnum):
    ASK = "ask"  # as the owner's settings say
    AUTO_SAFE = "auto-safe"  # changes of our own file tools that can be undone run without asking
    READ_ONLY = "read-only"  # what would change anything is refused


class ReplyForm(StrEnum):
    TEXT = "text"
    JSON = "json"  # structured: think, content and attachments, see ``protocol.reply``
