"""The events of a chat turn, in order, independent of the form of the answer.

The log of the turn keeps them (``gateway.turn_log``); a sink renders them: ``write_event`` as server-sent events,
``JsonAnswer`` as one JSON object.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from toolyard.gateway.faults import ChatFault
from toolyard.gateway.reply.chunks import Chunk
from toolyard.gateway.reply.reply import Reply
from toolyard.protocol.json import JsonObject


@dataclass(frozen=True, slots=True)
class Begun:
    """The model has been asked, and answers."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Events that a reader asked for and that are no longer kept, from one cursor to another."""

    after: int
    to: int


class Ending(StrEnum):
    """The end of a turn that did not fail."""

    DONE = "done"
    ROUND_LIMIT = "round_limit"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Delta:
    """The next chunks of a streamed reply that the client may see."""

    chunks: list[Chunk]


@dataclass(frozen=True, slots=True)
class ReplyEnded:
    """A reply of the model is complete; tool work or the end of the turn follows."""

    reply: Reply
    use: JsonObject = field(default_factory=dict)  # of tokens, for clients that draw it


@dataclass(frozen=True, slots=True)
class Note:
    """A text of the host's own in the answer, such as a line about a call."""

    text: str


@dataclass(frozen=True, slots=True)
class SpecialActions:
    """The special actions that the tools of a round ask the client for."""

    actions: list[JsonObject]


@dataclass(frozen=True, slots=True)
class CallUpdate:
    """The progress of a tool call or a wait for the provider, for clients that draw it."""

    data: JsonObject


@dataclass(frozen=True, slots=True)
class ReplyParsed:
    """The structured reply of a turn, for a client that asked for one; it comes before the end of the turn."""

    reply: JsonObject  # as ``toolyard reply parse`` prints it, without the text
    text: str | None = None  # of the answer, where it was repaired


@dataclass(frozen=True, slots=True)
class Finished:
    """The end of a turn; ``reply`` is the last one, if there was any, ``chunks`` those that a stream still gets."""

    ending: Ending
    reply: Reply | None = None
    chunks: list[Chunk] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Failed:
    """The end of a turn that failed."""

    fault: ChatFault


TurnEvent = Begun | Delta | ReplyEnded | Note | SpecialActions | CallUpdate | ReplyParsed | Finished | Failed | Gap
