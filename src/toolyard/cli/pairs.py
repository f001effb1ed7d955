"""Arguments of a call as ``key=value`` words."""

import os
from collections.abc import Callable
from typing import TypeAlias

from toolyard.errors import UsageError
from toolyard.protocol.arguments import coerce_value
from toolyard.protocol.json import Json, JsonObject
from toolyard.workspace.names import to_text

FindSchema: TypeAlias = Callable[[str], dict[str, Json]]
"""From the name of a parameter to its schema; empty when the tool has none of this name."""


def parse_pairs(pairs: tuple[str, ...], find_schema: FindSchema) -> JsonObject:
    """Parse ``key=value`` words by the tool's schema; a repeated key, or one of type array, becomes a list."""
    arguments: JsonObject = {}
    for pair in pairs:
        key, separator, value = to_text(os.fsencode(pair)).partition("=")  # bytes as typed, in any locale
        if not separator or not key:
            raise UsageError(f"'{pair}' is not KEY=VALUE: write it like path=src, or pass the arguments with --args")
        schema = find_schema(key) or find_schema(key.rstrip("0123456789"))
        is_list = schema.get("type") == "array" and not value.lstrip().startswith("[")
        before = arguments.get(key)
        if isinstance(before, list):
            before.append(value)
        elif key in arguments:
            raise UsageError(f"'{key}' is given twice")
        else:
            arguments[key] = [value] if is_list else coerce_value(value, schema)
    return arguments
