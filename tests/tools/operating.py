"""FileOperator with everything around it, as the program puts it together."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from tests.fakes import FakeClock, ListJournal
from tests.workspace.web import here, loopback_too
from toolyard.dialects import encode
from toolyard.engine.registry import Registry
from toolyard.engine.runner import Runner
from toolyard.protocol.envelope import Envelope
from toolyard.protocol.json import JsonObject
from toolyard.protocol.mask import Mask
from toolyard.protocol.tool import Outcome, ToolCall
from toolyard.tools.file_changer import FileChanger
from toolyard.tools.file_operator import FileOperator
from toolyard.workspace.changes.arranger import Arranger
from toolyard.workspace.changes.transaction import Transactions
from toolyard.workspace.changes.trash import Trash
from toolyard.workspace.changes.undo import Undo
from toolyard.workspace.read_history import ReadHistory
from toolyard.workspace.safe_fetch import SafeFetch
from toolyard.workspace.workspace import Workspace


class Operator:
    """Calls of FileOperator. Its fetches may go to this machine, where the tests have their server."""

    def __init__(self, workspace: Workspace, home: Path, max_s: float) -> None:
        clock = FakeClock()
        transactions, reads = Transactions(home / "transactions", workspace.root), ReadHistory(home / "reads")
        self.close = transactions.close
        self.trash = Trash(home / "trash", workspace, transactions, clock.now)
        arranger = Arranger(workspace, transactions)
        undo = Undo(home / "undo", workspace, transactions, arranger, self.trash, clock.now)
        self.tool = FileOperator(
            workspace,
            FileChanger(workspace, undo, reads, ("gb18030",)),
            arranger,
            self.trash,
            undo,
            reads,
            SafeFetch(resolve=here, allowed=loopback_too, max_bytes=100_000, max_s=max_s),
            fallback_encodings=("gb18030",),
        )
        self.runner = Runner(
            Registry([self.tool]),
            root=str(workspace.root),
            clock=clock,
            journal=ListJournal(),
            mask=Mask([]),
        )

    async def settle(self, arguments: dict[str, Any], tool: str = "FileOperator") -> tuple[ToolCall, Outcome]:
        call = ToolCall(id="c1", tool=tool, arguments=cast("JsonObject", arguments))
        return call, await self.runner.settle(call)

    async def __call__(self, command: str, **arguments: Any) -> Envelope:
        return (await self.settle({"command": command, **arguments}))[1].envelope

    async def batch(self, **arguments: Any) -> Envelope:
        return (await self.settle(arguments))[1].envelope

    async def vcp(self, **arguments: Any) -> dict[str, Any]:
        """What a client of VCP gets."""
        call, outcome = await self.settle(arguments)
        return encode("vcp", call, outcome, uuid="u")

    async def texts(self, **arguments: Any) -> list[str]:
        """The content parts of a result that has only texts."""
        return [part["text"] for part in (await self.vcp(**arguments))["result"]["content"]]


@contextmanager
def open_operator(project: Path, home: Path, max_s: float = 60.0) -> Iterator[Operator]:
    workspace = Workspace(project)
    operator = Operator(workspace, home, max_s)
    try:
        yield operator
    finally:
        operator.close()
        workspace.close()


def error_of(envelope: Envelope) -> tuple[str | None, Any]:
    """The error code and the reason of an envelope."""
    return envelope.error.code.value if envelope.error else None, envelope.context.get("reason")


def data(envelope: Envelope) -> dict[str, Any]:
    """The data of an envelope that is no error."""
    assert envelope.error is None, envelope.text
    return envelope.data


def list_project(project: Path) -> list[str]:
    """What stands at the top of the project."""
    return sorted(path.name for path in project.iterdir())
