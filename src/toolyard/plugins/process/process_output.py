"""The output of plugins beside their answers, and the record that is kept of each process.

Their stderr is never part of a result, but kept for the people who maintain them, bounded twice: of one call the
beginning and the end, of one plugin the last lines over all its calls.

A record of the process of a call is kept from its end until the end of its call is recorded. Of the environment only
the names are kept, of stderr and of what else stood on stdout the end and the beginning. Of a batch it is the process
of its last item that ran. Bounded: the oldest records are dropped.

While it runs a plugin reports its progress by lines on its stderr:

    PROGRESS 0.4 rendering frame 24 of 60
    PROGRESS - a line without a fraction

The number is a fraction from 0 to 1, or a percentage. What was reported since the last look is one report: the last
fraction, and the texts of all lines, of which the first are left out when there are too many.
"""

import asyncio
import logging
import re
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from toolyard.errors import StorageError
from toolyard.protocol.json import JsonObject

if TYPE_CHECKING:
    from toolyard.plugins.process.child_report import ChildReport
    from toolyard.plugins.process.launch import Launch


HEAD = 64 * 1024
TAIL = 256 * 1024
LOG = 64 * 1024
_LOG_CALLS = 200
_MAX_RECORDS = 200  # calls
_TEXT = 16 * 1024  # of each
_log = logging.getLogger(__name__)
REPORT_S: Final = 0.5  # between two reports of a call
MAX_REPORTS: Final = 1000  # of one call; what it prints later is seen in its result
MAX_LINES: Final = 50  # of one report
MAX_TEXT: Final = 300  # characters of one line
_MAX_LINE_BYTES = 4096  # more of a line without its end is cut
_LINE = re.compile(r"PROGRESS\s+(?:([0-9.]+)%?|-)(?:[ \t](.*)|$)")


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


class TimedProcess:
    """A process that was just started, and the time of its first output."""

    def __init__(self, pid: int, launch: "Launch", now: Callable[[], datetime]) -> None:
        self.pid, self.launch, self._now = pid, launch, now
        self.at = now().timestamp()
        self.first: float | None = None

    def note_output(self) -> None:
        """Note the time of the first output."""
        if self.first is None:
            self.first = self._now().timestamp()


class ProcessRecords:
    def __init__(self) -> None:
        self._kept: OrderedDict[str, JsonObject] = OrderedDict()

    def add(self, call_id: str, process: TimedProcess, stderr: StderrRing, report: "ChildReport | None") -> None:
        """Record a process. Without a report it was stopped: by its limit, by a person, or for its output."""
        launch = process.launch
        record: JsonObject = {
            "pid": process.pid,
            "argv": list(launch.argv),
            "folder": str(launch.cwd),
            "environment": [*sorted(launch.environment)],
            "warm": launch.warm,
            "started": process.at,
            "first_output": process.first,
            "exit_code": report.exit_code if report else None,
            "signal": report.signal if report else None,
            "limits_hit": [name for name in ("too_large", "too_deep", "overrun") if report and getattr(report, name)],
            "stdout_bytes": report.stdout_bytes if report else None,
            "stderr": stderr.last_text(_TEXT),
            "noise": report.noise[:_TEXT] if report else "",
        }
        self.put(call_id, record)

    def put(self, call_id: str, record: JsonObject) -> None:
        """Store a record, also for a call that ran on another host."""
        self._kept[call_id.partition("#")[0]] = record
        while len(self._kept) > _MAX_RECORDS:
            self._kept.popitem(last=False)

    def take(self, call_id: str) -> JsonObject | None:
        return self._kept.pop(call_id, None)


@dataclass(frozen=True, slots=True)
class Progress:
    done: float | None  # None: nobody knows
    text: str

    def to_json(self) -> JsonObject:
        return {"done": self.done, "text": self.text}


def parse_progress(line: str) -> Progress | None:
    """Return what a line of stderr reports; None when it is another line."""
    match = _LINE.fullmatch(line.rstrip("\r"))
    if match is None:
        return None
    fraction, text = match[1], match[2] or ""
    return Progress(None if fraction is None else _parse_fraction(fraction), text.rstrip()[:MAX_TEXT])


class ProgressLines:
    """The progress in a stderr that arrives piece by piece."""

    def __init__(self) -> None:
        self._rest = b""
        self._done: float | None = None
        self._texts: list[str] = []
        self._left_out = 0

    def feed(self, chunk: bytes) -> None:
        *lines, rest = (self._rest + chunk).split(b"\n")
        self._rest = rest[:_MAX_LINE_BYTES]
        for line in lines:
            if line.startswith(b"PROGRESS"):
                self._add(line)

    @property
    def has_news(self) -> bool:
        return bool(self._texts)

    def take(self) -> Progress | None:
        """Return what was reported since the last call; None when nothing was."""
        if not self._texts:
            return None
        note = [f"[{self._left_out} lines are not shown]"] if self._left_out else []
        report = Progress(self._done, "\n".join([*note, *self._texts]))
        self._texts, self._left_out = [], 0
        return report

    def _add(self, line: bytes) -> None:
        report = parse_progress(line[:_MAX_LINE_BYTES].decode(errors="replace"))
        if report is None:
            return
        self._done = report.done if report.done is not None else self._done
        self._texts.append(report.text)
        if len(self._texts) > MAX_LINES:
            del self._texts[0]
            self._left_out += 1


class ProgressReporter:
    """Passes on the progress of a running call: its first line at once, what follows every ``REPORT_S``."""

    def __init__(self, report: Callable[[JsonObject], Awaitable[None]]) -> None:
        self._report, self._lines = report, ProgressLines()
        self._task: asyncio.Task[None] | None = None

    def feed(self, chunk: bytes) -> None:
        self._lines.feed(chunk)
        if self._task is None and self._lines.has_news:
            self._task = asyncio.create_task(self._pass_on())

    def close(self) -> None:
        """Stop reporting."""
        if self._task is not None:
            self._task.cancel()

    async def _pass_on(self) -> None:
        for _ in range(MAX_REPORTS):
            progress = self._lines.take()
            try:
                if progress is not None:
                    await self._report(progress.to_json())
            except StorageError as error:
                _log.warning("progress could not be stored: %s", error)
            await asyncio.sleep(REPORT_S)


def _parse_fraction(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return 0.0
    return min(1.0, value / 100 if value > 1 else value)
