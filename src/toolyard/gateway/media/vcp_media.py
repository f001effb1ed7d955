"""Images, audio and video of tool results on their way to clients, distinguished by MIME type (000 §3).

Clients of VCPToolBox show HTML in a message, so each becomes the element that plays it, with its bytes in it. What a
client sends back of such a message loses the bytes again: a model cannot read them. Pure.
"""

import re
from collections.abc import Iterable
from typing import Final

from toolyard.protocol.json import Json, JsonObject

MOST: Final = 4 * 1024 * 1024  # characters of the media of one call
_URI = re.compile(r"data:((image|audio|video)/[\w.+-]+);base64,[A-Za-z0-9+/]+={0,2}")
_ELEMENTS = {"image": '<img src="{}">', "audio": '<audio controls src="{}"></audio>'}
_ELEMENTS["video"] = '<video controls src="{}"></video>'
_WRITTEN = re.compile(
    r'<(?:img|audio controls|video controls) src="data:((?:image|audio|video)/[\w.+-]+);base64,[A-Za-z0-9+/=]*">'
    r"(?:</(?:audio|video)>)?"
)


def fitting_media(content: Iterable[Json]) -> tuple[list[JsonObject], int]:
    """Return the parts that are no text, as far as they fit into one message, and how many do not."""
    parts = [part for part in content if isinstance(part, dict) and part.get("type") != "text"]
    fitting: list[JsonObject] = []
    room = MOST
    for part in parts:
        size = len(str(part))
        if size <= room:
            fitting.append(part)
            room -= size
    return fitting, len(parts) - len(fitting)


def to_html(content: Iterable[Json]) -> str:
    """Return media as elements, one on a line; what does not fit is counted."""
    parts, left_out = fitting_media(content)
    lines = [_element(_uri_of(part)) for part in parts]
    if left_out:
        lines.append(f"({left_out} media too large to be sent)")
    return "\n".join(line for line in lines if line)


def remove_media(text: str) -> str:
    """Return a message without the bytes of its elements; their types stay."""
    return _WRITTEN.sub(r"(\1)", text)


def _element(uri: str) -> str:
    match = _URI.fullmatch(uri)
    return _ELEMENTS[match[2]].format(uri) if match else ""


def _uri_of(part: JsonObject) -> str:
    """Return the data URI of a part in any form that a dialect gives it."""
    for name in ("image_url", "video_url"):
        inner = part.get(name)
        if isinstance(inner, dict):
            return str(inner.get("url", ""))
    sound = part.get("input_audio")
    if isinstance(sound, dict):
        kind = {"mp3": "mpeg"}.get(str(sound.get("format")), str(sound.get("format")))
        return f"data:audio/{kind};base64,{sound.get('data', '')}"
    return ""
