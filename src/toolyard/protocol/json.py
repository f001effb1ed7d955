"""JSON values: reading and writing them fast, the check that a Python value is one, and values cut short."""

import json
import math
import re
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import orjson

from toolyard.message import Message
from toolyard.protocol.result_limits import MAX_PARAM_BYTES

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
JsonObject: TypeAlias = dict[str, Json]
_CONTAINERS = (dict, list, tuple)
_LONG = re.compile(rb"[0-9]{19}")  # may be beyond 64 bits, where orjson gives up or rounds
_LONG_TEXT = re.compile("[0-9]{19}")
MAX_DEPTH = 200  # deeper values come from attackers and break recursive readers on the other side
MAX_VALUES = 250_000  # in a client's request: more would block everybody else for seconds
MAX_INT_BITS = 4096  # Python refuses to write much longer ones, and no other reader expects them


def json_bytes(value: Json) -> bytes:
    """Return ``value`` as JSON, fast; integers of any length stay exact."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        return json.dumps(value, ensure_ascii=False).encode()


def json_value(raw: str | bytes) -> Any:
    """Parse well-formed JSON, fast; integers of any length stay exact."""
    long = _LONG_TEXT.search(raw) if isinstance(raw, str) else _LONG.search(raw)
    return json.loads(raw) if long else orjson.loads(raw)


def json_problem(value: object, where: str, *, most: float = math.inf) -> str | None:
    """Return why ``value`` cannot be written as JSON, or None when it can. Linear, and never recurses.

    ``most``: the limit of values in it, for those that come from outside: each costs far more than its bytes.
    """
    values = 0
    pending: list[tuple[object, str, int]] = [(value, where, 0)]  # containers, and first the value itself
    while pending:
        item, path, depth = pending.pop()
        if not isinstance(item, _CONTAINERS):
            problem = _scalar_problem(item)
            return _describe(path, problem) if problem else None
        if depth >= MAX_DEPTH:
            return Message("{path} is nested deeper than {most} levels", path=path, most=MAX_DEPTH)
        values += len(item)
        if values > most:
            return Message(
                "{where} has more than {most} values: send fewer, or put them into a file",
                where=where,
                most=f"{most:,}",
            )
        is_object = isinstance(item, dict)
        for step, inner in item.items() if isinstance(item, dict) else enumerate(item):
            if is_object and not (isinstance(step, str) and is_unicode(step)):
                return Message(
                    "{path} has the key {key}, which is not a text that JSON can write", path=path, key=repr(step)
                )
            if isinstance(inner, str) and inner.isascii():
                continue  # the usual case
            if isinstance(inner, _CONTAINERS):
                pending.append((inner, _inside(path, step), depth + 1))
            elif problem := _scalar_problem(inner):
                return _describe(_inside(path, step), problem)
    return None


def _describe(path: str, problem: str) -> Message:
    return Message("{path} {problem}", path=path, problem=problem)


def _inside(path: str, step: str | int) -> str:
    return f"{path}.{step}" if isinstance(step, str) else f"{path}[{step}]"


def _scalar_problem(item: object) -> str | None:
    match item:
        case str():
            return None if is_unicode(item) else Message("holds an unpaired surrogate, which no UTF-8 text can carry")
        case None:
            return None
        case float():
            return None if math.isfinite(item) else Message("is {value}, which JSON cannot write", value=str(item))
        case int():
            return (
                None
                if item.bit_length() <= MAX_INT_BITS
                else Message("is an integer of more than {most} bits", most=MAX_INT_BITS)
            )
        case _:
            return Message("is a {type}, which is not JSON", type=type(item).__name__)


def is_unicode(text: str) -> bool:
    """Return whether UTF-8 can carry a text: half of a surrogate pair cannot."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


# Arguments that say most, in this order; the console has the same list in lib/main-argument.ts.
_TELLING: Final = ("path", "file_path", "file", "url", "query", "pattern", "expression", "prompt", "text")
_COMMAND_NAME = re.compile(r"[\w.-]{1,60}")  # of a plugin, which is no more than its name; a shell's says more
_MAX_MAIN = 80


def find_main_argument(arguments: Json) -> str:
    """Return the argument that tells one call of a tool from another, as one short line; empty when there is none."""
    if not isinstance(arguments, Mapping):
        return ""
    texts = {
        name: value
        for name, value in arguments.items()
        if isinstance(value, str) and value.strip() and not (name == "command" and _COMMAND_NAME.fullmatch(value))
    }
    main = next((texts[name] for name in _TELLING if name in texts), next(iter(texts.values()), ""))
    line = " ".join(main[: 4 * _MAX_MAIN].split())
    return line if len(line) <= _MAX_MAIN else line[: _MAX_MAIN - 1] + "…"


def shorten_value(value: Json) -> Json:
    """Return a value whose long strings are cut, with a mark that says so."""
    if isinstance(value, str):
        return shorten_text(value)
    if isinstance(value, Mapping):
        return {key: shorten_value(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [shorten_value(inner) for inner in value]
    return value


def shorten_text(text: str) -> str:
    raw = text.encode()
    if len(raw) <= MAX_PARAM_BYTES:
        return text
    return raw[:MAX_PARAM_BYTES].decode(errors="ignore") + f"… [cut: {len(raw)} bytes in all]"
