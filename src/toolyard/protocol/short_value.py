"""Values of a call made short: long strings cut, for records and for models, and the one argument that says most."""

import re
from collections.abc import Mapping
from typing import Final

from toolyard.protocol.json import Json
from toolyard.protocol.result_limits import MAX_PARAM_BYTES

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
