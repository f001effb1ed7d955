"""Texts for plugin answers: what a model reads where the plugin itself gave only data."""

import json
from collections.abc import Mapping, Sequence

from toolyard.message import Message
from toolyard.protocol.content import Media, Part, Text
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.listing import find_listing

_FOR_MODELS = ("messageForAI", "message", "text")
_MAX_NOTE = 300  # characters of a warning in the text
_SINGULAR = {"items": "item", "results": "result", "entries": "entry", "matches": "match", "paths": "path"}


def describe_data(plugin: str, data: JsonObject, *more: str, fallback: Json = None) -> str:
    """Return the text of structured data: its own message, else its listing's size, else ``fallback`` as JSON."""
    if message := find_message(data, *more):
        return message
    listing = find_listing(data)
    if listing is None:
        return to_pretty_json(data if fallback is None else fallback)
    name, listed = listing
    if not isinstance(listed, list):
        return Message("plugin.returned", "{plugin} returned {what}.", plugin=plugin, what=name)
    return Message(
        "plugin.returned_listing",
        "{plugin} returned {count} {what}.",
        plugin=plugin,
        count=len(listed),
        what=_SINGULAR.get(name, name) if len(listed) == 1 else name,
    )


def join_texts(plugin: str, parts: tuple[Part, ...]) -> str:
    """Return the texts of the parts, else the number of media of each kind."""
    text = "\n".join(part.text for part in parts if isinstance(part, Text))
    kinds = [part.kind for part in parts if isinstance(part, Media)]
    counted = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
    if text.strip():
        return text
    return (
        Message("plugin.returned", "{plugin} returned {what}.", plugin=plugin, what=counted)
        if counted
        else say_nothing(plugin)
    )


def say_nothing(plugin: str) -> Message:
    return Message("plugin.returned_nothing", "{plugin} returned nothing.", plugin=plugin)


def find_message(fields: Mapping[str, Json], *more: str) -> str:
    """Return the text under the first key that holds a message for models; ``more`` keys are tried last."""
    return next((text for name in (*_FOR_MODELS, *more) if (text := text_or_empty(fields.get(name)))), "")


def text_or_empty(value: Json) -> str:
    return value if isinstance(value, str) and value.strip() else ""


def to_pretty_json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def format_warning(warnings: Sequence[str]) -> str:
    """Return the sentence that reports warnings: the first, and the number of further ones."""
    if not warnings:
        return ""
    first = warnings[0] if len(warnings[0]) <= _MAX_NOTE else warnings[0][: _MAX_NOTE - 3] + "..."
    if len(warnings) == 1:
        return Message("answer.warning", "Warning: {warning}", warning=first)
    return Message(
        "answer.warnings",
        "Warning: {warning} ({count} more in context.warnings)",
        warning=first,
        count=len(warnings) - 1,
    )
