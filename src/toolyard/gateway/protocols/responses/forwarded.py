"""An answer of a provider that passes unchanged: its bytes, and the response in it for one who stores it."""

from collections.abc import AsyncGenerator, Callable
from contextlib import closing
from typing import Final

import orjson

from toolyard.gateway.chats import Chat
from toolyard.gateway.faults import ChatFailed, ChatFault
from toolyard.gateway.protocols.chat_body import as_object
from toolyard.gateway.providers.forwarded_answer import ForwardedAnswer
from toolyard.gateway.sse import Events, data_of
from toolyard.gateway.turns.rendering import ClientAnswer
from toolyard.protocol.json import JsonObject, json_bytes

_ENDS: Final = (b'"response.completed"', b'"response.incomplete"')


Tell = Callable[[JsonObject], None]


async def pass_on(chat: Chat, forwarded: ForwardedAnswer, tell: Tell | None) -> ClientAnswer:
    """Answer a client with the bytes of its provider; ``tell`` gets the response. Raises ChatFailed."""
    finder = _ResponseFinder(tell) if tell else None
    if forwarded.content_type.startswith("text/event-stream"):
        pieces = _read_pieces(chat, forwarded, finder)
        await anext(pieces)  # a generator that has not begun would not close the answer
        return ClientAnswer(pieces=pieces)
    with closing(forwarded), chat.ended_by_stop(forwarded.close):
        body = b"".join([piece async for piece in forwarded.pieces()])
    if finder is not None:
        finder.take(body)
    return ClientAnswer(status=forwarded.status, body=body)


async def _read_pieces(
    chat: Chat, forwarded: ForwardedAnswer, finder: "_ResponseFinder | None"
) -> AsyncGenerator[bytes, None]:
    with closing(forwarded), chat.ended_by_stop(forwarded.close):
        yield b""
        try:
            async for piece in forwarded.pieces():
                if finder is not None:
                    finder.feed(piece)
                yield piece
        except ChatFailed as failed:
            yield _write_event(failed.fault.mask_secrets(chat.mask))


class _ResponseFinder:
    """Finds the response in the last event of a stream, or in an answer in one piece."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._events = Events()

    def feed(self, piece: bytes) -> None:
        for event in self._events.feed(piece):
            if any(end in event for end in _ENDS) and (data := data_of(event)):
                self.take(data)

    def take(self, data: bytes) -> None:
        try:
            value = as_object(orjson.loads(data))
        except orjson.JSONDecodeError:
            return
        response = value if value.get("object") == "response" else as_object(value.get("response"))
        if response:
            self._tell(response)


def _write_event(fault: ChatFault) -> bytes:
    """Return the error event of a stream that breaks off; its numbers are those of nobody."""
    error = as_object(fault.to_json()["error"])
    data: JsonObject = {"type": "error", "sequence_number": 0, "code": error.get("code"), "error": error}
    data |= {"message": error.get("message"), "param": error.get("param")}
    return b"event: error\ndata: " + json_bytes(data) + b"\n\n"
