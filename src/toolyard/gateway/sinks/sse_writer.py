"""The sink of a streamed answer: the events of a turn as server-sent events."""

from toolyard.gateway.reply.chunks import Chunk, Head
from toolyard.gateway.reply.streamed_reply import StreamedReply
from toolyard.gateway.sinks.events import (
    CallUpdate,
    Delta,
    Ending,
    Failed,
    Finished,
    Note,
    ReplyEnded,
    ReplyParsed,
    TurnEvent,
)
from toolyard.gateway.sse import DONE, END, event_of
from toolyard.protocol.json import JsonObject


class SseWriter:
    """Writes the events of one turn; unchanged chunks keep the bytes in which they came."""

    def __init__(self, head: Head) -> None:
        self._head = head

    def write(self, event: TurnEvent) -> bytes:
        """Return the bytes of an event; none when a stream does not carry it."""
        match event:
            case Delta(chunks):
                return _join(chunks)
            case Note(text):
                return event_of(self._head.chunk({"content": text}))
            case CallUpdate(data) | ReplyEnded(use=data) if data:
                return event_of(self._head.stamp({"choices": [], "toolyard": data}))
            case ReplyParsed(reply):
                return event_of(self._head.stamp({"choices": [], "toolyard": {"type": "reply", "reply": reply}}))
            case Finished():
                return self._finish(event) + DONE
            case Failed(fault):
                return fault.to_event()
            case CallUpdate() | ReplyEnded():
                return b""

    def _finish(self, event: Finished) -> bytes:
        reply = event.reply
        if event.ending is Ending.DONE:
            return _join(reply.take_held()) if isinstance(reply, StreamedReply) else b""
        last = self._head.chunk({}, "stop") | {"toolyard": {"type": event.ending.value}}
        spent: JsonObject = reply.total_usage() if reply is not None else {}
        return event_of(last | ({"usage": spent} if spent else {}))


def _join(chunks: list[Chunk]) -> bytes:
    pieces = ((chunk.raw, END) if chunk.raw else (event_of(chunk.data),) for chunk in chunks)
    return b"".join([piece for pair in pieces for piece in pair])  # large events are copied once
