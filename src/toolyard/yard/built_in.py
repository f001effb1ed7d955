"""The built-in tools of one project, and what undoes them. Each tool is imported when it is first looked up."""

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cached_property, partial
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING

from toolyard.config import Config
from toolyard.engine.registry import BUILD_LOCK, LazyTool
from toolyard.protocol.tool import Tool
from toolyard.settings import REPLACEABLE
from toolyard.tools.tool_words import ToolNames, list_tool_names
from toolyard.workspace.changes.transaction import list_record_files, records_folder
from toolyard.workspace.workspace import Workspace

if TYPE_CHECKING:
    from toolyard.tools.file_changer import FileChanger
    from toolyard.tools.tool_search import Catalogue
    from toolyard.workspace.changes.arranger import Arranger
    from toolyard.workspace.changes.transaction import Transactions
    from toolyard.workspace.changes.trash import Trash
    from toolyard.workspace.changes.undo import Undo
    from toolyard.workspace.read_history import ReadHistory
    from toolyard.workspace.safe_fetch import SafeFetch


class BuiltInTools:
    """The tools of the package ``tools``, and the parts of the workspace that they share."""

    def __init__(
        self, config: Config, workspace: Workspace, now: Callable[[], datetime], catalogue: "Callable[[], Catalogue]"
    ) -> None:
        """``catalogue``: all tools of the host."""
        self._catalogue = catalogue
        self._config, self._workspace, self._now = config, workspace, now
        self._transactions_folder = config.home / "transactions"
        self._closes: list[Callable[[], None]] = []  # of the parts that were made
        self._encodings = config.settings.fallback_encodings
        tools = (LazyTool(row.name, partial(self._build, row), aliases=row.aliases) for row in list_tool_names())
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
        for close in self._closes:
            close()

    @cached_property
    def _transactions(self) -> "Transactions":
        from toolyard.workspace.changes.transaction import Transactions

        transactions = Transactions(self._transactions_folder, self._workspace.root)
        self._closes.append(transactions.close)
        return transactions

    @property
    def undo(self) -> "Undo":
        with BUILD_LOCK:
            return self._undo

    @cached_property
    def _undo(self) -> "Undo":
        from toolyard.workspace.changes.undo import Undo

        folder = self._config.home / "undo"
        return Undo(folder, self._workspace, self._transactions, self._arranger, self._trash, self._now)

    @cached_property
    def _arranger(self) -> "Arranger":
        from toolyard.workspace.changes.arranger import Arranger

        return Arranger(self._workspace, self._transactions)

    @cached_property
    def _trash(self) -> "Trash":
        from toolyard.workspace.changes.trash import Trash

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

    def _build(self, row: ToolNames) -> Tool:
        """Build a tool: each parameter of its class that has the name of a part gets that part."""
        tool_class = getattr(import_module(f"toolyard.tools.{row.module}"), row.name)
        wanted = signature(tool_class).parameters
        tool: Tool = tool_class(**{name: make() for name, make in self._parts.items() if name in wanted})
        return tool

    @property
    def _parts(self) -> Mapping[str, Callable[[], object]]:
        """The parts that a tool can take, by the names of parameters."""
        return {
            "workspace": lambda: self._workspace,
            "reads": lambda: self._reads,
            "files": lambda: self._files,
            "arranger": lambda: self._arranger,
            "trash": lambda: self._trash,
            "undo": lambda: self._undo,
            "fetch": _make_fetch,
            "fallback_encodings": lambda: self._encodings,
            "catalogue": lambda: self._catalogue,
        }


def _make_fetch() -> "SafeFetch":
    from toolyard.workspace.safe_fetch import SafeFetch

    return SafeFetch()
