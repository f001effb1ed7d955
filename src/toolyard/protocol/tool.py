"""Tools: a call of one, the result that it returns, and its specification.

A ``ToolCall`` asks to run one tool; a numbered batch is several calls written as one (001 §4.2). The tool returns a
``Result`` or raises a ``Failure``; the runner makes the ``Outcome`` of it, which dialects read. A ``ToolSpec`` is
client JSON for those who ask for the tools, and exact text for other hosts.
"""

import json
import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from toolyard.message import Message
from toolyard.protocol.envelope import Envelope, ErrorCode, Extras, Failure
from toolyard.protocol.json import Json, JsonObject, json_bytes, json_value

SIGNERS: Final = ("maid", "valet")
"""The names under which an agent signs a request (001 §4.1); no parameters, except of a tool that says so."""
MAX_ARGUMENTS: Final = 4 * 2**20  # bytes of the arguments of one call, as JSON
_MAX_EXCERPT = 2000  # characters of arguments that cannot be read
_LONGEST_ESCAPE = 6  # bytes that one character of a text can become
_NUMBER = re.compile(r"[1-9][0-9]*")
_MAX_DIGITS = 6  # of the number of a batch item: a longer one is part of a name
Checkpoint: TypeAlias = Callable[[], None]
"""Called by a tool between its steps; raises Failure when the call was cancelled or its deadline has passed."""
Confirm: TypeAlias = Callable[[], Awaitable[None]]
"""Raises Failure when the call has ended: another host took this one for dead, or its sender gave up."""


class Origin(StrEnum):
    """The way a call came in; it decides whether approval is needed."""

    CLI = "cli"
    PYTHON = "python"
    HTTP = "http"
    CHAT = "chat"
    MCP = "mcp"
    SCHEDULE = "schedule"


ASKING_ORIGINS: Final = frozenset({Origin.CHAT, Origin.MCP, Origin.SCHEDULE})
"""Calls from these ask for permission."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    id: str
    tool: str
    use_id: str = ""  # the model's own name for it, when it gave one; need not be unique
    arguments: JsonObject = field(default_factory=dict)
    maid: str | None = None  # the agent's signature; a label, never an identity
    caller: str = "local"  # a key, a Yard, or cli:<project>
    origin: Origin = Origin.PYTHON
    timeout_s: float | None = None  # tighter than the tool's own limit, never looser
    force: bool = False  # set by a person; no argument a model writes can set it
    avoids_protected: bool = False  # no approval covers protected paths: it may write none
    auto_safe: bool = False  # the chat's client may approve and allows undoable changes; set by the gateway only
    approved: str = ""  # the digest of this call as a person approved it earlier
    chat: str = ""  # the chat that it is part of
    retry_of: str = ""  # the earlier call that it repeats
    unreadable: str = ""  # the reason why it cannot run: it is reported and recorded instead
    metadata: JsonObject = field(default_factory=dict)  # data from the host for a plugin, beside the arguments


def require_readable(call: ToolCall) -> None:
    """Raise Failure when the call must not run."""
    if call.unreadable:
        raise Failure(ErrorCode.INVALID_PARAM, call.unreadable)
    if problem := describe_oversize(call.arguments):
        hint = Message("Send less at once, such as the path of a file instead of what is in it.")
        raise Failure(
            ErrorCode.INVALID_PARAM,
            Message("{tool} cannot run: {problem}.", tool=call.tool, problem=problem),
            hint=hint,
        )


def parse_arguments(written: str) -> tuple[JsonObject, str]:
    """Return the arguments that a model wrote as JSON; or an excerpt of what cannot be read, and the reason."""
    sent: JsonObject = {"written": written[:_MAX_EXCERPT]}
    try:
        value = json_value(written) if written.strip() else {}
    except (ValueError, RecursionError) as error:
        return sent, Message(
            "The arguments of this call are not JSON, so it was not run: {error}. Send the whole call again.",
            error=error,
        )
    if isinstance(value, dict):
        return value, ""
    return sent, Message("The arguments of a call must be a JSON object.")


def describe_oversize(arguments: Mapping[str, Json]) -> str:
    """Return why the arguments are too large; empty when they are not, or are no JSON. Cheap for small ones."""
    size = 0
    for key, value in arguments.items():
        if isinstance(value, dict | list):
            size = MAX_ARGUMENTS
            break
        size += len(value) + len(str(key)) if isinstance(value, str) else 40
    if size * _LONGEST_ESCAPE < MAX_ARGUMENTS:
        return ""
    try:
        size = len(json_bytes(dict(arguments)))
    except (TypeError, ValueError, RecursionError):
        return ""
    if size <= MAX_ARGUMENTS:
        return ""
    return Message("its arguments are {size:,} bytes, and {most:,} are allowed", size=size, most=MAX_ARGUMENTS)


def find_signer(arguments: Mapping[str, Json]) -> str | None:
    """Return the agent's signature in these arguments, or None."""
    return next((value for name in SIGNERS if isinstance(value := arguments.get(name), str) and value.strip()), None)


def fold_name(name: str) -> str:
    """Return the form in which names are compared: ``startLine``, ``Start-Line`` and ``start_line`` are one."""
    return name.replace("_", "").replace("-", "").lower()


