"""The ``content`` of a plugin's result as parts (001 §3.2): texts, and media whose type is detected from their bytes.

A part that we would write differently keeps the item it was read from, so that VCP clients get it unchanged.

Where the plugin gave only data, a text for models is made of it: its own message, else the size of its list (000 §2.1).
"""

import base64
import binascii
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from toolyard.message import Message
from toolyard.protocol.content import Blob, Link, Media, Part, Text, make_stored_path, sniff, to_reference
from toolyard.protocol.json import Json, JsonObject

_DATA_URI = re.compile(r"data:([^;,]*)(?:;[^;,]*)*;base64,", re.IGNORECASE)
_BLANKS = re.compile(r"\s+")
_ENDING = re.compile(r"\.([A-Za-z0-9]{2,4})(?:[?#]|$)")
_KINDS = {
    "audio": ("aac", "flac", "m4a", "mp3", "oga", "ogg", "opus", "wav"),
    "video": ("avi", "mkv", "mov", "mp4", "ogv", "webm"),
}
_KIND_OF_ENDING = {ending: kind for kind, endings in _KINDS.items() for ending in endings}
_MEDIA_ITEMS = ("image_url", "audio_url", "video_url", "input_audio", "image", "audio", "video", "file")
_NO_FORMAT = "[Content that cannot be shown: its bytes are of no known image, audio or video format.]"
_NO_BASE64 = "[Content that cannot be shown: it is not valid Base64.]"
_FOR_MODELS = ("messageForAI", "message", "text")
_MAX_NOTE = 300  # characters of a warning in the text
_SINGULAR = {"items": "item", "results": "result", "entries": "entry", "matches": "match", "paths": "path"}
LISTINGS = ("items", "results", "entries", "matches", "paths", "info")


def read_parts(content: Sequence[Json]) -> tuple[Part, ...]:
    """Return the parts, in order. Bytes of no known format become a Blob. A remote URL stays one, unfetched."""
    return tuple(_read_part(item) for item in content)


def take_media(value: Json, media: list[Media | Blob]) -> Json:
    """Return ``value`` with references in place of media bytes, which are added to ``media``.

    An item of content becomes a full reference, a data URI anywhere else the path of the stored bytes.
    """
    if isinstance(value, list):
        return [take_media(inner, media) for inner in value]
    if isinstance(value, str):
        part = _read_media(value, "", "") if value[:5].lower() == "data:" and _DATA_URI.match(value) else None
    elif isinstance(value, dict):
        part = _read_item(value) if value.get("type") in _MEDIA_ITEMS else None
    else:
        return value
    if isinstance(part, Media | Blob):
        media.append(part)
        return part.source if isinstance(value, str) else to_reference(part)
    return {key: take_media(inner, media) for key, inner in value.items()} if isinstance(value, dict) else value


def to_vcp_item(part: Part) -> Json:
    """Return a part as VCP v2 writes it; audio and video are ``image_url`` too (000 §3)."""
    if isinstance(part, Media):
        return {"type": "image_url", "image_url": {"url": part.data_uri()}}
    return {"type": "text", "text": part.text}


def _read_part(item: Json) -> Part:
    part = _read_item(item)
    if to_vcp_item(part) == item or (isinstance(part, Media) and _declared_kind(item) != part.kind):
        return part
    return replace(part, original=item)


def _read_item(item: Json) -> Part:
    if isinstance(item, str):
        return Text(item)
    if not isinstance(item, dict):
        return Text(json.dumps(item, ensure_ascii=False))
    text = item.get("text")
    if item.get("type", "text") == "text" and isinstance(text, str):
        return Text(text)
    source = _source(item)
    if source is None:
        return Text(json.dumps(item, ensure_ascii=False))
    name = item.get("name")
    return _read_media(source, name if isinstance(name, str) else "", str(item.get("type")))


def _source(item: dict[str, Json]) -> str | None:
    """Return the address in ``{"type": "image_url", "image_url": {"url": ...}}`` and the like; or bytes as Base64."""
    inner = item.get(str(item.get("type")), item)
    if isinstance(inner, str):
        return inner
    holder = inner if isinstance(inner, dict) else item
    url, data = holder.get("url"), holder.get("data")
    if isinstance(url, str):
        return url
    return f"data:;base64,{data}" if isinstance(data, str) else None


def _declared_kind(item: Json) -> str:
    """Return ``image`` for an item whose data URI says ``image/...``."""
    source = _source(item) if isinstance(item, dict) else None
    uri = _DATA_URI.match(source) if source else None
    return uri[1].partition("/")[0].lower() if uri else ""


def _read_media(source: str, name: str, declared: str) -> Part:
    uri = _DATA_URI.match(source)
    if uri is None:
        return Link(source, kind=_kind_of(source, declared))
    written = _BLANKS.sub("", source[uri.end() :]).rstrip("=")
    try:
        data = base64.b64decode(written + "=" * (-len(written) % 4), validate=True)
    except (binascii.Error, ValueError):
        return Text(_NO_BASE64)
    mime = sniff(data)
    source = make_stored_path(data, mime or "")
    return Media(mime, data, name, source=source) if mime else Blob(_NO_FORMAT, data=data, name=name, source=source)


def _kind_of(address: str, declared: str) -> str:
    """Return the kind of media at an address, by its file extension, else by the type of its item."""
    ending = _ENDING.search(address)
    word = declared.removeprefix("input_").partition("_")[0]
    return _KIND_OF_ENDING.get(ending[1].lower() if ending else "", word if word in ("audio", "video") else "image")


def describe_data(plugin: str, data: JsonObject, *more: str, fallback: Json = None) -> str:
    """Return the text of structured data: its own message, else its listing's size, else ``fallback`` as JSON."""
    if message := find_message(data, *more):
        return message
    listing = find_listing(data)
    if listing is None:
        return to_pretty_json(data if fallback is None else fallback)
    name, listed = listing
    if not isinstance(listed, list):
        return Message("{plugin} returned {what}.", plugin=plugin, what=name)
    return Message(
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
    return Message("{plugin} returned {what}.", plugin=plugin, what=counted) if counted else say_nothing(plugin)


def say_nothing(plugin: str) -> Message:
    return Message("{plugin} returned nothing.", plugin=plugin)


def find_message(fields: Mapping[str, Json], *more: str) -> str:
    """Return the text under the first key that holds a message for models; ``more`` keys are tried last."""
    return next((text for name in (*_FOR_MODELS, *more) if (text := text_or_empty(fields.get(name)))), "")


def text_or_empty(value: Json) -> str:
    return value if isinstance(value, str) and value.strip() else ""


def to_pretty_json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


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


def format_warning(warnings: Sequence[str]) -> str:
    """Return the sentence that reports warnings: the first, and the number of further ones."""
    if not warnings:
        return ""
    first = warnings[0] if len(warnings[0]) <= _MAX_NOTE else warnings[0][: _MAX_NOTE - 3] + "..."
    if len(warnings) == 1:
        return Message("Warning: {warning}", warning=first)
    return Message("Warning: {warning} ({count} more in context.warnings)", warning=first, count=len(warnings) - 1)


def find_listing(data: Mapping[str, Json]) -> tuple[str, Json] | None:
    """Return its name and the list, or None when ``data`` has none."""
    return next(((name, data[name]) for name in LISTINGS if data.get(name) is not None), None)
