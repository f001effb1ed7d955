"""Server-sent events: bytes in any chunking become whole events, and events become bytes.

An event ends with an empty line; lines end with LF, CRLF or CR. At most ``MAX_EVENT`` bytes may wait for their end.
"""

from typing import Final

from toolyard.protocol.json import JsonObject, json_bytes

MAX_EVENT: Final = 16 * 1024 * 1024
DONE: Final = b"data: [DONE]\n\n"
KEEP_ALIVE: Final = b": keep-alive\n\n"


class Events:
    """Whole events, without the empty line behind them."""

    __slots__ = ("_has_cr", "_rest")

    def __init__(self) -> None:
        self._rest = b""
        self._has_cr = False

    def feed(self, data: bytes) -> list[bytes]:
        """Raises ValueError when an event is too long."""
        if self._has_cr or b"\r" in data:
            data = self._plain(data)
        *events, self._rest = (self._rest + data if self._rest else data).split(b"\n\n")
        if len(self._rest) > MAX_EVENT:
            raise ValueError(f"an event has more than {MAX_EVENT} bytes")
        return [event for event in events if event]

    def finish(self) -> bytes:
        """What has no empty line behind it."""
        rest, self._rest = self._rest.strip(b"\n"), b""
        return rest

    def _plain(self, data: bytes) -> bytes:
        """With LF only; a CR at the end may be half of a CRLF."""
        data = (b"\r" if self._has_cr else b"") + data
        self._has_cr = data.endswith(b"\r")
        if self._has_cr:
            data = data[:-1]
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def data_of(event: bytes) -> bytes | None:
    """The data of an event; None for a comment and the like."""
    if event.startswith(b"data:") and b"\n" not in event:  # as they nearly all are
        return event[5:].strip()
    lines = [line[5:].removeprefix(b" ") for line in event.split(b"\n") if line.startswith(b"data:")]
    return b"\n".join(lines).strip() if lines else None


def event_of(chunk: JsonObject) -> bytes:
    return b"data: " + json_bytes(chunk) + b"\n\n"
