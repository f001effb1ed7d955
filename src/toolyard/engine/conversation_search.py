"""Search in conversations: the text of their messages, and the part of it around a hit.

The server stores messages as clients send them. It reads text where OpenAI's messages have it (``content``, a text or
parts) and where those of the console have it (``text``, and the text of ``pieces``), and no other member.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from toolyard.protocol.conversation import ConversationText, MessageText
from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.search_words import FIRST_UNSPACED, MAX_TEXT, list_prefixes

_MAX_TITLE = 1000
_MAX_ID = 100
MAX_SEARCHED: Final = MAX_TEXT - _MAX_TITLE
_BEFORE, _SNIPPET = 40, 200  # characters
_SPOKEN = "text"  # the kind of the pieces that a reply says; it also has reasoning and calls


class Snippet(NamedTuple):
    """The text around a hit, on one line; empty when only the title has it."""

    text: str = ""
    message_id: str = ""


def extract_text(title: str, messages: Sequence[JsonObject]) -> ConversationText:
    """Return the text of a conversation: of a very long one that of the newest messages."""
    texts, left = [], MAX_SEARCHED
    for message in reversed(messages):
        text = _read_text(message)[:left]
        left -= len(text) + 1
        if text:
            texts.append(MessageText(_read_id(message), text))
        if left <= 0:
            break
    return ConversationText(title=title[:_MAX_TITLE], messages=tuple(reversed(texts)))


def _read_id(message: JsonObject) -> str:
    id_ = message.get("id")
    return id_ if isinstance(id_, str) and len(id_) <= _MAX_ID else ""


def _read_text(message: JsonObject) -> str:
    pieces = message.get("pieces")
    spoken = [one.get("text") for one in _list_objects(pieces) if one.get("kind") == _SPOKEN]
    return "\n".join(text for text in map(_join_parts, (message.get("content"), message.get("text"), *spoken)) if text)


def _join_parts(content: Json) -> str:
    if isinstance(content, str):
        return content
    return " ".join(text for part in _list_objects(content) if isinstance(text := part.get("text"), str))


def _list_objects(value: Json) -> Iterable[JsonObject]:
    return (one for one in value if isinstance(one, dict)) if isinstance(value, list) else ()


def find_snippet(text: ConversationText, search: str) -> Snippet:
    """Return the best hit of a search: the newest message that has the phrase, else the one with most of its words."""
    phrase, prefixes = " ".join(search.lower().split()), list_prefixes(search)
    best, best_score, best_at = MessageText("", ""), 0, 0
    for message in reversed(text.messages):
        lowered = _lower(message.text)
        at = _find_word(lowered, phrase)
        places = [at] if at >= 0 else [place for prefix in prefixes if (place := _find_word(lowered, prefix)) >= 0]
        score = len(prefixes) + 1 if at >= 0 else len(places)
        if score > best_score:
            best, best_score, best_at = message, score, min(places)
        if at >= 0:
            break
    return Snippet(_cut_around(best.text, best_at), best.id) if best_score else Snippet()


def _find_word(text: str, prefix: str) -> int:
    """Return where a word of the text begins with ``prefix``; -1 when none does."""
    at = text.find(prefix)
    while at > 0 and prefix[0] < FIRST_UNSPACED and text[at - 1].isalnum() and text[at - 1] < FIRST_UNSPACED:
        at = text.find(prefix, at + 1)
    return at


def _lower(text: str) -> str:
    """Return the text in lower case with every character at its place."""
    lowered = text.lower()
    return (
        lowered if len(lowered) == len(text) else "".join(one if len(one.lower()) > 1 else one.lower() for one in text)
    )


def _cut_around(text: str, at: int) -> str:
    start = max(0, at - _BEFORE)
    if start:  # at a word, unless that is far away
        blank = text.find(" ", start, at)
        start = blank + 1 if blank >= 0 else start
    end = start + _SNIPPET
    cut = " ".join(text[start:end].split())
    return f"{'…' if start else ''}{cut}{'…' if end < len(text) else ''}"
