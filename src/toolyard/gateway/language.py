"""Detects the language of a conversation, for the texts that are added to its prompt."""

import re
from typing import Final

from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.tool_text import CHINESE, ENGLISH

_MAX_MESSAGES: Final = 20
_MAX_CHARS: Final = 4000  # of one message
_HAN: Final = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")
_KANA: Final = re.compile("[\u3040-\u30ff]")
_LATIN: Final = re.compile(r"[^\sA-Za-z\u3400-\u9fff]*[A-Za-z][^\s\u3400-\u9fff]*")  # a word, a path, a line of code


def detect_language(messages: list[Json]) -> str:
    """Return the language of the newest user message that has words in it: Chinese, or English for any other."""
    for message in reversed(messages[-_MAX_MESSAGES:]):
        text = _text(message) if isinstance(message, dict) and message.get("role") == "user" else ""
        han, words = len(_HAN.findall(text)), len(_LATIN.findall(text))
        if han or words:
            return CHINESE if han >= words and not _KANA.search(text) else ENGLISH
    return ENGLISH


def _text(message: JsonObject) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content[:_MAX_CHARS]
    parts = content if isinstance(content, list) else []
    texts = (part.get("text") for part in parts if isinstance(part, dict))
    return " ".join(text[:_MAX_CHARS] for text in texts if isinstance(text, str))[:_MAX_CHARS]
