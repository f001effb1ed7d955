"""Server-sent events: parses bytes in any chunking into events, and writes events as bytes.

An event ends with an empty line; lines end with LF, CRLF or CR. At most ``MAX_EVENT`` bytes may wait for their end, and
an event has at most ``MAX_LINES`` lines. However small the pieces are, the work is in proportion to the bytes.
"""

from typing import Final

from toolyard.message import Message
from toolyard.protocol.json import JsonObject, json_bytes

MAX_EVENT: Final = 8 * 1024 * 1024
MAX_LINES: Final = 65_536
DONE: Final = b"data: [DONE]\n\n"
KEEP_ALIVE: Final = b": keep-alive\n\n"
END: Final = b"\n\n"  # of an event


class Events:
    """A parser of events, each returned without the empty line that ends it."""

    __slots__ = ("_has_cr", "_rest", "problem")

    def __init__(self) -> None:
        self._rest = bytearray()  # grows in place
        self._has_cr = False
        self.problem = ""  # the reason why reading stopped, if it did

    def feed(self, data: bytes) -> list[bytes]:
        """Return the events that end in ``data``, up to a problem."""
        if self._has_cr or b"\r" in data:
            data = self._normalize_newlines(data)
        first = b""
        if self._rest:
            first, data = self._complete(data)
        *events, rest = data.split(END)
        self._rest += rest
        if len(self._rest) > MAX_EVENT:
            self.problem = Message("an event has more than {limit} bytes", limit=MAX_EVENT)
        complete = [event for event in (first, *events) if event]
        return self._limit_lines(complete) if len(data) > MAX_LINES or len(first) > MAX_LINES else complete

    def finish(self) -> list[bytes]:
        """Return the last event, which no empty line ends."""
        rest = bytes(self._rest).strip(b"\n")
        self._rest.clear()
        return self._limit_lines([rest] if rest else [])

    def _complete(self, data: bytes) -> tuple[bytes, bytes]:
        """Return the pending event, if its end is in ``data``, and the data after it; else keep ``data`` as well."""
        at = max(len(self._rest) - 1, 0)  # the end may begin with the last byte that waits
        self._rest += data
        end = self._rest.find(END, at)
        if end < 0:
            return b"", b""
        with memoryview(self._rest) as view:  # it may be large: one copy is enough
            first, after = bytes(view[:end]), bytes(view[end + len(END) :])
        self._rest.clear()
        return first, after

    def _limit_lines(self, events: list[bytes]) -> list[bytes]:
        """Return the events before the first that has too many lines."""
        for number, event in enumerate(events):
            if len(event) > MAX_LINES and event.count(b"\n") >= MAX_LINES:
                self.problem = Message("an event has more than {limit} lines", limit=MAX_LINES)
                return events[:number]
        return events

    def _normalize_newlines(self, data: bytes) -> bytes:
        """Return ``data`` with LF only; a CR at the end may be half of a CRLF."""
        data = (b"\r" if self._has_cr else b"") + data
        self._has_cr = data.endswith(b"\r")
        if self._has_cr:
            data = data[:-1]
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def data_of(event: bytes) -> bytes | None:
    """Return the data of an event; None for a comment and the like."""
    if event.startswith(b"data:") and b"\n" not in event:  # the usual case
        return event[5:].strip()
    lines = [line[5:].removeprefix(b" ") for line in event.split(b"\n") if line.startswith(b"data:")]
    return b"\n".join(lines).strip() if lines else None


def event_of(chunk: JsonObject) -> bytes:
    return b"data: " + json_bytes(chunk) + b"\n\n"
