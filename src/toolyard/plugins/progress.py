"""The progress that a plugin reports while it runs: lines on its stderr.

    PROGRESS 0.4 rendering frame 24 of 60
    PROGRESS - a line without a fraction

The number is a fraction from 0 to 1, or a percentage. What was reported since the last look is one report: the last
fraction, and the texts of all lines, of which the first are left out when there are too many.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from toolyard.errors import StorageError
from toolyard.protocol.json import JsonObject

_log = logging.getLogger(__name__)
REPORT_S: Final = 0.5  # between two reports of a call
MAX_REPORTS: Final = 1000  # of one call; what it prints later is seen in its result
MAX_LINES: Final = 50  # of one report
MAX_TEXT: Final = 300  # characters of one line
_MAX_LINE_BYTES = 4096  # more of a line without its end is cut
_LINE = re.compile(r"PROGRESS\s+(?:([0-9.]+)%?|-)(?:[ \t](.*)|$)")


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
