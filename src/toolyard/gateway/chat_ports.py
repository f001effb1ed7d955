"""The ports of a chat: the values and callables that it needs from the program around it."""

from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from toolyard.protocol.content import Media
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.records.task_record import Task
from toolyard.protocol.tool import Outcome, ToolCall, ToolSpec


class CallFactory(Protocol):
    def __call__(
        self, tool: str, arguments: JsonObject, *, caller: str, maid: str | None, metadata: JsonObject
    ) -> ToolCall:
        """Make a call that comes from a chat."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingApproval:
    """A call that runs only after an approval."""

    approval: str  # its id
    call_id: str
    tool: str
    about: str  # what it would work on: a path, an address, a command
    command: str  # that allows it, for a terminal
    url: str = ""  # of the page where people answer it


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPort:
    spec: Callable[[str], ToolSpec | None]  # of a tool of ours, by its exact name
    request: CallFactory
    settle: Callable[[ToolCall], Awaitable[Outcome]]
    find_outcome: Callable[[ToolCall], Awaitable[Outcome | None]]  # of a call that began before; None: it never did
    # Returns the shown outcome as a ``role: tool`` message, in a language: "en" or "zh".
    express: Callable[[ToolCall, Outcome, str], JsonObject]
    schedule: Callable[[ToolCall, str], Awaitable[Outcome]]  # keeps a call for later; the receipt, or why not
    # Returns those of these calls that wait for an approval.
    list_pending: Callable[[Collection[str]], Awaitable[list[PendingApproval]]]
    mask: Callable[[str], str]
    # Stores media for people to look at and returns the link to it; empty: there is none.
    publish: Callable[[Media], Awaitable[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptRequest:
    """The messages of a chat whose prompts are to be filled."""

    messages: list[Json]
    model: str
    caller: str
    is_plain: bool = False  # tools are off


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledPrompt:
    """Messages that were filled as another host would fill them."""

    messages: list[Json]
    lists_tools: bool = False


def _no_prompts() -> Mapping[str, str]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSources:
    """The sources of a prompt: the tools, and the values of placeholders."""

    specs: Callable[[], Iterable[ToolSpec]]  # of all tools: the built-in ones first, then the others, each by name
    version: Callable[[], Hashable]  # changes whenever they do, or their secrets
    static: Callable[[], Mapping[str, str]]
    task: Callable[[str, str, str], Awaitable[Task | None]]  # plugin, id, caller
    now: Callable[[], datetime]  # in the configured zone
    own: Callable[[], Mapping[str, str]] = _no_prompts  # the owner's prompts and variables, by name
    # Fills a whole request in place of all this: the prompts of an installation that is used in place.
    installed: Callable[[PromptRequest], Awaitable[InstalledPrompt]] | None = None
    mask: Callable[[str], str] = str  # of secrets, in the definitions of tools
    report_unfilled: Callable[[Iterable[str]], None] = lambda _: None  # names in a prompt that nothing fills
