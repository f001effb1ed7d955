"""The sink of a streamed answer: the events of a turn as server-sent events, at most one for each."""

from toolyard.gateway.reply.chunks import Head
from toolyard.gateway.sinks.events import (
    Begun,
    CallUpdate,
    Delta,
    Failed,
    Finished,
    Gap,
    Note,
    ReplyEnded,
    ReplyParsed,
    SpecialActions,
    TurnEvent,
)
from toolyard.gateway.sse import DONE, END, event_of


def write_event(head: Head, event: TurnEvent) -> bytes:
    """Return the bytes of an event; none when a stream does not carry it. Chunks keep the bytes in which they came."""
    match event:
        case Delta(chunks):
            pieces = ((chunk.raw, END) if chunk.raw else (event_of(chunk.data),) for chunk in chunks)
            return b"".join([piece for pair in pieces for piece in pair])  # large events are copied once
        case Note(text):
            return event_of(head.chunk({"content": text}))
        case SpecialActions(actions):
            return event_of(head.chunk({}) | {"special_actions": [*actions]})
        case CallUpdate(data) | ReplyEnded(use=data) if data:
            return event_of(head.stamp({"choices": [], "toolyard": data}))
        case ReplyParsed(reply):
            return event_of(head.stamp({"choices": [], "toolyard": {"type": "reply", "reply": reply}}))
        case Gap(after, to):
            return event_of({"toolyard": {"type": "gap", "from": after, "to": to}, "choices": []})
        case Finished():
            return DONE
        case Failed(fault):
            return fault.to_event()
        case Begun() | CallUpdate() | ReplyEnded():
            return b""
