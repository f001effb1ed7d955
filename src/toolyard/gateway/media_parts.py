"""Media of tools in the text of an answer: Markdown for people, short markers for models.

An ordinary client shows what the text of an answer has, so a picture goes into it as a Markdown image and a sound or a
film as a link. When the client sends that text back, each of them becomes a marker such as ``[picture: chart.png]``:
a model has no use for an address, and none for Base64. The markers are found in linear time.

A model that refuses a kind of media is remembered with its provider, so that it is offered that once: ``MAX_MODELS``
models, each for ``KEPT_S`` seconds, because a name may stand for a better model by then.
"""

import re
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from toolyard.gateway.faults import ChatFault
from toolyard.gateway.protocols.chat_body import ORIGIN
from toolyard.protocol.content import Media
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.requests.scanner import neutralise
from toolyard.storage.media_store import TYPES

MAX_DATA_URL: Final = 16 * 1024  # characters
ALL_KINDS: Final = frozenset({"image", "audio", "video", "file"})
_DRAWN = tuple(f"image/{kind}" for kind in ("png", "jpeg", "gif", "webp", "avif", "bmp", "x-icon"))  # by browsers
_WORDS = {"image": "picture", "audio": "audio", "video": "video"}
_MAX_NAME = 80
_NO_MARKUP = str.maketrans("[]<>`\\", "()‹›'/")
_PUBLISHED = re.compile(
    r"!?\[(?P<name>[^\[\]\n]{0,200})\]\((?:"
    r"https?://[^\s()/?#]{1,300}/media/[0-9a-f]{64}\.(?P<extension>[a-z0-9]{2,4})"
    r"\?expires=[0-9]{1,12}&signature=[0-9a-f]{64}"
    rf"|data:(?:{'|'.join(map(re.escape, _DRAWN))});base64,[A-Za-z0-9+/]{{1,{MAX_DATA_URL}}}={{0,2}}"
    r")\)"
)


def to_data_url(media: Media) -> str:
    """Return a small picture as an address that holds it; empty for what is larger, or no picture."""
    if media.mime not in _DRAWN or len(media.data) * 4 / 3 > MAX_DATA_URL:
        return ""
    url = media.data_uri()
    return url if len(url) <= MAX_DATA_URL else ""


def to_markdown(media: Media, url: str, tool: str) -> str:
    """Return media as Markdown: an image if browsers draw it, else a link. Without a name it has its tool's."""
    name = _plain_name(media.name or tool)
    if media.mime in _DRAWN:
        return f"![{name}]({url})"
    return f"[{_WORDS[media.kind]}: {name}]({url})"


def replace_published(text: str) -> str:
    """Return a text with a short marker for each piece of media that an answer of ours had in it."""
    if "/media/" not in text and ";base64," not in text:
        return text
    return _PUBLISHED.sub(_marker, text)


def replace_published_messages(messages: list[Json]) -> list[Json]:
    """Return messages in which assistants show no media of ours; the same list when none does."""
    made = [_without_published(message) if _is_assistant(message) else message for message in messages]
    return made if any(new is not old for new, old in zip(made, messages, strict=True)) else messages


def part_kind(part: Json) -> str:
    """Return ``image``, ``audio``, ``video`` or ``file`` for a content part with media; empty for any other."""
    kind = part.get("type") if isinstance(part, dict) else None
    inner = part.get(kind) if isinstance(part, dict) and isinstance(kind, str) else None
    match kind:
        case "image_url" | "video_url":
            url = inner.get("url") if isinstance(inner, dict) else inner
            data = re.match(r"data:(image|audio|video)/", url) if isinstance(url, str) else None
            return data[1] if data else kind.removesuffix("_url")  # a tool's sounds come as image_url, too
        case "input_audio":
            return "audio"
        case "file":
            return "file"
        case _:
            return ""


def replace_parts(messages: list[Json], kinds: frozenset[str], note: str = "") -> list[Json]:
    """Return messages with a text marker, such as ``[picture]``, for each content part with media of these kinds.

    No origin is left where it may have them as well: beside a result, whose media are in a later message, and in a
    message where one was replaced.
    """
    return [_replace_parts(message, kinds, note) if isinstance(message, dict) else message for message in messages]


def part_kinds(messages: list[Json]) -> frozenset[str]:
    """Return the kinds of media that messages have among their parts."""
    contents = (message.get("content") for message in messages if isinstance(message, dict))
    kinds = (part_kind(part) for content in contents if isinstance(content, list) for part in content)
    return frozenset(kind for kind in kinds if kind)


