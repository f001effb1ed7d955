"""The shown outcome, which a model reads: nothing twice, and nothing that only programs understand."""

import json
from dataclasses import replace

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
    data = drop_repeats(outcome)
    return replace(
        outcome,
        envelope=envelope if data == envelope.data else replace(envelope, data=data),
        extras=replace(extras, parts=parts, details=None),
        batch=tuple(item._replace(outcome=to_shown(item.outcome)) for item in outcome.batch),
    )


def drop_repeats(outcome: Outcome) -> JsonObject:
    """Return ``data`` without repetitions of the envelope's text: a result that is the text, the texts of the parts."""
    data, text = outcome.envelope.data, outcome.envelope.text
    key = outcome.extras.content_key
    if is_repeated(data, text):
        return {}
    remaining = {name: value for name, value in data.items() if not is_repeated(value, text)}
    result = remaining.get("result")
    if text.startswith(result) if isinstance(result, str) else _is_written(result, text):
        del remaining["result"]
    content = remaining.get(key)
    if key and isinstance(content, list):
        others: list[Json] = [item for item in content if not _is_text_in(item, text)]
        remaining = {name: value for name, value in remaining.items() if name != key or others}
        remaining |= {key: others} if others else {}
    return remaining


def is_repeated(value: Json, text: str) -> bool:
    """Return whether ``text`` is this value: the same text, or the value as indented JSON."""
    if isinstance(value, str):
        return value == text and bool(value)
    return (
        isinstance(value, dict | list)
        and text[:1] in ("{", "[")
        and json.dumps(value, ensure_ascii=False, indent=2) == text
    )


def _is_written(value: Json, text: str) -> bool:
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
