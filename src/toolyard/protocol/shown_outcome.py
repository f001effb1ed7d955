"""The shown outcome, which a model reads: nothing twice, and nothing that only programs understand."""

import json
from dataclasses import replace

from toolyard.message import Message
from toolyard.protocol.content import Blob, Link, Part, Text
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.outcome import Outcome


def to_shown(outcome: Outcome) -> Outcome:
    """Return the outcome without repetitions of its text, and with plain parts; of a batch, every item too."""
    envelope, extras = outcome.envelope, outcome.extras
    parts = tuple(_to_plain_part(part) for part in extras.parts)
    if envelope.error and parts:  # the parts are the plugin's own; the next step is in the text
        rest = (part for part in parts if not isinstance(part, Text) or part.text not in envelope.text)
        parts = (Text(envelope.text), *rest)
    text, data = envelope.text, drop_repeats(envelope.data, envelope.text, extras.content_key)
    if extras.mcp and parts and not envelope.error:  # structured content stays, and a text that repeats it is a part
        text = text if data else Message("mcp.result_in_data", "The result is in data.")
        data = envelope.data
    return replace(
        outcome,
        envelope=envelope
        if data == envelope.data and text is envelope.text
        else replace(envelope, text=text, data=data),
        extras=replace(extras, parts=parts, details=None),
        batch=tuple(item._replace(outcome=to_shown(item.outcome)) for item in outcome.batch),
    )


def drop_repeats(data: JsonObject, text: str, key: str = "") -> JsonObject:
    """Return ``data`` without repetitions of ``text``: a result that is the text, texts of the parts under ``key``."""
    if is_repeated(data, text):
        return {}
    remaining = {name: value for name, value in data.items() if not is_repeated(value, text)}
    result = remaining.get("result")
    if text.startswith(result) if isinstance(result, str) else is_written(result, text):
        del remaining["result"]
    content = remaining.get(key)
    if key and isinstance(content, list):
        others: list[Json] = [item for item in content if not _is_text_in(item, text)]
        remaining = {name: value for name, value in remaining.items() if name != key or others}
        remaining |= {key: others} if others else {}
    return remaining


def is_repeated(value: Json, text: str) -> bool:
    """Return whether ``text`` is this value: the same text, or the value as JSON."""
    if isinstance(value, str):
        return value == text and bool(value)
    if not isinstance(value, dict | list) or text[:1] not in ("{", "["):
        return False
    try:
        return bool(json.loads(text) == value)
    except (ValueError, RecursionError):
        return False


def is_written(value: Json, text: str) -> bool:
    """Return whether ``text`` is this number or truth value."""
    return isinstance(value, bool | int | float) and json.dumps(value) == text


def _is_text_in(item: Json, text: str) -> bool:
    own = item.get("text") if isinstance(item, dict) and item.get("type") == "text" else None
    return isinstance(own, str) and own in text


def _to_plain_part(part: Part) -> Part:
    """Return a part without the item it was read from: a model gets texts, and media whose type is known."""
    if isinstance(part, Link | Blob):
        return Text(part.text)
    return replace(part, original=None) if part.original is not None else part
