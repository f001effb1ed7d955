"""The fast path for a well-formed reply, as most are (bench row "plain reply").

Nothing is decided here: anything odd gives None and is read with care, and the result here equals that of the careful
reading. So nothing is checked twice, and checks that cannot fail are skipped: a value of texts alone has no long
integers and is not deep, and in a small text no attachment is too large.
"""

from typing import Any

import orjson

from toolyard.protocol.json import Json
from toolyard.protocol.replies.escapes import have_latex, is_suspicious
from toolyard.protocol.replies.fields import DATA, measure_content
from toolyard.protocol.replies.placeholders import find_problems
from toolyard.protocol.replies.strict import has_few, has_long_integer, is_too_deep
from toolyard.protocol.replies.values import MAX_ATTACHMENT_BYTES, MAX_ATTACHMENTS, TYPES, Attachment, Reply

_NAMES = frozenset({"think", "content", "attachments"})
_FIELDS = frozenset({"type", "content", "language", "title"})
_TEXTS_ONLY = {str}
_SURELY_SMALL = MAX_ATTACHMENT_BYTES // 4  # characters, of four bytes at most
_FEW = 500


def parse_plain_reply(text: str) -> Reply | None:
    """Return the reply in ``text``, which is within the size limit; None when it is not plain."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    if type(value) is not dict or not _NAMES.issuperset(value):
        return None
    content, think = value.get("content"), value.get("think")
    texts: list[Any] = [content] if think is None else [content, think]
    data: list[Json] = []
    attachments = _read_attachments(value["attachments"], texts, data) if "attachments" in value else {}
    if not content or attachments is None or {*map(type, texts)} != _TEXTS_ONLY:
        return None
    if not _is_harmless(text, value, data) if data else have_latex(texts):
        return None
    if not attachments and "{" not in content:
        return Reply(content, think)
    return Reply(content, think, attachments, tuple(find_problems(content, attachments)))


def _read_attachments(value: Any, texts: list[Any], data: list[Json]) -> dict[str, Attachment] | None:
    """Return the attachments; add their contents, unchecked, to ``texts`` and ``data``."""
    if type(value) is not dict or len(value) > MAX_ATTACHMENTS:
        return None
    attachments = {}
    for id_, item in value.items():
        if type(item) is not dict or not _FIELDS.issuperset(item):
            return None
        type_, content = item.get("type"), item.get("content")
        if type(type_) is not str or type_ not in TYPES:
            return None
        if type_ == "code" and not str(item.get("language") or "").strip():
            return None
        if type(content) is str:
            if len(content) > _SURELY_SMALL and (not content.isascii() or len(content) > MAX_ATTACHMENT_BYTES):
                return None
            texts += item.values()
        elif type_ in DATA and isinstance(content, dict | list):
            texts += [inside for inside in item.values() if inside is not content]
            data.append(content)
        else:
            return None
        attachments[id_] = Attachment(id_, type_, content, item.get("language"), item.get("title"))
    return attachments


def _is_harmless(text: str, value: Json, data: list[Json]) -> bool:
    """Return whether a value that holds more than texts was read as intended, and its data is not too large."""
    raw = text.encode()
    if ("\\" in text and is_suspicious(text)) or has_long_integer(raw) or is_too_deep(text, 0, len(text), value):
        return False
    return _is_surely_small(text, len(raw)) or all(
        isinstance(size := measure_content(content), int) and size <= MAX_ATTACHMENT_BYTES for content in data
    )


def _is_surely_small(text: str, size: int) -> bool:
    """Return whether nothing that is read from ``text`` is too large when it is written again.

    Texts never grow, ``[0,0]`` becomes ``[0, 0]``, and numbers with an exponent grow most: ``1e15`` becomes
    ``1000000000000000.0``.
    """
    if 4 * size <= MAX_ATTACHMENT_BYTES:
        return True
    exponents = 15 * 2 * _FEW
    return 2 * size + exponents <= MAX_ATTACHMENT_BYTES and has_few(text, "e", _FEW) and has_few(text, "E", _FEW)
