"""Toolyard: any program that reads stdin and writes stdout becomes a tool for any model.

import toolyard

with toolyard.open(project="my-project") as yard:
    envelope = yard.call("Read", {"path": "README.md"})
"""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolyard.app import Yard
    from toolyard.blocking import BlockingYard

__all__ = ["open", "open_async"]
__version__ = "0.1.0"


def open(project: str | os.PathLike[str] = ".", home: str | os.PathLike[str] | None = None) -> "BlockingYard":  # noqa: A001
    """A Yard on ``project``, without a server; safe from several threads. Use it as ``with``, or close it."""
    from toolyard.blocking import BlockingYard
    from toolyard.config import load

    return BlockingYard(load(project, home))


def open_async(project: str | os.PathLike[str] = ".", home: str | os.PathLike[str] | None = None) -> "Yard":
    """The same for programs with an event loop: ``async with toolyard.open_async(...) as yard``."""
    from toolyard.app import Yard
    from toolyard.config import load

    return Yard(load(project, home))
