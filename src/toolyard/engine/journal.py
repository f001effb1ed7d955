"""The journal as the runner sees it: told before a call runs and after it has ended, whatever the end."""

from typing import Protocol

from toolyard.protocol.call import ToolCall
from toolyard.protocol.outcome import Outcome


class Journal(Protocol):
    async def started(self, call: ToolCall) -> None: ...

    async def finished(self, call: ToolCall, outcome: Outcome) -> None: ...


class Unrecorded:
    """Keeps nothing."""

    async def started(self, call: ToolCall) -> None:
        pass

    async def finished(self, call: ToolCall, outcome: Outcome) -> None:
        pass
