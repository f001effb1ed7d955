"""How the processes of the last calls ran, for whoever asks why. In memory and bounded: a restart forgets them.

Of the environment only the names are kept, of stderr and of what else stood on stdout the end and the beginning.
"""

from collections import OrderedDict

from toolyard.plugins.child import Ended
from toolyard.plugins.launch import Launch
from toolyard.plugins.stderr import StderrRing
from toolyard.protocol.json import JsonObject

_MOST = 200  # calls
_TEXT = 16 * 1024  # of each


class Runs:
    def __init__(self) -> None:
        self._kept: OrderedDict[str, JsonObject] = OrderedDict()

    def add(self, call_id: str, pid: int, launch: Launch, stderr: StderrRing, ended: Ended | None) -> None:
        """Without an end the process was stopped: by its time, by a person, or because it broke a limit."""
        self._kept[call_id] = {
            "pid": pid,
            "argv": list(launch.argv),
            "folder": str(launch.cwd),
            "environment": [*sorted(launch.environment)],
            "warm": launch.warm,
            "exit_code": ended.exit_code if ended else None,
            "signal": ended.signal if ended else None,
            "limits_hit": [name for name in ("too_large", "too_deep", "overrun") if ended and getattr(ended, name)],
            "stdout_bytes": ended.stdout_bytes if ended else None,
            "stderr": stderr.last(_TEXT),
            "noise": ended.noise[:_TEXT] if ended else "",
        }
        while len(self._kept) > _MOST:
            self._kept.popitem(last=False)

    def get(self, call_id: str) -> JsonObject | None:
        return self._kept.get(call_id)
