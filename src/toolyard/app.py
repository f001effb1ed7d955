"""The composition root: a Config becomes a Yard. The only module that knows everyone."""

from types import TracebackType
from typing import Any, overload
from uuid import uuid4

from toolyard.config import Config
from toolyard.dialects import DIALECTS, SHOWN_ONLY, encode
from toolyard.engine.clock import Clock, SystemClock
from toolyard.engine.journal import Journal, Unrecorded
from toolyard.engine.masking import Mask
from toolyard.engine.registry import Registry
from toolyard.engine.runner import Runner
from toolyard.errors import UsageError
from toolyard.protocol.call import ToolCall
from toolyard.protocol.envelope import Envelope
from toolyard.protocol.json import JsonObject
from toolyard.protocol.outcome import Outcome
from toolyard.tools.ls import LS
from toolyard.tools.read import Read
from toolyard.workspace.outputs import Outputs
from toolyard.workspace.workspace import Workspace


class Yard:
    """The assembled program, for one event loop. Use it as ``async with``, or close it."""

    def __init__(self, config: Config, *, clock: Clock | None = None, journal: Journal | None = None) -> None:
        self._workspace = Workspace(config.project)
        self.tools = Registry(
            [
                LS(self._workspace),
                Read(self._workspace, fallback_encodings=config.fallback_encodings),
            ]
        )
        self._runner = Runner(
            self.tools,
            root=str(self._workspace.root),
            outputs=Outputs(self._workspace),
            clock=clock or SystemClock(),
            journal=journal or Unrecorded(),
            mask=Mask(config.secrets),
            direction=config.truncation_direction,
        )
        self._caller = f"yard:{uuid4().hex}"

    @overload
    async def call(self, tool: str, arguments: JsonObject | None = None) -> Envelope: ...

    @overload
    async def call(self, tool: str, arguments: JsonObject | None = None, *, dialect: str) -> dict[str, Any]: ...

    async def call(
        self, tool: str, arguments: JsonObject | None = None, *, dialect: str | None = None
    ) -> Envelope | dict[str, Any]:
        """Run a tool; the full envelope, or a dict in ``dialect``. A failed tool is an envelope, no exception."""
        if dialect is not None:
            require_dialect(dialect)
        call = self.request(tool, arguments or {})
        outcome = await self.settle(call)
        return outcome.envelope if dialect is None else self.express(call, outcome, dialect)

    def request(self, tool: str, arguments: JsonObject, *, caller: str | None = None, force: bool = False) -> ToolCall:
        return ToolCall(
            id=f"call_{uuid4().hex}", tool=tool, arguments=arguments, caller=caller or self._caller, force=force
        )

    async def settle(self, call: ToolCall) -> Outcome:
        return await self._runner.settle(call)

    def cancel(self, call_id: str) -> bool:
        return self._runner.cancel(call_id)

    def express(self, call: ToolCall, outcome: Outcome, dialect: str, *, shown: bool = False) -> dict[str, Any]:
        """The outcome in an outside shape; ``shown`` gives what a model would see instead of the full result."""
        require_dialect(dialect)
        if shown or dialect in SHOWN_ONLY:
            outcome = self._runner.shown(call, outcome)
        return encode(dialect, call, outcome, uuid=str(uuid4()))

    def close(self) -> None:
        self._workspace.close()

    async def __aenter__(self) -> "Yard":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def require_dialect(dialect: str) -> None:
    if dialect not in DIALECTS:
        raise UsageError(f"unknown dialect '{dialect}': choose one of {', '.join(DIALECTS)}")
