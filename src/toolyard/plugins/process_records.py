"""Records of the processes of calls, from their end until the end of their call is recorded.

Of the environment only the names are kept, of stderr and of what else stood on stdout the end and the beginning. Of a
batch it is the process of its last item that ran. Bounded: what nobody takes is forgotten.
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

    def add(self, call_id: str, process: StartedProcess, stderr: "StderrRing", ended: "ChildReport | None") -> None:
        """Record a process. Without a report it was stopped: by its limit, by a person, or for its output."""
        launch = process.launch
        told: JsonObject = {
            "pid": process.pid,
            "argv": list(launch.argv),
            "folder": str(launch.cwd),
            "environment": [*sorted(launch.environment)],
            "warm": launch.warm,
            "started": process.at,
            "first_output": process.first,
            "exit_code": ended.exit_code if ended else None,
            "signal": ended.signal if ended else None,
            "limits_hit": [name for name in ("too_large", "too_deep", "overrun") if ended and getattr(ended, name)],
            "stdout_bytes": ended.stdout_bytes if ended else None,
            "stderr": stderr.last(_TEXT),
            "noise": ended.noise[:_TEXT] if ended else "",
        }
        self.put(call_id, told)

    def put(self, call_id: str, told: JsonObject) -> None:
        """Store a record, also for a call that ran on another host."""
        self._kept[call_id.partition("#")[0]] = told
        while len(self._kept) > _MAX_RECORDS:
            self._kept.popitem(last=False)

    def take(self, call_id: str) -> JsonObject | None:
        return self._kept.pop(call_id, None)
