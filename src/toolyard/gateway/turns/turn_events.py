"""The events of a turn, in the order in which its log keeps them. See ``turn_log``.

They say what happened, in the words of no protocol. What a client gets of each is decided by ``rendering``.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from toolyard.gateway.chat_ports import PendingApproval
from toolyard.gateway.faults import ChatFault
from toolyard.gateway.providers.answer import ProviderWait
from toolyard.gateway.reply.chunks import Chunk
from toolyard.gateway.reply.model_reply import UnstreamedReply
from toolyard.protocol.json import JsonObject


@dataclass(frozen=True, slots=True)
class RoundBegun:
    """The model has been asked, and answers."""

    round: int


@dataclass(frozen=True, slots=True)
class Delta:
    """The next chunks of a streamed reply that the client may see: text, reasoning, calls of its own tools."""

    chunks: list[Chunk]


@dataclass(frozen=True, slots=True)
class ReplyEnded:
    """A reply of the model that came in one piece; tool work or the end of the turn follows."""

    reply: UnstreamedReply


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens of a round, and what the offer of tools took of them."""

    usage: JsonObject  # as the provider counts
    tools: int
    tokens: int


@dataclass(frozen=True, slots=True)
class CallBegun:
    """A tool call runs; ``data`` is what clients that draw it get."""

    data: JsonObject


@dataclass(frozen=True, slots=True)
class CallEnded:
    data: JsonObject
    output: str = ""  # that its model reads; media are left out


@dataclass(frozen=True, slots=True)
class ApprovalAsked:
    """A call runs only once a person allows it."""

    approval: PendingApproval


@dataclass(frozen=True, slots=True)
class ApprovalAnswered:
    """A call no longer waits: it was allowed, denied or cancelled."""

    call_id: str


@dataclass(frozen=True, slots=True)
class ProviderRetried:
    """The provider gave no answer; it is asked once more, or another one is."""

    wait: ProviderWait
    at: float


@dataclass(frozen=True, slots=True)
class Note:
    """A text of the host's own in the answer, such as a line about a call."""

    text: str


@dataclass(frozen=True, slots=True)
class SpecialActions:
    """The special actions that the tools of a round ask the client for."""

    actions: list[JsonObject]


@dataclass(frozen=True, slots=True)
class ReplyParsed:
    """The structured reply of a turn, for a client that asked for one; it comes before the end of the turn."""

    reply: JsonObject  # as ``toolyard reply parse`` prints it, without the text
    text: str | None = None  # of the answer, where it was repaired


class Ending(StrEnum):
    """The end of a turn that did not fail."""

    DONE = "done"
    ROUND_LIMIT = "round_limit"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a turn that did not fail; ``reply`` is the last in one piece, ``chunks`` what a stream gets."""

    ending: Ending
    reply: UnstreamedReply | None = None
    chunks: list[Chunk] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Failed:
    fault: ChatFault


@dataclass(frozen=True, slots=True)
class Gap:
    """Events that a reader asked for and that are no longer kept, from one cursor to another; no log has it."""

    after: int
    to: int


End = Ended | Failed
TurnEvent = (
    RoundBegun
    | Delta
    | ReplyEnded
    | Usage
    | CallBegun
    | CallEnded
    | ApprovalAsked
    | ApprovalAnswered
    | ProviderRetried
    | Note
    | SpecialActions
    | ReplyParsed
    | Ended
    | Failed
    | Gap
)
