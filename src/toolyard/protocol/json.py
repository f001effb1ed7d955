"""JSON values, and the check that a Python value is one."""

import math
from collections.abc import Mapping
from typing import TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
JsonObject: TypeAlias = dict[str, Json]

MAX_DEPTH = 200  # deeper values come from attackers and break recursive readers on the other side


def json_problem(value: object, where: str) -> str | None:
    """Say why ``value`` cannot be written as JSON, or None when it can. Linear, and never recurses."""
    pending: list[tuple[object, str, int]] = [(value, where, 0)]
    while pending:
        item, path, depth = pending.pop()
        if item is None or isinstance(item, bool | int):
            continue
        if isinstance(item, str):
            if not _is_unicode(item):
                return f"{path} holds an unpaired surrogate, which no UTF-8 text can carry"
        elif isinstance(item, float):
            if not math.isfinite(item):
                return f"{path} is {item}, which JSON cannot write"
        elif depth >= MAX_DEPTH:
            return f"{path} is nested deeper than {MAX_DEPTH} levels"
        elif isinstance(item, Mapping):
            for key, inner in item.items():
                if not isinstance(key, str) or not _is_unicode(key):
                    return f"{path} has the key {key!r}, which is not a text that JSON can write"
                pending.append((inner, f"{path}.{key}", depth + 1))
        elif isinstance(item, list | tuple):
            pending.extend((inner, f"{path}[{index}]", depth + 1) for index, inner in enumerate(item))
        else:
            return f"{path} is a {type(item).__name__}, which is not JSON"
    return None


def _is_unicode(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
