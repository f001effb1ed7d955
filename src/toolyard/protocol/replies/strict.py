"""Strict JSON, read by a fast reader where that loses nothing.

orjson reads the common case. The standard reader takes over for input that orjson refuses but models write (NaN, half a
surrogate pair, a backslash that JSON does not know, 1e999), for integers of more than 64 bits, which orjson makes
inexact, and for escapes that spell LaTeX. With both the last of equal keys counts. At most ``MAX_DEPTH`` levels.
"""

import json

import orjson

from toolyard.protocol.json import MAX_DEPTH, Json
from toolyard.protocol.replies.escapes import Repairs, have_latex, is_suspicious, remove_surrogates, repair_escapes
from toolyard.protocol.replies.reply_values import Repair

NOTHING = "\ufeff \t\r\n"  # invisible characters around JSON

_AS_DIGITS = bytes(ord("0") if chr(code) in "0123456789" else 0 for code in range(256))
_LONG_INTEGER = b"0" * 19

_decode = json.JSONDecoder(parse_constant=lambda _: None).raw_decode


def parse_strict(text: str, repairs: Repairs) -> Json:
    """Parse a text that is JSON, apart from odd escapes. Raises ValueError when it is not."""
    text = text.strip(NOTHING)
    try:
        value: Json = orjson.loads(text)
    except orjson.JSONDecodeError:
        value = _parse_with_care(remove_surrogates(text, repairs), repairs)
    else:
        texts = _list_texts(value)
        if texts is not None and not have_latex(texts):
            return value
        if texts is not None or is_suspicious(text) or has_long_integer(text.encode()):
            value = _parse_with_care(text, repairs)
    if is_too_deep(text, 0, len(text), value):
        raise ValueError("nested too deeply")
    return value


def parse_strict_at(text: str, start: int) -> tuple[Json, int] | None:
    """Return the JSON value that begins at ``start`` and its end, if there is one."""
    try:
        value, end = _decode(text, start)
    except (ValueError, RecursionError):
        return None
    return None if is_too_deep(text, start, end, value) else (value, end)


def _list_texts(value: Json) -> list[str] | None:
    """Return the texts of a value that consists of few objects and texts, as most replies do; None for any other."""
    texts: list[str] = []
    pending, objects = [value], 0
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            texts.append(item)
        elif isinstance(item, dict) and objects < MAX_DEPTH:
            pending += item.values()
            objects += 1
        elif item is not None:
            return None
    return texts


def _parse_with_care(text: str, repairs: Repairs) -> Json:
    try:
        value = _load(text, repairs)
    except ValueError as error:
        if "escape" not in str(error):
            raise
        return _load(repair_escapes(text, repairs), repairs)
    return _load(repair_escapes(text, repairs), repairs) if is_suspicious(text) else value


def _load(text: str, repairs: Repairs) -> Json:
    def constant(_: str) -> None:
        repairs[Repair.LITERALS] = None

    try:
        value: Json = json.loads(text, parse_constant=constant)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    return value


def has_long_integer(raw: bytes) -> bool:
    """Return whether there is a number, or part of one, that may exceed 64 bits."""
    return _LONG_INTEGER in raw.translate(_AS_DIGITS)


def is_too_deep(text: str, start: int, end: int, value: Json) -> bool:
    few = has_few(text, "[", MAX_DEPTH // 2, start, end) and has_few(text, "{", MAX_DEPTH // 2, start, end)
    return not few and _measure_depth(value) > MAX_DEPTH


def has_few(text: str, sign: str, most: int, start: int = 0, end: int | None = None) -> bool:
    """Return whether ``sign`` occurs at most ``most`` times in ``text``: jumping between them beats counting them."""
    for _ in range(most + 1):
        start = text.find(sign, start, end) + 1
        if not start:
            return True
    return False


def _measure_depth(value: Json) -> int:
    depth, level = 0, [value]
    while level and depth <= MAX_DEPTH:
        inner: list[Json] = []
        for item in level:
            if isinstance(item, dict | list):
                inner += item.values() if isinstance(item, dict) else item
        depth += any(isinstance(item, dict | list) for item in level)
        level = inner
    return depth
