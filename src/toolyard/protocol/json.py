"""JSON values, and the check that a Python value is one."""

import json
import math
import re
from typing import Any, TypeAlias

import orjson

from toolyard.message import Message

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
            return Message("json.too_deep", "{path} is nested deeper than {most} levels", path=path, most=MAX_DEPTH)
        values += len(item)
        if values > most:
            return Message(
                "json.too_many_values",
                "{where} has more than {most} values: send fewer, or put them into a file",
                where=where,
                most=f"{most:,}",
            )
        is_object = isinstance(item, dict)
        for step, inner in item.items() if isinstance(item, dict) else enumerate(item):
            if is_object and not (isinstance(step, str) and is_unicode(step)):
                return Message(
                    "json.invalid_key",
                    "{path} has the key {key}, which is not a text that JSON can write",
                    path=path,
                    key=repr(step),
                )
            if isinstance(inner, str) and inner.isascii():
                continue  # the usual case
            if isinstance(inner, _CONTAINERS):
                pending.append((inner, _inside(path, step), depth + 1))
            elif problem := _scalar_problem(inner):
                return _describe(_inside(path, step), problem)
    return None


def _describe(path: str, problem: str) -> Message:
    return Message("json.problem", "{path} {problem}", path=path, problem=problem)


def _inside(path: str, step: str | int) -> str:
    return f"{path}.{step}" if isinstance(step, str) else f"{path}[{step}]"


def _scalar_problem(item: object) -> str | None:
    match item:
        case str():
            return (
                None
                if is_unicode(item)
                else Message("json.unpaired_surrogate", "holds an unpaired surrogate, which no UTF-8 text can carry")
            )
        case None:
            return None
        case float():
            return (
                None
                if math.isfinite(item)
                else Message("json.not_finite", "is {value}, which JSON cannot write", value=str(item))
            )
        case int():
            return (
                None
                if item.bit_length() <= MAX_INT_BITS
                else Message("json.long_integer", "is an integer of more than {most} bits", most=MAX_INT_BITS)
            )
        case _:
            return Message("json.wrong_type", "is a {type}, which is not JSON", type=type(item).__name__)


def is_unicode(text: str) -> bool:
    """Return whether UTF-8 can carry a text: half of a surrogate pair cannot."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
