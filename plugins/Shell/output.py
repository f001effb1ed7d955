"""The output of a command: what is kept of it for the result, and what is reported while it runs."""

import sys
import time

HEAD = 20 * 1024
TAIL = 20 * 1024
MAX_TOTAL = 64 * 1024 * 1024
REPORT_S = 0.2
MAX_LINES = 20  # of one report
MAX_LINE = 300  # characters


class CommandOutput:
    """The first and the last bytes that a command printed, stdout and stderr in their order."""

    def __init__(self) -> None:
        self.total = 0
        self._head, self._tail = bytearray(), bytearray()

    def add(self, chunk: bytes) -> None:
        self.total += len(chunk)
        room = HEAD - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        if len(self._tail) > 4 * TAIL:
            del self._tail[:-TAIL]

    @property
    def is_flooded(self) -> bool:
        return self.total > MAX_TOTAL

    @property
    def left_out(self) -> int:
        return max(0, self.total - HEAD - TAIL)

    @property
    def text(self) -> str:
        tail = bytes(self._tail[-TAIL:])
        if not self.left_out:
            return (bytes(self._head) + tail).decode("utf-8", "replace")
        gap = f"\n[... {self.left_out} bytes are left out here ...]\n"
        return self._head.decode("utf-8", "replace") + gap + tail.decode("utf-8", "replace")


class LineReporter:
    """Reports the lines of a running command on stderr, as progress; of many at once only the last."""

    def __init__(self) -> None:
        self._rest = b""
        self._lines: list[str] = []
        self._skipped = 0
        self._due = 0.0

    def add(self, chunk: bytes) -> None:
        data = self._rest + chunk
        count = data.count(b"\n")
        *lines, rest = data.rsplit(b"\n", MAX_LINES)
        if count > MAX_LINES:
            del lines[0]  # it is many
        self._rest = rest[-4 * MAX_LINE :]
        self._skipped += count - len(lines)
        for line in lines:
            text = line.rstrip(b"\r").rpartition(b"\r")[2]  # what a progress bar shows in the end
            self._lines.append(text.decode("utf-8", "replace")[:MAX_LINE])
        self._skipped += max(0, len(self._lines) - MAX_LINES)
        del self._lines[:-MAX_LINES]

    def flush_if_due(self) -> None:
        if time.monotonic() >= self._due:
            self.flush()

    def flush(self) -> None:
        if not self._lines:
            return
        skipped = [f"[{self._skipped} lines are not shown]"] if self._skipped else []
        sys.stderr.write("".join(f"PROGRESS - {line}\n" for line in (*skipped, *self._lines)))
        sys.stderr.flush()
        self._lines, self._skipped = [], 0
        self._due = time.monotonic() + REPORT_S
