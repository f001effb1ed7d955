"""The stderr of plugins: never part of a result, kept for the people who maintain them.

Bounded twice: of one call the beginning and the end, of one plugin the last lines over all its calls.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

HEAD = 64 * 1024
TAIL = 256 * 1024
LOG = 64 * 1024
_LOG_CALLS = 200


class StderrRing:
    """The stderr of one call: its first 64 KiB, its last 256 KiB, and its total size."""

    def __init__(self, watch: Callable[[bytes], None] | None = None) -> None:
        """``watch`` gets every chunk as well."""
        self._watch = watch
        self.total = 0
        self._head = bytearray()
        self._tail = bytearray()

    def feed(self, chunk: bytes) -> None:
        if self._watch is not None:
            self._watch(chunk)
        self.total += len(chunk)
        room = HEAD - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:] if room > 0 else chunk
        if len(self._tail) > 2 * TAIL:  # not on every chunk: moving the bytes costs more than keeping them
            del self._tail[:-TAIL]

    @property
    def head(self) -> str:
        return self._head.decode("utf-8", "replace")

    @property
    def tail(self) -> str:
        """The last bytes of what came after the head."""
        return self._tail[-TAIL:].decode("utf-8", "replace")

    @property
    def dropped_bytes(self) -> int:
        """The number of bytes between head and tail that are not kept."""
        return self.total - len(self._head) - min(len(self._tail), TAIL)

    @property
    def text(self) -> str:
        gap = f"\n[... {self.dropped_bytes} bytes not kept ...]\n" if self.dropped_bytes else ""
        return f"{self.head}{gap}{self.tail}"

    def last_text(self, size: int) -> str:
        """Return at most the last ``size`` bytes."""
        return (self._head + self._tail)[-size:].decode("utf-8", "replace") if size < TAIL else self.text


class LogStream(StrEnum):
    STDERR = "stderr"
    NOISE = "noise"  # what stood on stdout beside the answer
    NOTE = "note"  # what the host did about it


@dataclass(frozen=True, slots=True)
class StderrEntry:
    call_id: str
    at: datetime
    text: str
    number: int = 0  # from 1, in the order in which they came
    stream: LogStream = LogStream.STDERR


class StderrLog:
    """The output of one plugin beside its answers: the last calls with any, bounded in bytes and calls."""

    def __init__(self, size: int = LOG) -> None:
        self._size = size
        self.total = 0  # how many entries there have been
        self._entries: deque[tuple[StderrEntry, int]] = deque()
        self._kept = 0

    def add(self, call_id: str, at: datetime, ring: StderrRing, noise: str = "", note: str = "") -> None:
        if ring.total:
            self._append(call_id, at, ring.last_text(self._size), LogStream.STDERR)
        if noise:
            self._append(call_id, at, noise[: self._size], LogStream.NOISE)
        if note:
            self._append(call_id, at, note, LogStream.NOTE)

    def _append(self, call_id: str, at: datetime, text: str, stream: LogStream) -> None:
        self.total += 1
        size = len(text.encode(errors="replace"))
        self._entries.append((StderrEntry(call_id, at, text, self.total, stream), size))
        self._kept += size
        while len(self._entries) > 1 and (self._kept > self._size or len(self._entries) > _LOG_CALLS):
            self._kept -= self._entries.popleft()[1]

    @property
    def entries(self) -> tuple[StderrEntry, ...]:
        return tuple(entry for entry, _ in self._entries)
