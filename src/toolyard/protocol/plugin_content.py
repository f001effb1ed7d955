"""The ``content`` of a plugin's result as parts (001 §3.2): texts, and media whose type their bytes tell."""

import base64
import binascii
import json
import re
from collections.abc import Sequence

from toolyard.protocol.content import Media, Part, Text, sniff
from toolyard.protocol.json import Json

_DATA_URI = re.compile(r"data:([^;,]*)(?:;[^;,]*)*;base64,", re.IGNORECASE)
_BLANKS = re.compile(r"\s+")


def parts_of(content: Sequence[Json]) -> tuple[tuple[Part, ...], list[Json]]:
    """The parts, in order; and the items that hold bytes of no kind we know, for which a text stands among the parts.

    A remote address stays an address: nothing is fetched.
    """
    parts: list[Part] = []
    unread: list[Json] = []
    for item in content:
        part = _part(item)
        if part is None:
            unread.append(item)
            part = Text("[Content that cannot be shown: its bytes are of no known image, audio or video format.]")
        parts.append(part)
    return tuple(parts), unread


def _part(item: Json) -> Part | None:
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
    return _media(source, name if isinstance(name, str) else "")


def _source(item: dict[str, Json]) -> str | None:
    """The address in ``{"type": "image_url", "image_url": {"url": ...}}`` and its kin; or bytes given as Base64."""
    inner = item.get(str(item.get("type")), item)
    if isinstance(inner, str):
        return inner
    holder = inner if isinstance(inner, dict) else item
    url, data = holder.get("url"), holder.get("data")
    if isinstance(url, str):
        return url
    return f"data:;base64,{data}" if isinstance(data, str) else None


def _media(source: str, name: str) -> Part | None:
    uri = _DATA_URI.match(source)
    if uri is None:
        return Text(source)
    written = _BLANKS.sub("", source[uri.end() :]).rstrip("=")
    try:
        data = base64.b64decode(written + "=" * (-len(written) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None
    mime = sniff(data)
    return Media(mime, data, name) if mime else None
