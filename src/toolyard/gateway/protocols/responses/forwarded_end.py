"""The end of a response that passes unchanged: the object that is stored, and the error of a stream that breaks off."""

from collections.abc import Callable
from typing import Final

import orjson

from toolyard.gateway.faults import ChatFault
from toolyard.gateway.protocols.chat_body import as_object
from toolyard.gateway.sse import Events, data_of
from toolyard.protocol.json import JsonObject, json_bytes

_ENDS: Final = (b'"response.completed"', b'"response.incomplete"')


class ForwardedEnd:
    """Hears the pieces of an answer, and tells the response once it is there."""

    def __init__(self, tell: Callable[[JsonObject], None]) -> None:
        self._tell = tell
        self._events = Events()
        self._has_begun = False

    def feed(self, piece: bytes) -> None:
        """Take the next piece of a stream, or an answer in one piece."""
        if not self._has_begun and piece.lstrip()[:1] == b"{":
            self._take(piece)
            return
        self._has_begun = True
        for event in self._events.feed(piece):
            if any(end in event for end in _ENDS) and (data := data_of(event)):
                self._take(data)

    def _take(self, data: bytes) -> None:
        try:
            value = as_object(orjson.loads(data))
        except orjson.JSONDecodeError:
            return
        response = value if value.get("object") == "response" else as_object(value.get("response"))
        if response:
            self._tell(response)


def write_fault_event(fault: ChatFault) -> bytes:
    """Return the error event of a stream that breaks off; its numbers are those of nobody."""
    error = as_object(fault.to_json()["error"])
    data: JsonObject = {"type": "error", "sequence_number": 0, "code": error.get("code"), "error": error}
    data |= {"message": error.get("message"), "param": error.get("param")}
    return b"event: error\ndata: " + json_bytes(data) + b"\n\n"
