"""The tools of connected nodes, for a Yard whose server has opened the socket for them: see ``vcp.nodes``."""

from collections.abc import Callable, Hashable, Iterator
from typing import TYPE_CHECKING

from toolyard.protocol.json import JsonObject
from toolyard.protocol.tool import Tool
from toolyard.workspace.home_folder import StateFile
from toolyard.yard.state import Basis, State

if TYPE_CHECKING:
    from toolyard.vcp.nodes.node_files import NodeFiles
    from toolyard.vcp.nodes.node_tool import NodeTool
    from toolyard.vcp.nodes.nodes import Nodes


class NodeSource:
    """Without ``open`` there are no nodes, and nothing of them is loaded."""

    def __init__(
        self,
        basis: Basis,
        *,
        state: Callable[[], State],
        find_other: Callable[[str], Tool | None],
        others: Callable[[], Hashable],
    ) -> None:
        """``find_other`` finds the tools that are no node's, of which ``others`` is the version."""
        self._basis, self._state, self._find_other, self._others = basis, state, find_other, others
        self.nodes: Nodes | None = None
        self._files: NodeFiles | None = None

    def open(self, *, changed: Callable[[], None]) -> "Nodes":
        """Let nodes connect; ``changed`` is told when tools have come or gone."""
        from toolyard.vcp.nodes.node_files import NodeFiles
        from toolyard.vcp.nodes.node_tool import NodeTasks
        from toolyard.vcp.nodes.nodes import ALLOWED, NodeContext, Nodes

        config, state = self._basis.config, self._state()
        nodes = self.nodes = Nodes(
            NodeContext(
                review=config.settings.node_review,
                allowed=StateFile(config.home / ALLOWED),
                now=lambda: self._basis.clock.now().astimezone(state.zone),
                tasks=NodeTasks(state.tasks),
                has_tool=lambda name: self._find_other(name) is not None,
                others=self._others,
                changed=changed,
            )
        )
        if config.vcp is not None:
            self._files = NodeFiles(config.vcp, nodes.list_allowed, self._basis.clock.monotonic)
        return nodes

    def find(self, name: str) -> "NodeTool | None":
        return self.nodes.find(name) if self.nodes is not None else None

    def all(self) -> "Iterator[NodeTool]":
        if self.nodes is not None:
            yield from self.nodes.all()

    def version(self) -> Hashable:
        return self.nodes.version() if self.nodes is not None else 0

    async def bring_files(self, arguments: JsonObject) -> JsonObject:
        """Return arguments that name copies of the files that only a node has. Raises Failure."""
        return arguments if self._files is None else await self._files.bring(arguments)

    async def close(self) -> None:
        if self.nodes is not None:
            await self.nodes.close()
