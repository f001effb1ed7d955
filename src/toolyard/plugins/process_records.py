"""Records of the processes of calls, from their end until the end of their call is recorded.

Of the environment only the names are kept, of stderr and of what else stood on stdout the end and the beginning. Of a
batch it is the process of its last item that ran. Bounded: the oldest records are dropped.
"""

from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from toolyard.protocol.json import JsonObject

if TYPE_CHECKING:
    from toolyard.plugins.child import ChildReport
    from toolyard.plugins.launch import Launch
    from toolyard.plugins.stderr import StderrRing

_MAX_RECORDS = 200  # calls
_TEXT = 16 * 1024  # of each


class StartedProcess:
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

    def add(self, call_id: str, process: StartedProcess, stderr: "StderrRing", report: "ChildReport | None") -> None:
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
