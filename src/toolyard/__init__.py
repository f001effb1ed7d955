"""Toolyard: any program that reads stdin and writes stdout becomes a tool for any model.

import toolyard

with toolyard.open(project="my-project") as yard:
    envelope = yard.call("Read", {"path": "README.md"})
"""

import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from toolyard.blocking import BlockingYard
    from toolyard.errors import ConfigError, DuplicateTool, InvalidEnvelope, StorageError, ToolyardError, UsageError
    from toolyard.protocol.edits.diff import Hunk
    from toolyard.protocol.envelope import Envelope, ErrorCode, Fault, Status
    from toolyard.protocol.json import JsonObject
    from toolyard.protocol.tool import Outcome, ToolCall
    from toolyard.yard.yard import Yard

__all__ = [
    "BlockingYard",
    "ConfigError",
    "DuplicateTool",
    "Envelope",
    "ErrorCode",
    "Fault",
    "InvalidEnvelope",
    "Outcome",
    "Status",
    "StorageError",
    "ToolCall",
    "ToolyardError",
    "UsageError",
    "Yard",
    "open",
    "open_async",
    "parse_reply",
    "parse_requests",
    "render_reply",
    "structured_patch",
]
__version__ = "0.1.0"

_TYPES: Final = {
    "BlockingYard": "toolyard.blocking",
    "ConfigError": "toolyard.errors",
    "DuplicateTool": "toolyard.errors",
    "Envelope": "toolyard.protocol.envelope",
    "ErrorCode": "toolyard.protocol.envelope",
    "Fault": "toolyard.protocol.envelope",
    "InvalidEnvelope": "toolyard.errors",
    "Outcome": "toolyard.protocol.tool",
    "Status": "toolyard.protocol.envelope",
    "StorageError": "toolyard.errors",
    "ToolCall": "toolyard.protocol.tool",
    "ToolyardError": "toolyard.errors",
    "UsageError": "toolyard.errors",
    "Yard": "toolyard.yard.yard",
}


if not TYPE_CHECKING:  # type checkers have the imports above, and report a name that does not exist

    def __getattr__(name: str) -> type:
        """Import a public type when it is first used: every command pays for what this module imports."""
        if name not in _TYPES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        globals()[name] = getattr(import_module(_TYPES[name]), name)
        return globals()[name]

    def __dir__() -> list[str]:
        return sorted({*globals(), *_TYPES})


def open(project: str | os.PathLike[str] = ".", home: str | os.PathLike[str] | None = None) -> "BlockingYard":  # noqa: A001
    """Open a Yard on ``project``, without a server; safe from several threads. Use it as ``with``, or close it."""
    from toolyard.blocking import BlockingYard
    from toolyard.config import load_config

    return BlockingYard(load_config(project, home))


def open_async(
    project: str | os.PathLike[str] = ".", home: str | os.PathLike[str] | None = None
) -> "AbstractAsyncContextManager[Yard]":
    """Open a Yard in a program with an event loop: ``async with toolyard.open_async(...) as yard``."""
    from toolyard.config import load_config
    from toolyard.hosts.open_yard import open_yard

    return open_yard(load_config(project, home), serves=False)


def structured_patch(old: str, new: str, context: int = 3) -> "list[Hunk]":
    """Return the changes between two texts, as the hunks of npm ``diff`` 7."""
    from toolyard.protocol.edits.diff import structured_patch

    return structured_patch(old, new, context)


def parse_requests(text: str) -> "list[JsonObject]":
    """Return the tool requests in a model's text, in order: the same list as ``toolyard request parse`` prints."""
    from toolyard.protocol.requests.scanner import parse_requests

    return parse_requests(text)


def parse_reply(text: str) -> "JsonObject":
    """Return the structured reply in a model's text, as ``toolyard reply parse`` prints it. Never raises."""
    from toolyard.protocol.reply import parse_reply

    return parse_reply(text).to_dict()


def render_reply(text: str, to: str = "html", lang: str = "en") -> str:
    """Render the structured reply in a model's text as ``html``, ``markdown``, ``terminal`` or ``json``.

    A text that is no reply gives its error and itself in the same form. ``lang`` is ``en`` or ``zh``: the language of
    what is not the model's.
    """
    from toolyard.protocol.replies.reply_prompt import Language
    from toolyard.render import Target, render

    for name, value, choices in (("target", to, list(Target)), ("language", lang, list(Language))):
        if value not in choices:
            raise ValueError(f"unknown {name} {value!r}: choose one of {', '.join(choices)}")
    return render(text, Target(to), Language(lang))
