"""The tools of a Yard, by their exact names.

A built-in tool is a ``LazyTool``, imported when it is first looked up: a command that runs one loads no other.
"""

import threading
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, Final, Protocol, runtime_checkable

from toolyard.dialects.plain_name import has_hash, plain_name
from toolyard.errors import DuplicateTool, UsageError
from toolyard.message import Message
from toolyard.protocol.arguments import find_nearest
from toolyard.protocol.envelope import ErrorCode, Failure
from toolyard.protocol.tool import Tool


class Source(Protocol):
    """Tools that come and go, such as plugins."""

    def find(self, name: str) -> Tool | None: ...

    def all(self) -> Iterable[Tool]: ...

    def version(self) -> Hashable:
        """Return a value that changes whenever ``all`` does; cheap."""
        ...


@runtime_checkable
class ExplainingSource(Protocol):
    """A source that knows of tools which cannot be called."""

    def explain_missing(self, name: str) -> str:
        """Return why there is no tool of this name, such as a plugin that cannot be read; empty: it is unknown."""
        ...


class LazyTool:
    """The names of a tool, and the function that imports and builds it."""

    def __init__(self, name: str, build: Callable[[], Tool], *, aliases: tuple[str, ...] = ()) -> None:
        self.name, self.aliases, self._build = name, aliases, build
        self._tool: Tool | None = None

    @classmethod
    def from_tool(cls, tool: Tool) -> "LazyTool":
        return cls(tool.spec.name, lambda: tool, aliases=tool.spec.aliases)

    def load(self) -> Tool:
        tool = self._tool
        if tool is None:
            with BUILD_LOCK:
                tool = self._tool = self._tool or self._build()
        return tool


class Registry:
    """Finds tools by their exact names: a look-alike only gets a suggestion (S-27).

    Built-in tools come first; a source is only asked for a name that none of them has, so that it costs nothing else.
    """

    def __init__(self, tools: Iterable[Tool | LazyTool] = (), sources: Iterable[Source] = ()) -> None:
        self._tools: dict[str, LazyTool] = {}
        self._names: dict[str, LazyTool] = {}
        self._sources = tuple(sources)
        for tool in tools:
            self.add(tool)

    def add(self, tool: Tool | LazyTool) -> None:
        entry = tool if isinstance(tool, LazyTool) else LazyTool.from_tool(tool)
        for name in (entry.name, *entry.aliases):
            if name in self._names:
                raise DuplicateTool(f"two tools are called '{name}': rename or disable one of them")
        self._tools[entry.name] = entry
        self._names |= dict.fromkeys((entry.name, *entry.aliases), entry)

    @property
    def sources(self) -> tuple[Source, ...]:
        return self._sources

    def prepend_source(self, source: Source) -> None:
        """Add a source before the existing ones."""
        self._sources = (source, *self._sources)

    def __iter__(self) -> Iterator[Tool]:
        tools = {name: entry.load() for name, entry in self._tools.items()}
        for source in self._sources:
            for tool in source.all():
                tools.setdefault(tool.spec.name, tool)
        return iter(sorted(tools.values(), key=lambda tool: tool.spec.name))

    def __call__(self, *, dialect: str) -> list[dict[str, Any]]:
        """Return the definitions of the tools as a model is given them: ``openai``, ``anthropic``, ``mcp``, ``vcp``."""
        from toolyard.dialects.tool_specs import Format, export

        if dialect not in list(Format):
            raise UsageError(
                Message(
                    "there are no tool definitions in '{dialect}': choose one of {names}",
                    dialect=dialect,
                    names=", ".join(Format),
                )
            )
        return [export(tool.spec, Format(dialect)) for tool in self]

    def version(self) -> Hashable:
        """Return a value that changes whenever the tools do; cheap, so that it can be the key of a cache."""
        return (len(self._tools), *(source.version() for source in self._sources))

    def list_built_in_first(self) -> list[Tool]:
        """Return the built-in tools and then the others, each in the order of their names."""
        return sorted(self, key=lambda tool: tool.spec.name not in self._tools)

    def get_built_in(self, name: str) -> Tool | None:
        """Return a built-in tool without asking the sources."""
        entry = self._names.get(name)
        return entry.load() if entry else None

    def get(self, name: str) -> Tool:
        tool = self.get_built_in(name)
        if tool is None:
            tool = next((match for source in self._sources if (match := source.find(name))), None)
        if tool is None:
            raise self._unknown_failure(name)
        return tool

    def resolve_name(self, name: str) -> str:
        """Return the own name of the tool whose exported definition has ``name``; any other name as it is."""
        if name in self._names or not has_hash(name):
            return name
        names = [tool.spec.name for tool in self]
        return name if name in names else next((own for own in names if plain_name(own) == name), name)

    def _unknown_failure(self, name: str) -> Failure:
        shown = name.encode(errors="replace").decode()[:100]
        explaining = (source for source in self._sources if isinstance(source, ExplainingSource))
        if why := next((why for source in explaining if (why := source.explain_missing(name))), ""):
            return Failure(
                ErrorCode.NOT_FOUND, Message("There is no tool called '{shown}': {why}", shown=shown, why=why)
            )
        names = [tool.spec.name for tool in self]
        guess = find_nearest(shown, [*names, *self._names])
        message = Message("There is no tool called '{shown}'.", shown=shown)
        if guess:
            message = Message("There is no tool called '{shown}'. Did you mean '{guess}'?", shown=shown, guess=guess)
        return Failure(ErrorCode.NOT_FOUND, message, hint=Message("The tools are {names}.", names=", ".join(names)))


BUILD_LOCK: Final = threading.RLock()
"""Held while a tool is built, so that threads which ask at the same time get the same tool and the same parts."""
