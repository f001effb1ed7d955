"""The built-in tools of one project, and what undoes them. Each tool is imported when it is first looked up."""

from collections.abc import Callable
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from toolyard.config import Config
from toolyard.engine.lazy_tool import BUILD_LOCK, LazyTool
from toolyard.protocol.tool import Tool
from toolyard.settings import REPLACEABLE
from toolyard.workspace.transaction_records import list_record_files, records_folder
from toolyard.workspace.workspace import Workspace

if TYPE_CHECKING:
    from toolyard.tools.file_changer import FileChanger
    from toolyard.workspace.arranger import Arranger
    from toolyard.workspace.read_history import ReadHistory
    from toolyard.workspace.transaction import Transactions
    from toolyard.workspace.trash import Trash
    from toolyard.workspace.undo import Undo


class BuiltInTools:
    """The builders of the tools, and the parts of the workspace that they share."""

    def __init__(self, config: Config, workspace: Workspace, now: Callable[[], datetime]) -> None:
        self._config, self._workspace, self._now = config, workspace, now
        self._transactions_folder = config.home / "transactions"
        self._encodings = config.settings.fallback_encodings
        tools = (
            LazyTool("LS", self._build_ls),
            LazyTool("Glob", self._build_glob),
            LazyTool("Grep", self._build_grep),
            LazyTool("Read", self._build_read),
            LazyTool("Write", self._build_write, aliases=("Replace",)),
            LazyTool("Edit", self._build_edit),
            LazyTool("MultiEdit", self._build_multi_edit),
            LazyTool("NotebookEdit", self._build_notebook_edit, aliases=("NotebookEditCell",)),
            LazyTool("ApplyPatch", self._build_apply_patch),
            LazyTool("WebFetch", self._build_web_fetch),
            LazyTool("FileOperator", self._build_file_operator, aliases=("ServerFileOperator",)),
        )
        self.tools = tuple(tool for tool in tools if config.settings.built_in.get(tool.name, True))

    @property
    def names(self) -> tuple[str, ...]:
        """All names and aliases, which no other tool may have."""
        return tuple(name for tool in self.tools for name in (tool.name, *tool.aliases))

    @property
    def replaceable_names(self) -> tuple[str, ...]:
        """Those of tools that the owner can turn off, so that a plugin of the name is used."""
        return tuple(name for tool in self.tools if tool.name in REPLACEABLE for name in (tool.name, *tool.aliases))

    def recover_writes(self) -> None:
        """Clear up after processes that died while they wrote files of the project."""
        if list_record_files(records_folder(self._transactions_folder, self._workspace.root)):
            self._transactions.recover(self._workspace.open_descriptor)

    def close(self) -> None:
        if "_transactions" in self.__dict__:
            self._transactions.close()

    @cached_property
    def _transactions(self) -> "Transactions":
        from toolyard.workspace.transaction import Transactions

        return Transactions(self._transactions_folder, self._workspace.root)

    @property
    def undo(self) -> "Undo":
        with BUILD_LOCK:
            return self._undo

    @cached_property
    def _undo(self) -> "Undo":
        from toolyard.workspace.undo import Undo

        folder = self._config.home / "undo"
        return Undo(folder, self._workspace, self._transactions, self._arranger, self._trash, self._now)

    @cached_property
    def _arranger(self) -> "Arranger":
        from toolyard.workspace.arranger import Arranger

        return Arranger(self._workspace, self._transactions)

    @cached_property
    def _trash(self) -> "Trash":
        from toolyard.workspace.trash import Trash

        return Trash(self._config.home / "trash", self._workspace, self._transactions, self._now)

    @cached_property
    def _reads(self) -> "ReadHistory":
        from toolyard.workspace.read_history import ReadHistory

        return ReadHistory(self._config.home / "reads")

    @cached_property
    def _files(self) -> "FileChanger":
        from toolyard.tools.file_changer import FileChanger

        strict = self._config.settings.strict_edits
        return FileChanger(self._workspace, self._undo, self._reads, self._encodings, strict=strict)

    def _build_ls(self) -> Tool:
        from toolyard.tools.ls import LS

        return LS(self._workspace)

    def _build_glob(self) -> Tool:
        from toolyard.tools.glob import Glob

        return Glob(self._workspace)

    def _build_grep(self) -> Tool:
        from toolyard.tools.grep import Grep

        return Grep(self._workspace, fallback_encodings=self._encodings)

    def _build_read(self) -> Tool:
        from toolyard.tools.read import Read

        return Read(self._workspace, self._reads, fallback_encodings=self._encodings)

    def _build_write(self) -> Tool:
        from toolyard.tools.write import Write

        return Write(self._files)

    def _build_edit(self) -> Tool:
        from toolyard.tools.edit import Edit

        return Edit(self._files)

    def _build_multi_edit(self) -> Tool:
        from toolyard.tools.multi_edit import MultiEdit

        return MultiEdit(self._files)

    def _build_notebook_edit(self) -> Tool:
        from toolyard.tools.notebook_edit import NotebookEdit

        return NotebookEdit(self._files)

    def _build_apply_patch(self) -> Tool:
        from toolyard.tools.apply_patch import ApplyPatch

        return ApplyPatch(self._files)

    def _build_web_fetch(self) -> Tool:
        from toolyard.tools.web_fetch import WebFetch
        from toolyard.workspace.safe_fetch import SafeFetch

        return WebFetch(SafeFetch(), fallback_encodings=self._encodings)

    def _build_file_operator(self) -> Tool:
        from toolyard.tools.file_operator import FileOperator
        from toolyard.workspace.safe_fetch import SafeFetch

        return FileOperator(
            self._workspace,
            self._files,
            self._arranger,
            self._trash,
            self._undo,
            self._reads,
            SafeFetch(),
            fallback_encodings=self._encodings,
        )
