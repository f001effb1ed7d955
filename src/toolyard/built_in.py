"""The built-in tools, put together for one project, and what undoes them."""

from collections.abc import Callable
from datetime import datetime

from toolyard.config import Config
from toolyard.protocol.tool import Tool
from toolyard.tools.apply_patch import ApplyPatch
from toolyard.tools.edit import Edit
from toolyard.tools.file_changer import FileChanger
from toolyard.tools.file_operator import FileOperator
from toolyard.tools.glob import Glob
from toolyard.tools.grep import Grep
from toolyard.tools.ls import LS
from toolyard.tools.multi_edit import MultiEdit
from toolyard.tools.notebook_edit import NotebookEdit
from toolyard.tools.read import Read
from toolyard.tools.write import Write
from toolyard.workspace.arranger import Arranger
from toolyard.workspace.read_history import ReadHistory
from toolyard.workspace.safe_fetch import SafeFetch
from toolyard.workspace.transaction import Transactions
from toolyard.workspace.trash import Trash
from toolyard.workspace.undo import Undo
from toolyard.workspace.workspace import Workspace


def built_in_tools(
    config: Config, workspace: Workspace, transactions: Transactions, now: Callable[[], datetime]
) -> tuple[list[Tool], Undo]:
    encodings = config.settings.fallback_encodings
    reads = ReadHistory(config.home / "reads")
    arranger = Arranger(workspace, transactions)
    trash = Trash(config.home / "trash", workspace, transactions, now)
    undo = Undo(config.home / "undo", workspace, transactions, arranger, trash, now)
    files = FileChanger(workspace, undo, reads, encodings)
    tools: list[Tool] = [
        LS(workspace),
        Glob(workspace),
        Grep(workspace, fallback_encodings=encodings),
        Read(workspace, reads, fallback_encodings=encodings),
        Write(files),
        Edit(files),
        MultiEdit(files),
        NotebookEdit(files),
        ApplyPatch(files),
        FileOperator(workspace, files, arranger, trash, undo, reads, SafeFetch(), fallback_encodings=encodings),
    ]
    return tools, undo
