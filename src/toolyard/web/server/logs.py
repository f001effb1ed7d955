"""Logs as JSON, one object per line; logged text can neither break a line nor hide in it.

Lines go through a bounded queue to a writer thread, which writes together what came within ``GATHER_S``: a slow or hung
disk holds up no request. When the queue is full, the oldest line is dropped and counted; the next written line says how
many are missing. A killed process loses the lines of its last ``GATHER_S``.
"""

import json
import logging
import threading
import unicodedata
from collections import deque
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from typing import Final, TextIO

import orjson

MAX_LINES: Final = 10_000
GATHER_S: Final = 0.02
_MAX_TEXT = 4000
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})  # control and format characters, bidirectional ones too
_JOINED_S = 2.0


def escape_unprintable(text: str) -> str:
    """Return the text with every invisible character escaped (S-53)."""
    if text.isascii() and text.isprintable():
        return text[:_MAX_TEXT]
    return "".join(f"\\u{ord(one):04x}" if unicodedata.category(one) in _HIDDEN else one for one in text[:_MAX_TEXT])


class JsonFormatter(logging.Formatter):
    def __init__(self, mask: Callable[[str], str] = str) -> None:
        super().__init__()
        self._mask = mask
        self._second = lru_cache(1)(lambda second: datetime.fromtimestamp(second).astimezone().isoformat())

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {
            "at": self._format_time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        entry |= getattr(record, "fields", {})
        if record.exc_info:
            entry["error"] = self.formatException(record.exc_info)[-_MAX_TEXT:]
        return orjson.dumps(entry if self._is_plain(entry) else self._make_safe(entry), default=str).decode()

    def _format_time(self, record: logging.LogRecord) -> str:
        second = self._second(int(record.created))
        return f"{second[:19]}.{int(record.msecs):03d}{second[19:]}"

    def _is_plain(self, entry: dict[str, object]) -> bool:
        """Return whether nothing needs escaping or masking, as in nearly every line; all texts are checked together."""
        text = " ".join([value for value in entry.values() if isinstance(value, str)])
        return len(text) <= _MAX_TEXT and text.isascii() and text.isprintable() and self._mask(text) == text

    def _make_safe(self, entry: dict[str, object]) -> dict[str, object]:
        return {key: self._make_value_safe(value) for key, value in entry.items()}

    def _make_value_safe(self, value: object) -> object:
        return escape_unprintable(self._mask(value)) if isinstance(value, str) else value


class QueuedLog(logging.Handler):
    """A log handler that passes each record to a writer thread."""

    def __init__(self, stream: TextIO, formatter: logging.Formatter, *, most: int = MAX_LINES) -> None:
        super().__init__()
        self.setFormatter(formatter)
        self.dropped = 0
        self._stream, self._most = stream, most
        self._lines: deque[str] = deque()
        self._filled = threading.Condition()
        self._ended = threading.Event()
        self._reported = 0
        self._writer = threading.Thread(target=self._write_all, name="toolyard-log", daemon=True)
        self._writer.start()

    def emit(self, record: logging.LogRecord) -> None:
        line = self.format(record)
        with self._filled:
            self._lines.append(line)
            while len(self._lines) > self._most:
                self._lines.popleft()
                self.dropped += 1
            if len(self._lines) == 1:
                self._filled.notify()

    def close(self) -> None:
        """Close after the queued lines are written, waiting at most ``_JOINED_S``."""
        self._ended.set()
        with self._filled:
            self._filled.notify()
        self._writer.join(_JOINED_S)
        super().close()

    def _write_all(self) -> None:
        while True:
            with self._filled:
                while not self._lines and not self._ended.is_set():
                    self._filled.wait()
                if not self._lines:
                    return
            self._ended.wait(GATHER_S)  # without a wake-up a line costs its request half as much
            self._write_some()

    def _write_some(self) -> None:
        with self._filled:
            lines, self._lines = self._lines, deque()
            missing, self._reported = self.dropped - self._reported, self.dropped
        if missing:
            lines.appendleft(json.dumps({"level": "warning", "message": f"{missing} log lines were dropped"}))
        try:
            self._stream.write("\n".join(lines) + "\n")
            self._stream.flush()
        except (OSError, ValueError):
            self.dropped += len(lines)  # there is nowhere left to write