def _replace_parts(message: JsonObject, kinds: frozenset[str], note: str) -> Json:
    content = message.get("content")
    if message.get("role") == "tool":
        message = _without_origin(message)
    if not isinstance(content, list) or not any(part_kind(part) in kinds for part in content):
        return message
    made: list[Json] = [
        {"type": "text", "text": f"[{_WORDS.get(kind, kind)}{note}]"}
        if (kind := part_kind(part)) in kinds
        else _without_origin(part)
        if isinstance(part, dict)
        else part
        for part in content
    ]
    texts = [part.get("text") for part in made if isinstance(part, dict) and part.get("type") == "text"]
    if len(texts) < len(made):
        return {**message, "content": made}
    return {**message, "content": "\n".join(str(text) for text in texts)}  # which every provider takes


def _without_origin(value: JsonObject) -> JsonObject:
    return {key: inner for key, inner in value.items() if key != ORIGIN} if ORIGIN in value else value


def _without_published(message: Json) -> Json:
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(message, dict):
        return message
    if isinstance(content, str):
        text = replace_published(content)
        return message if text == content else {**message, "content": text}
    if not isinstance(content, list):
        return message
    parts: list[Json] = [_without_published_part(part) for part in content]
    return {**message, "content": parts} if any(a is not b for a, b in zip(parts, content, strict=True)) else message


def _without_published_part(part: Json) -> Json:
    text = part.get("text") if isinstance(part, dict) else None
    if not isinstance(part, dict) or not isinstance(text, str):
        return part
    made = replace_published(text)
    return part if made == text else {**part, "text": made}


def _is_assistant(message: Json) -> bool:
    return isinstance(message, dict) and message.get("role") == "assistant"


def _marker(match: re.Match[str]) -> str:
    mime = TYPES.get(match["extension"] or "", "image/png")
    word, name = _WORDS[mime.partition("/")[0]], match["name"]
    return f"[{word}: {name.removeprefix(f'{word}: ')}]"


def _plain_name(name: str) -> str:
    plain = " ".join(name.split()).translate(_NO_MARKUP)
    return neutralise(plain if len(plain) <= _MAX_NAME else plain[: _MAX_NAME - 1] + "…")


MAX_MODELS: Final = 256
KEPT_S: Final = 3600.0
NOTE: Final = ": this model takes none"  # in the marker that replaces a part
_REFUSING = frozenset({400, 404, 413, 415, 422})
_BROKEN = frozenset({500, 501})  # some servers answer so to what they cannot read
_ABOUT_MEDIA = re.compile(
    r"image|picture|vision|visual|audio|video|media|modal|content.?(?:type|part|block)", re.IGNORECASE
)
_ABOUT_SIZE = re.compile(r"too (?:large|big|long|many)|size|exceed|token|context|limit|maximum", re.IGNORECASE)
Model = tuple[str, str]
"""The name of a provider, and what it calls the model."""


class MediaRefusals:
    """The refused kinds by model; ``now`` is a monotonic clock."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._refused: OrderedDict[Model, tuple[float, frozenset[str]]] = OrderedDict()

    def find(self, model: Model) -> frozenset[str]:
        """Return the kinds of media that a model is known not to take."""
        until, kinds = self._refused.get(model, (0.0, frozenset[str]()))
        return kinds if self._now() < until else frozenset()

    def note(self, model: Model, kinds: frozenset[str], fault: ChatFault) -> None:
        """Note that a model took a request without these kinds, having refused it with them.

        A refusal for size is not noted: it says nothing about other media.
        """
        if fault.status == 413 or _ABOUT_SIZE.search(fault.words or fault.message):
            return
        self._refused[model] = (self._now() + KEPT_S, self.find(model) | kinds)
        self._refused.move_to_end(model)
        while len(self._refused) > MAX_MODELS:
            self._refused.popitem(last=False)


def may_refuse_media(fault: ChatFault, *, is_new: bool) -> bool:
    """Return whether a fault may be a refusal of the request's media; ``is_new``: no earlier request had them."""
    if not fault.code.startswith("upstream_") and not fault.is_overflow:
        return False
    about_media = _ABOUT_MEDIA.search(fault.words or fault.message) is not None
    return (fault.status in _REFUSING and (is_new or about_media)) or (fault.status in _BROKEN and about_media)
