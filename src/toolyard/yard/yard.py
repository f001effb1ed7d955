"""The composition root: a Config becomes a Yard. The only module that knows everyone.

A Yard is the tools, and three parts: its ``calls``, their ``results`` and its ``state``.
"""

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, overload

from toolyard.config import Config
from toolyard.dialects import require_dialect
from toolyard.engine.clock import Clock, SystemClock
from toolyard.engine.ownership import identify_process
from toolyard.engine.registry import Registry, Source
from toolyard.plugins.process.process_output import ProcessRecords
from toolyard.protocol.envelope import Envelope
from toolyard.protocol.mask import Mask
from toolyard.protocol.store import Store
from toolyard.protocol.tool import Outcome, Tool, ToolCall
from toolyard.storage.sqlite import SqliteStore
from toolyard.storage.state_file import STATE
from toolyard.workspace.home_folder import keep_private, restrict_home
from toolyard.workspace.workspace import Workspace
from toolyard.yard.built_in import BuiltInTools
from toolyard.yard.calls import Arguments, Calls
from toolyard.yard.mcp_source import McpSource
from toolyard.yard.node_source import NodeSource
from toolyard.yard.plugin_source import HostOptions, PluginSource
from toolyard.yard.results import Results
from toolyard.yard.state import Basis, State
from toolyard.yard.vcp_source import VcpSource

if TYPE_CHECKING:
    from toolyard.engine.chats.prompts import Prompts
    from toolyard.plugins.process.children import Children
    from toolyard.plugins.process.launch import Starter
    from toolyard.tools.project_files import ProjectFiles
    from toolyard.workspace.folder_listing import FolderListing


