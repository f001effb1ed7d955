"""The composition root: a Config becomes a Yard. The only module that knows everyone."""

from collections.abc import Mapping
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
from toolyard.protocol.outcome import Outcome
from toolyard.protocol.tool import Tool
from toolyard.tools.apply_patch import ApplyPatch
from toolyard.tools.change import FileChanger
from toolyard.tools.edit import Edit
from toolyard.tools.file_operator import FileOperator
from toolyard.tools.glob import Glob
from toolyard.tools.grep import Grep
from toolyard.tools.ls import LS
from toolyard.tools.multi_edit import MultiEdit
from toolyard.tools.notebook_edit import NotebookEdit
from toolyard.tools.read import Read
from toolyard.tools.write import Write
from toolyard.workspace.arrange import Arranger
from toolyard.workspace.outputs import Outputs
from toolyard.workspace.private import keep_private
from toolyard.workspace.reads import Reads
from toolyard.workspace.safe_fetch import SafeFetch
from toolyard.workspace.transaction import Transactions
from toolyard.workspace.trash import Trash
from toolyard.workspace.workspace import Workspace


class Yard:
    """The assembled program, for one event loop. Use it as ``async with``, or close it."""

    def __init__(self, config: Config, *, clock: Clock | None = None, journal: Journal | None = None) -> None:
        clock = clock or SystemClock()
        self._workspace = workspace = Workspace(config.project)
        keep_private(config.home, workspace.root)
        transactions = Transactions(config.home / "transactions", workspace.root)
        try:
            transactions.recover(workspace.open_folder)
        except BaseException:
            workspace.close()
            raise
        self.tools = Registry(_built_in(config, workspace, transactions, clock))
        self._runner = Runner(
            self.tools,
            root=str(workspace.root),
            outputs=Outputs(workspace),
            clock=clock,
            journal=journal or Unrecorded(),
            mask=Mask(config.secrets),
            direction=config.truncation_direction,
        )
        self._caller = f"yard:{uuid4().hex}"
        self._closed = False

    @overload
    async def call(self, tool: str, arguments: Mapping[str, Any] | None = None) -> Envelope: ...

    @overload
    async def call(self, tool: str, arguments: Mapping[str, Any] | None = None, *, dialect: str) -> dict[str, Any]: ...

    async def call(
        self, tool: str, arguments: Mapping[str, Any] | None = None, *, dialect: str | None = None
    ) -> Envelope | dict[str, Any]:
        """Run a tool; the full envelope, or a dict in ``dialect``. A failed tool is an envelope, no exception."""
        if dialect is not None:
            require_dialect(dialect)
        call = self.request(tool, arguments or {})
        outcome = await self.settle(call)
        return outcome.envelope if dialect is None else self.express(call, outcome, dialect)

    def request(
        self, tool: str, arguments: Mapping[str, Any], *, caller: str | None = None, force: bool = False
    ) -> ToolCall:
        _require_call(tool, arguments)
        own = f"call_{uuid4().hex}"
        return ToolCall(id=own, tool=tool, arguments=dict(arguments), caller=caller or self._caller, force=force)

    async def settle(self, call: ToolCall) -> Outcome:
        if self._closed:
            raise RuntimeError("this Yard is closed: open another one with toolyard.open_async()")
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
        """Let go of the project. Closing twice is harmless."""
        if not self._closed:
            self._closed = True
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


def _require_call(tool: object, arguments: object) -> None:
    if not isinstance(tool, str) or not isinstance(arguments, Mapping):
        raise UsageError("a call takes the tool's name as a string and its arguments as a mapping")


def _built_in(config: Config, workspace: Workspace, transactions: Transactions, clock: Clock) -> list[Tool]:
    encodings = config.fallback_encodings
    reads = Reads(config.home / "reads")
    files = FileChanger(workspace, transactions, reads, encodings)
    arranger = Arranger(workspace, transactions)
    trash = Trash(config.home / "trash", workspace, transactions, clock.now)
    return [
        LS(workspace),
        Glob(workspace),
        Grep(workspace, fallback_encodings=encodings),
        Read(workspace, reads, fallback_encodings=encodings),
        Write(files),
        Edit(files),
        MultiEdit(files),
        NotebookEdit(files),
        ApplyPatch(files),
        FileOperator(workspace, files, arranger, trash, reads, SafeFetch(), fallback_encodings=encodings),
    ]