def split_batch(arguments: Mapping[str, Json], names: Collection[str]) -> list[JsonObject] | None:
    """Return the items of a numbered batch in order, or None when ``arguments`` is a plain call.

    ``command1``, ``filePath1``, ``command2``, ... are numbered when the word before the number is one of ``names``.
    Arguments without a number belong to every item. Numbers run from 1 without gaps: a gap is a Failure, because
    guessing would lose or invent a call.
    """
    known = {fold_name(name) for name in names}
    shared: JsonObject = {}
    items: dict[int, JsonObject] = {}
    for key, value in arguments.items():
        name, number = _split_number(key, known)
        if number:
            items.setdefault(number, {})[name] = value
        else:
            shared[key] = value
    if not items:
        return None
    missing = next(number for number in range(1, len(items) + 2) if number not in items)
    if missing <= len(items):
        raise Failure(
            ErrorCode.INVALID_PARAM,
            Message(
                "The batch has arguments numbered {items} but none numbered {missing}.",
                items=max(items),
                missing=missing,
            ),
            hint=Message("Number the commands of a batch 1, 2, 3, ... without gaps."),
        )
    return [{**shared, **items[number]} for number in sorted(items)]


def _split_number(key: str, known: Collection[str]) -> tuple[str, int]:
    """Split ``filePath2`` into its name and its number; a known name has the number 0."""
    if fold_name(key) not in known:
        for start in range(len(key) - 1, max(0, len(key) - _MAX_DIGITS - 1), -1):
            if _NUMBER.fullmatch(key, start) and fold_name(key[:start]) in known:
                return key[:start], int(key[start:])
    return key, 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The return value of a tool for the runner, which times it and makes the envelope."""

    data: JsonObject
    text: str  # what was done, why it is partial, what to do next
    partial: bool = False  # partial for a reason that ``data`` does not show by itself
    stats: Mapping[str, int | float | str] = field(default_factory=dict)
    context: JsonObject = field(default_factory=dict)
    extras: Extras = field(default_factory=Extras)


class Course(NamedTuple):
    """The course of a call, for its record."""

    ran: float | None = None  # start of its tool, in seconds since 1970; None: it never started
    waited_ms: float = 0.0  # for approval; not part of its run time
    process: JsonObject | None = None  # of a plugin: its process and exit


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The envelope of a finished call, and the data that the envelope does not show."""

    envelope: Envelope
    root: str  # the project's absolute path
    arguments: JsonObject = field(default_factory=dict)  # as the tool got them: canonical names, typed, complete
    extras: Extras = field(default_factory=Extras)
    batch: "tuple[BatchItem, ...]" = ()
    course: Course = Course()  # noqa: RUF009 it is a tuple


class BatchItem(NamedTuple):
    """One call of a batch, and its outcome."""

    call: ToolCall
    outcome: Outcome
    reads: bool  # its content is the answer; a write only has a message


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
    commands: tuple[ToolCommand, ...] = field(default=(), repr=False)  # of a tool that a prompt shows one by one
    display_name: str = ""  # for people; empty: its name
    forms: tuple[CommandForm, ...] = field(default=(), repr=False)  # of a plugin with several commands
    batch_example: str = ""  # a request for several commands that can run as it is
    prompt_text: str | None = None  # a plugin's own text for prompts, as VCPToolBox lays it out; None: made from these
    unlisted: tuple[str, ...] = ()  # parameters for programs: no model is told about them
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


def spec_to_json(spec: ToolSpec) -> JsonObject:
    """Return the client JSON of a tool."""
    return {
        "name": spec.name, "description": spec.description, "risk": spec.risk.value, "parameters": spec.parameters,
        "output_schema": (spec.mcp or {}).get("output_schema"), "synonyms": dict(spec.synonyms),
        "aliases": list(spec.aliases), "timeout_s": spec.timeout_s,
    }  # fmt: skip


def translation_to_json(one: Translation) -> JsonObject:
    """Return the texts about a tool and its parameters; those about commands and settings stand with them."""
    return {"display_name": one.display_name, "description": one.description, "parameters": dict(one.parameters)}


def spec_to_text(spec: ToolSpec) -> str:
    """Return a specification as exact text for another host."""
    value = {name: getattr(spec, name) for name in ToolSpec.__dataclass_fields__}
    value |= {
        "translations": _write_translations(spec.translations), "commands": [asdict(one) for one in spec.commands],
        "forms": [{**asdict(form), "translations": _write_translations(form.translations)} for form in spec.forms],
        "synonyms": dict(spec.synonyms),
    }  # fmt: skip
    return json.dumps(value, separators=(",", ":"))


_TUPLES = ("aliases", "reading_commands", "examples", "ask_always_with", "unlisted")  # fields


def spec_from_text(text: str) -> ToolSpec:
    """Read a specification; fields that a newer host adds are ignored, and those that an older one lacks are empty."""
    value = json.loads(text)
    known = {key: value[key] for key in ToolSpec.__dataclass_fields__ if key in value}
    lists = {key: tuple(value.get(key, ())) for key in _TUPLES}
    commands = tuple(ToolCommand(**{**one, "required": tuple(one["required"])}) for one in value.get("commands", ()))
    forms = tuple(map(_read_form, value.get("forms", ())))
    read = {
        "translations": _read_translations(value),
        "commands": commands,
        "forms": forms,
        "risk": Risk(value["risk"]),
    }
    return ToolSpec(**{**known, **lists, **read})


def _read_form(value: JsonObject) -> CommandForm:
    known: dict[str, Any] = {key: value[key] for key in CommandForm.__dataclass_fields__ if key in value}
    examples = tuple(known.get("examples", ()))
    return CommandForm(**{**known, "translations": _read_translations(known), "examples": examples})


def _write_translations(translations: Mapping[str, Translation]) -> JsonObject:
    return {language: translation_to_json(one) for language, one in translations.items()}


def _read_translations(value: Mapping[str, Any]) -> dict[str, Translation]:
    return {language: Translation(**one) for language, one in value.get("translations", {}).items()}
