"""Tools: the specification of a tool and its one method."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, TypeAlias

from toolyard.protocol.call import ToolCall
from toolyard.protocol.json import JsonObject
from toolyard.protocol.outcome import Result

Checkpoint: TypeAlias = Callable[[], None]

"""Called by a tool between its steps; raises Failure when the call was cancelled or its deadline has passed."""


Confirm: TypeAlias = Callable[[], Awaitable[None]]
"""Raises Failure when the call has ended: another host took this one for dead, or its sender gave up."""


async def confirm_start(checkpoint: Checkpoint) -> None:
    """Check, as the last step before a process gets the call, that the call is still to run, and to run here."""
    confirm: Confirm | None = getattr(checkpoint, "confirm", None)  # a tenth of the time of a protocol's isinstance
    if confirm is not None:
        await confirm()
    checkpoint()


class Risk(StrEnum):
    READ = "read"
    WRITE = "write"
    EXECUTE = "execute"
    NETWORK = "network"


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """The texts of a tool in another language, for people and for models."""

    display_name: str = ""  # empty: the tool's own
    description: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)  # help by name; "edits.text": inside edits
    commands: Mapping[str, str] = field(default_factory=dict)  # the description of each command of a plugin, by name
    settings: Mapping[str, str] = field(default_factory=dict)  # the description of each setting of a plugin, by key


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCommand:
    """One command of a tool that has several, as a prompt shows it. Texts are by language: "en", "zh"."""

    name: str
    description: Mapping[str, str]
    parameters: Mapping[str, Mapping[str, str]]  # help by the name that callers write
    required: tuple[str, ...]
    example: str  # a request that can run as it is


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandForm:
    """One command of a plugin that has several, as a form shows it."""

    name: str
    display_name: str = ""
    description: str = ""
    translations: Mapping[str, Translation] = field(default_factory=dict)  # by language: "zh"
    parameters: JsonObject  # the JSON Schema of its calls, with the argument that selects it
    examples: tuple[JsonObject, ...] = ()  # arguments of calls


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ToolSpec:
    """A tool's specification. Compared by identity, so that it can be the key of caches."""

    name: str
    description: str  # for the model
    parameters: JsonObject  # a JSON Schema of type object
    translations: Mapping[str, Translation] = field(default_factory=dict, repr=False)  # by language: "zh"
    examples: tuple[JsonObject, ...] = ()  # arguments of calls that can run as they are
    commands: tuple[ToolCommand, ...] = field(
        default=(), repr=False
    )  # of a tool that a prompt shows command by command
    display_name: str = ""  # for people; empty: its name
    forms: tuple[CommandForm, ...] = field(default=(), repr=False)  # of a plugin with several commands
    batch_example: str = ""  # a request for several commands that can run as it is
    prompt_text: str | None = None  # a plugin's own text for prompts, as VCPToolBox lays it out; None: made from these
    on_request: bool = False  # duplicates other tools under other names: offered only to a chat that names it
    synonyms: Mapping[str, str] = field(default_factory=dict)  # another name -> the parameter it means
    aliases: tuple[str, ...] = ()  # other names of the tool
    risk: Risk = Risk.READ
    reading_commands: tuple[str, ...] = ()  # of a tool with several: the read-only ones
    exact_approval: bool = False  # every call asks, in every mode, unless a rule is about exactly its arguments
    ask_always_with: tuple[str, ...] = ()  # arguments with which no rule allows such a call
    fingerprint: str = ""  # of a plugin as it was reviewed
    plugin_id: str = ""  # distinguishes plugins of the same name; rules apply to one of them only
    hides_plugins: bool = False  # it is a plugin that hides others of its name
    timeout_s: float = 60.0
    splits_batches: bool = False  # built-in tools split numbered batches; plugins get them unchanged
    verbatim: bool = False  # a plugin gets the arguments as they were written; the schema only checks them
    mcp: JsonObject | None = None  # of an MCP server: its ``output_schema``, if any; its results are no envelopes
    idempotent: bool = False  # a call that was cut off may be run again
    runs_inline: bool = False  # its run waits for nothing but its own work: see engine/inline
    at_once: int = 0  # limit of its concurrent calls, on all hosts together; 0: none of its own

    @property
    def parameter_names(self) -> tuple[str, ...]:
        properties = self.parameters.get("properties")
        return tuple(properties) if isinstance(properties, dict) else ()


class Tool(Protocol):
    @property
    def spec(self) -> ToolSpec: ...

    async def run(self, call: ToolCall, checkpoint: Checkpoint) -> Result:
        """Do the work of ``call``, whose arguments are already checked and complete. Raises Failure."""
        ...


CheckArguments: TypeAlias = Callable[[ToolCall], None]
"""The method ``check`` of a tool with checks beyond its schema: raises Failure when the call could not begin.

Called before approval is requested; has no effects.
"""


def find_check(tool: Tool) -> CheckArguments | None:
    return getattr(tool, "check", None)