class Yard:
    """The assembled program, for one event loop. Use it as ``async with``, or close it."""

    def __init__(
        self,
        config: Config,
        *,
        clock: Clock | None = None,
        store: Store | None = None,
        outside: HostOptions = HostOptions(),  # noqa: B008 it is frozen
    ) -> None:
        self.config = config
        self._workspace = workspace = Workspace(config.project)
        restrict_home(config.home)
        keep_private(config.home, workspace.root)
        self.mask = Mask(config.secrets)
        self.clock = clock or SystemClock()
        basis = Basis(config, workspace, self.clock, self.mask)
        self.project = basis.project
        self._built_in = BuiltInTools(config, workspace, self.clock.now, lambda: self.tools)
        try:
            self._built_in.recover_writes()
        except BaseException:
            workspace.close()
            raise
        self.boot = identify_process()
        self.state = State(
            basis,
            store or SqliteStore(config.home / STATE),
            owner=self.boot.name,
            calls=lambda: self.calls,
            is_detached=self._is_detached,
            outlives=outside.outlives,
        )
        self.runs = ProcessRecords()
        self.nodes = NodeSource(
            basis,
            state=lambda: self.state,
            find_other=self._find_own_tool,
            others=lambda: (self.mcp.version(), self.vcp.version(), self.plugins.version()),
        )
        self.plugins = PluginSource(
            basis,
            self._built_in,
            lambda: self.state.tasks,
            runs=self.runs,
            report_progress=self.state.journal.record_progress,
            bring_files=self.nodes.bring_files,
            outside=outside,
        )
        self.mcp = McpSource(basis, processes=self._processes)
        self.vcp = VcpSource(basis, self.plugins, calls=lambda: self.calls, state=lambda: self.state)
        sources: list[Source] = [] if outside.safe else [self.mcp, self.vcp, self.plugins, self.nodes]
        self.tools = Registry(self._built_in.tools, sources)
        self.results = Results(basis)
        self.calls = Calls(
            basis,
            self.state,
            self.tools,
            self._built_in,
            processes=self.runs.take,
            keep_media=self.results.keep_media,
            list_guarded=self._list_guarded,
        )
        self._closed = False

    @overload
    async def call(
        self, tool: str, arguments: Arguments | None = None, *, dialect: None = None, shown: bool = False
    ) -> Envelope: ...

    @overload
    async def call(
        self,
        tool: str,
        arguments: Arguments | None = None,
        *,
        dialect: str,
        shown: bool = False,
        tool_call_id: str | None = None,
    ) -> dict[str, Any]: ...

    @overload
    async def call(
        self,
        tool: str,
        arguments: Arguments | None = None,
        *,
        dialect: str | None = None,
        shown: bool = False,
        tool_call_id: str | None = None,
    ) -> Envelope | dict[str, Any]: ...

    async def call(
        self,
        tool: str,
        arguments: Arguments | None = None,
        *,
        dialect: str | None = None,
        shown: bool = False,
        tool_call_id: str | None = None,
    ) -> Envelope | dict[str, Any]:
        """Run a tool; the envelope, or a dict in ``dialect``. A failed tool is an envelope, no exception.

        ``arguments`` may be the JSON text that a model wrote. ``shown``: the result as a model sees it, not the full
        one. ``tool_call_id``: the model's id of the call, which the message in ``dialect`` answers.
        """
        require_dialect(dialect or "envelope", tool_call_id)
        call = self.calls.request(tool, arguments or {}, tool_call_id=tool_call_id or "")
        outcome = await self.settle(call)
        if dialect is not None:
            return self.express(call, outcome, dialect, shown=shown)
        return self.results.to_shown(call, outcome) if shown else outcome.envelope

    # The steps of ``call``, for programs that cancel calls or want several dialects: public, see docs/python.md.

    def request(self, tool: str, arguments: Arguments) -> ToolCall:
        return self.calls.request(tool, arguments)

    async def settle(self, call: ToolCall) -> Outcome:
        return await self.calls.settle(call)

    def cancel(self, call_id: str) -> bool:
        return self.calls.cancel(call_id)

    def express(self, call: ToolCall, outcome: Outcome, dialect: str, *, shown: bool = False) -> dict[str, Any]:
        return self.results.express(call, outcome, dialect, shown=shown)

    def open_folder(self, path: str) -> int:
        """Return a descriptor of a folder of the project, for the caller to close. Raises Failure. Blocks."""
        return self._workspace.open_descriptor(path)

    def list_folder(self, path: str, *, nearest: bool = False) -> "FolderListing":
        """Return the entries of a folder of the project, or of the nearest one above. Raises Failure. Blocks."""
        from toolyard.workspace.folder_listing import list_folder, list_nearest_folder

        return (list_nearest_folder if nearest else list_folder)(self._workspace, path)

    @cached_property
    def project_files(self) -> "ProjectFiles":
        from toolyard.tools.project_files import ProjectFiles

        return ProjectFiles(self._workspace, self.config.settings.fallback_encodings)

    @cached_property
    def prompts(self) -> "Prompts":
        from toolyard.engine.chats.prompts import Prompts

        return Prompts(self.config.home, self.config.project)

    async def close(self) -> None:
        """Stop what still runs and let go of the project. Closing twice is harmless."""
        if self._closed:
            return
        self._closed = True
        await self.state.stop()
        await self.calls.close()
        await self.nodes.close()
        await self.mcp.close()
        await self.vcp.close()
        await self.plugins.close()
        await self.state.close()
        self._built_in.close()
        self._workspace.close()

    async def __aenter__(self) -> "Yard":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _find_own_tool(self, name: str) -> Tool | None:
        """Return a tool that is no node's."""
        if (tool := self.tools.get_built_in(name)) is not None:
            return tool
        sources = (self.mcp, self.vcp, self.plugins)
        return next((match for source in sources if (match := source.find(name))), None)

    def _processes(self) -> "tuple[Children, Starter]":
        """Return what starts MCP servers: they are child processes like those of plugins."""
        return self.plugins.host.children, self.plugins.host.starter

    def _is_detached(self, plugin: str) -> bool:
        """Return whether the process of a plugin may end before its work does."""
        from toolyard.protocol.manifests.manifest import PluginType

        installed = self.plugins.plugins.get(plugin)
        if installed is None and self.nodes.nodes is not None:
            return True  # of a node, which forwards its callback when it has come back
        manifest = installed.manifest if installed else None
        return manifest is not None and manifest.detached and manifest.type is PluginType.ASYNCHRONOUS

    def _list_guarded(self) -> Iterator[Path]:
        """Yield the plugins and programs that no unattended call may change."""
        yield from (plugin.folder for plugin in self.plugins.plugins.all)
        yield from self.mcp.list_programs(self._workspace.root)
