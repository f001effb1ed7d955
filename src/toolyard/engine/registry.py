"""The tools of a Yard, by their exact names."""

from collections.abc import Iterable, Iterator

from toolyard.errors import DuplicateTool
from toolyard.protocol.arguments import nearest
from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure
from toolyard.protocol.tool import Tool


class Registry:
    """A name is matched letter by letter: a look-alike finds nothing but a suggestion (S-27)."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        self._names: dict[str, Tool] = {}
        for tool in tools:
            self.add(tool)

    def add(self, tool: Tool) -> None:
        for name in (tool.spec.name, *tool.spec.aliases):
            if name in self._names:
                raise DuplicateTool(f"two tools are called '{name}': rename or disable one of them")
        self._tools[tool.spec.name] = tool
        self._names |= dict.fromkeys((tool.spec.name, *tool.spec.aliases), tool)

    def __iter__(self) -> Iterator[Tool]:
        return iter(sorted(self._tools.values(), key=lambda tool: tool.spec.name))

    def get(self, name: str) -> Tool:
        tool = self._names.get(name)
        if tool is None:
            said = name.encode(errors="replace").decode()[:100]
            guess = nearest(said, list(self._names))
            meant = f" Did you mean '{guess}'?" if guess else ""
            raise Failure(
                ErrorCode.NOT_FOUND,
                f"There is no tool called '{said}'.{meant}",
                hint=f"The tools are {', '.join(tool.spec.name for tool in self)}.",
            )
        return tool
