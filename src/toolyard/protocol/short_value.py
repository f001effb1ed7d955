"""Values of a call with their long strings cut, for records and for models, which know what they sent."""

from collections.abc import Mapping

from toolyard.protocol.json import Json
from toolyard.protocol.result_limits import MAX_PARAM_BYTES


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
