"""JSON values, and the check that a Python value is one."""

import math
from typing import TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
JsonObject: TypeAlias = dict[str, Json]

MAX_DEPTH = 200  # deeper values come from attackers and break recursive readers on the other side
MAX_INT_BITS = 4096  # Python refuses to write much longer ones, and no other reader expects them


def json_problem(value: object, where: str) -> str | None:
    """Say why ``value`` cannot be written as JSON, or None when it can. Linear, and never recurses."""
    pending: list[tuple[object, str, int]] = [(value, where, 0)]
    while pending:
        item, path, depth = pending.pop()
        if not isinstance(item, dict | list | tuple):
            problem = _scalar_problem(item)
            if problem:
                return f"{path} {problem}"
        elif depth >= MAX_DEPTH:
            return f"{path} is nested deeper than {MAX_DEPTH} levels"
        elif isinstance(item, dict):
            for key, inner in item.items():
                if not isinstance(key, str) or not _is_unicode(key):
                    return f"{path} has the key {key!r}, which is not a text that JSON can write"
                pending.append((inner, f"{path}.{key}", depth + 1))
        else:
            pending.extend((inner, f"{path}[{index}]", depth + 1) for index, inner in enumerate(item))
    return None


def _scalar_problem(item: object) -> str | None:
    match item:
        case None:
            return None
        case str():
            return None if _is_unicode(item) else "holds an unpaired surrogate, which no UTF-8 text can carry"
        case float():
            return None if math.isfinite(item) else f"is {item}, which JSON cannot write"
        case int():
            return None if item.bit_length() <= MAX_INT_BITS else f"is an integer of more than {MAX_INT_BITS} bits"
        case _:
            return f"is a {type(item).__name__}, which is not JSON"


def _is_unicode(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
