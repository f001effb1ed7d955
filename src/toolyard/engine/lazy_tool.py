"""A tool that is imported when it is first looked up: a command that runs one tool does not load the others."""

import threading
from collections.abc import Callable
from typing import Final

from toolyard.protocol.tool import Tool

BUILD_LOCK: Final = threading.RLock()
"""Held while a tool is built, so that threads which ask at the same time get the same tool and the same parts."""


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
