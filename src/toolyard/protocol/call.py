"""ToolCall: one request to run one tool; and numbered batches, several calls written as one (001 §4.2)."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from toolyard.message import Message
from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure
from toolyard.protocol.json import Json, JsonObject, json_bytes, json_value


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


SIGNERS: Final = ("maid", "valet")
"""The names under which an agent signs a request (001 §4.1); no parameters, except of a tool that says so."""
MAX_ARGUMENTS: Final = 4 * 2**20  # bytes of the arguments of one call, as JSON
_MAX_EXCERPT = 2000  # characters of arguments that cannot be read
_LONGEST_ESCAPE = 6  # bytes that one character of a text can become
_NUMBER = re.compile(r"[1-9][0-9]*")
_MAX_DIGITS = 6  # of the number of a batch item: a longer one is part of a name


def require_readable(call: ToolCall) -> None:
    """Raise Failure when the call must not run."""
    if call.unreadable:
        raise Failure(ErrorCode.INVALID_PARAM, call.unreadable)
    if problem := describe_oversize(call.arguments):
        hint = Message("hint.send_less", "Send less at once, such as the path of a file instead of what is in it.")
        raise Failure(
            ErrorCode.INVALID_PARAM,
            Message("call.cannot_run", "{tool} cannot run: {problem}.", tool=call.tool, problem=problem),
            hint=hint,
        )


def parse_arguments(written: str) -> tuple[JsonObject, str]:
    """Return the arguments that a model wrote as JSON; or an excerpt of what cannot be read, and the reason."""
    sent: JsonObject = {"written": written[:_MAX_EXCERPT]}
    try:
        value = json_value(written) if written.strip() else {}
    except (ValueError, RecursionError) as error:
        return sent, Message(
            "call.arguments_not_json",
            "The arguments of this call are not JSON, so it was not run: {error}. Send the whole call again.",
            error=error,
        )
    if isinstance(value, dict):
        return value, ""
    return sent, Message("call.arguments_no_object", "The arguments of a call must be a JSON object.")


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
    return Message(
        "call.arguments_too_large",
        "its arguments are {size:,} bytes, and {most:,} are allowed",
        size=size,
        most=MAX_ARGUMENTS,
    )


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
                "call.batch_number_missing",
                "The batch has arguments numbered {items} but none numbered {missing}.",
                items=max(items),
                missing=missing,
            ),
            hint=Message("hint.number_batch", "Number the commands of a batch 1, 2, 3, ... without gaps."),
        )
    return [{**shared, **items[number]} for number in sorted(items)]


def _split_number(key: str, known: Collection[str]) -> tuple[str, int]:
    """Split ``filePath2`` into its name and its number; a known name has the number 0."""
    if fold_name(key) not in known:
        for start in range(len(key) - 1, max(0, len(key) - _MAX_DIGITS - 1), -1):
            if _NUMBER.fullmatch(key, start) and fold_name(key[:start]) in known:
                return key[:start], int(key[start:])
    return key, 0


def number_batch(items: Iterable[Mapping[str, Json]]) -> JsonObject:
    """Write several calls' arguments as one numbered batch: the inverse of ``split_batch``."""
    return {f"{key}{number}": value for number, item in enumerate(items, 1) for key, value in item.items()}
