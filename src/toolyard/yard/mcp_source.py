"""The tools of MCP servers for a Yard, found when somebody asks for one: the SDK is loaded by the first call."""

import os
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from toolyard.message import Message
from toolyard.yard.plugin_source import build_policy
from toolyard.yard.state import Basis

if TYPE_CHECKING:
    from toolyard.dialects.mcp_config import ServerDeclaration
    from toolyard.plugins.mcp.mcp_tool import McpTool
    from toolyard.plugins.mcp.servers import McpServers
    from toolyard.plugins.process.children import Children
    from toolyard.plugins.process.launch import Starter


class McpSource:
    def __init__(
        self,
        basis: Basis,
        *,
        processes: "Callable[[], tuple[Children, Starter]]",
    ) -> None:
        self._basis, self._processes = basis, processes
        self._servers: McpServers | None = None
        self._catalogue_version: Hashable = None
        self._tools: dict[str, McpTool] = {}
        self._collisions: list[str] = []

    @property
    def servers(self) -> "McpServers":
        if self._servers is None:
            from toolyard.plugins.mcp.servers import McpServers, ServerContext

            config = self._basis.config
            self._servers = McpServers(
                ServerContext(
                    home=config.home,
                    project=config.project.resolve(),
                    environ=config.environ,
                    secret_keys=config.secret_variables,
                    keep_secret=self._basis.mask.add,
                    monotonic=self._basis.clock.monotonic,
                    policy=build_policy(config),
                    own_command=config.own_command,
                    processes=self._processes,
                )
            )
        return self._servers

    def find(self, name: str) -> "McpTool | None":
        """Return a tool that was allowed, also one that is withheld: its call then says why."""
        from toolyard.plugins.mcp.definition import PREFIX

        return self._catalogue().get(name) if name.startswith(PREFIX) else None

    def all(self) -> "Iterator[McpTool]":
        """Yield the tools that are offered."""
        return (tool for tool in self._catalogue().values() if not tool.is_withheld)

    @property
    def name_collisions(self) -> list[str]:
        """The tools that are not offered because one of another server has their name, for people to read."""
        self._catalogue()
        return self._collisions

    def _catalogue(self) -> "dict[str, McpTool]":
        """Return the tools by name; rebuilt only when another one is allowed."""
        version, _ = self.servers.version()
        if version != self._catalogue_version:
            self._tools, self._collisions = _make_tools(self.servers)
            self._catalogue_version = version
        return self._tools

    def version(self) -> Hashable:
        return self.servers.version()

    def list_programs(self, root: Path) -> list[Path]:
        """Return the files and folders below ``root`` that a declared server may run."""
        declared = [entry.declared for entry in self.servers.declarations.all()]
        return [place for server in declared for place in _list_program_paths(server, root, self._basis.config.environ)]

    async def close(self) -> None:
        if self._servers is not None:
            await self._servers.close()


def _make_tools(servers: "McpServers") -> "tuple[dict[str, McpTool], list[str]]":
    from toolyard.plugins.mcp.mcp_tool import McpTool
    from toolyard.protocol.tool import Risk

    tools: dict[str, McpTool] = {}
    collisions: list[str] = []
    for entry, definitions in servers.iter_allowed():
        risk = Risk.NETWORK if entry.declared.url else Risk.EXECUTE
        for definition in definitions:
            tool = McpTool(servers, entry.name, definition, risk=risk, launch=entry.digest)
            first = tools.setdefault(tool.spec.name, tool)
            if first is not tool:
                collisions.append(
                    Message(
                        "{server}: its tool {tool} is not offered, because {name} is already the name of {other} of "
                        "{other_server}: rename one of the servers",
                        server=entry.name,
                        tool=definition.name,
                        name=tool.spec.name,
                        other=first.definition.name,
                        other_server=first.server,
                    )
                )
    return tools, collisions


def _list_program_paths(server: "ServerDeclaration", root: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield every place below ``root`` that the command of an MCP server may mean, as a path or a Python module."""

    from toolyard.dialects.mcp_config import expand_variables

    def filled(text: str) -> str:
        with suppress(KeyError):  # such a server does not start
            text = expand_variables(text, environ)
        return text.replace("\0", "")

    folder = os.path.join(root, filled(server.cwd))
    for word in map(filled, ("", server.command, *server.args)):
        module = word.replace(".", "/")
        for name in (word, word.rpartition("=")[2], module, f"{module}.py"):
            place = Path(os.path.realpath(os.path.join(folder, name)))
            if root in place.parents:
                yield place
