"""JSON as model providers write it: strict JSON, and the extensions that OpenAI's official clients read.

``orjson`` reads nearly everything. Where it refuses, Python's own parser takes over: ``NaN`` and ``Infinity`` become
null, and half of a surrogate pair becomes U+FFFD unless the other half comes in the next event of the stream. Integers
are exact, however long. A value of too many parts is refused, because reading it would stop everything else: neither
reader lets others work before it is done.
"""

import gc
import json
import math
import re
from collections.abc import Iterator
from typing import Any, Final

import orjson

from toolyard.gateway.sse import data_of
from toolyard.message import Message
from toolyard.protocol.json import MAX_DEPTH, Json, is_unicode, json_bytes
from toolyard.protocol.regex import compile_pattern

MAX_PARTS: Final = 200_000  # separators of values, in one event
MAX_UNSTREAMED_PARTS: Final = (
    700_000  # in an answer in one piece: long ones with 20 log probabilities per token have so many
)
MAX_ODD_PARTS: Final = 50_000  # of a value that orjson refuses: Python's reader takes longer
_MAX_HALVES = 64  # texts of a stream that may wait for the other half of a pair
_MAX_PATH = 12  # steps to a text that is waited for
_MAX_STEP = 100  # characters of one
_SHORT = 64 * 1024  # bytes that cannot have many parts
_MAX_EXACT = 4 * 1024 * 1024  # bytes that are searched for long integers; in longer ones such integers are rounded
_SLICE = 256 * 1024
_DIGITS = bytes.maketrans(b"0123456789", b"0" * 10)
_LONG = b"0" * 19  # digits of an integer that may be beyond 64 bits, which orjson rounds
_BACKSLASH, _N, _I = b"\\NI"
_ODD_TOKEN = compile_pattern(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|-?(?:NaN|Infinity)', re.DOTALL)  # a text, or no number

_Path = tuple[str | int, ...]


def parse_provider_json(data: bytes, *, most: int = MAX_PARTS) -> Json:
    """Parse a value that a provider sent. Raises ValueError, with the reason, when it cannot be read.

    ``most``: how many parts it may have; ``MAX_UNSTREAMED_PARTS`` for an answer in one piece.
    """
    if len(data) > _SHORT:
        return _parse_large(data, most)
    if data.translate(_DIGITS).find(_LONG) >= 0:
        return _repair(_parse_odd(data))
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return _repair(_parse_odd(data))  # it accepts more, and gives the reason if it does not
    if len(data) > 2 * MAX_DEPTH:
        _require_flat(value, data)
    return value  # type: ignore[no-any-return]


def may_be_odd(data: bytes) -> bool:
    """Return whether ``data`` may hold NaN, Infinity or half of a pair; takes a few dozen nanoseconds."""
    if _BACKSLASH in data and (b"\\ud" in data or b"\\uD" in data):
        return True
    return (_N in data and b"NaN" in data) or (_I in data and b"Infinity" in data)


def repair_provider_json(data: bytes) -> bytes:
    """Return ``data`` with strict JSON for what is not; the same bytes when all is. Lets other threads work."""
    return _ODD_TOKEN.sub(_repair_token, data) if may_be_odd(data) else data


class StreamRepair:
    """Makes the events of one stream strict JSON; a surrogate pair may be split over two of them."""

    __slots__ = ("_halves",)

    def __init__(self) -> None:
        self._halves: dict[_Path, str] = {}  # first halves of pairs, by the place of the text that they end

    def repair_event(self, event: bytes) -> bytes:
        """Return the event with strict JSON: the same bytes when it has it, as nearly all do."""
        if not self._halves and not may_be_odd(event):
            return event
        data = data_of(event)
        if not data or data == b"[DONE]":
            return event
        if _count_parts(data, MAX_ODD_PARTS) > MAX_ODD_PARTS:
            return repair_provider_json(event)
        if not self._halves and _is_strict(data):
            return event
        try:
            value = _repair(_parse_odd(data), self._halves)
        except ValueError:
            return event
        others = [line for line in event.split(b"\n") if not line.startswith(b"data:")]
        return b"\n".join([*others, b"data: " + json_bytes(value)])


def _repair_token(match: re.Match[bytes]) -> bytes:
    token = match[0]
    if token[0] != ord('"'):
        return b"null"
    if (b"\\ud" not in token and b"\\uD" not in token) or _is_strict(token):
        return token
    try:
        return json_bytes(_combine(json.loads(token)))
    except ValueError:
        return token


def _is_strict(data: bytes) -> bool:
    try:
        orjson.loads(data)
    except orjson.JSONDecodeError:
        return False
    return True


def _count_parts(data: bytes, most: int) -> int:
    """Return the number of parts; counting stops soon after ``most``, because it takes time."""
    parts = 0
    for at in range(0, len(data), _SLICE):
        for sign in (b",", b"[", b"{"):
            parts += data.count(sign, at, at + _SLICE)
        if parts > most:
            break
    return parts


def _parse_large(data: bytes, most: int) -> Json:
    """Parse data that may take long: every step over all of it blocks the event loop."""
    parts = _count_parts(data, most)
    if parts > most:
        raise ValueError(Message("it has more than {most:,} values", most=most))
    if not data[:64].lstrip(b" \t\r\n\xef\xbb\xbf").startswith((b"{", b"[", b'"')):
        raise ValueError(Message("it is not JSON"))
    may_be_long = parts <= MAX_ODD_PARTS and len(data) <= _MAX_EXACT
    if may_be_long and data.translate(_DIGITS).find(_LONG) >= 0:
        return _repair(_parse_odd(data))
    enabled = gc.isenabled()
    gc.disable()  # its repeated passes over the growing value double the time
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return _repair(_parse_odd(data))
    finally:
        if enabled:
            gc.enable()
    _require_flat(value, data)
    return value  # type: ignore[no-any-return]


def _require_flat(value: Any, data: bytes) -> None:
    """Raise ValueError for a value that could be read but not written again."""
    if _count_parts(data, MAX_DEPTH) > MAX_DEPTH:
        try:
            orjson.dumps(value)
        except orjson.JSONEncodeError as error:
            raise ValueError(_too_deep()) from error


def _too_deep() -> Message:
    return Message("it is nested too deep")


def _parse_odd(data: bytes) -> Any:
    if _count_parts(data, MAX_ODD_PARTS) > MAX_ODD_PARTS:
        raise ValueError(Message("it is not strict JSON and has more than {most:,} values", most=MAX_ODD_PARTS))
    try:
        return json.loads(data, parse_constant=lambda _: None)
    except RecursionError as error:
        raise ValueError(_too_deep()) from error


def _repair(value: Any, halves: dict[_Path, str] | None = None) -> Json:
    """Make texts and numbers in ``value`` writable, in place. Never recurses. Raises ValueError for deep nesting."""
    holder = [value]
    pending: list[tuple[Any, _Path, int]] = [(holder, (), 0)]
    while pending:
        container, path, depth = pending.pop()
        if depth > MAX_DEPTH:
            raise ValueError(_too_deep())
        for key, inner, place in _entries(container, path):
            if isinstance(inner, dict | list):
                pending.append((inner, place, depth + 1))
            elif isinstance(inner, str):
                if halves or not is_unicode(inner):
                    container[key] = _repair_text(inner, place, halves)
            elif isinstance(inner, float) and not math.isfinite(inner):
                container[key] = None
    return holder[0]  # type: ignore[no-any-return]


def _entries(container: Any, path: _Path) -> Iterator[tuple[Any, Any, _Path]]:
    """Yield key, value and path of each entry; choices and calls are identified by their index, wherever they stand."""
    if isinstance(container, dict):
        for key in list(container):
            inner = container[key]
            if not is_unicode(key):
                del container[key]
                container[key := _combine(key)] = inner
            yield key, inner, (*path, key[:_MAX_STEP]) if len(path) < _MAX_PATH else path
        return
    for position, inner in enumerate(container):
        index = inner.get("index", position) if isinstance(inner, dict) else position
        step = index if isinstance(index, int) else position
        yield position, inner, (*path, step) if len(path) < _MAX_PATH else path


def _repair_text(text: str, place: _Path, halves: dict[_Path, str] | None) -> str:
    if halves is None:
        return _combine(text)
    if text:
        text = halves.pop(place, "") + text
    if text and "\ud800" <= text[-1] <= "\udbff" and len(halves) < _MAX_HALVES:
        halves[place] = text[-1]
        text = text[:-1]
    return text if is_unicode(text) else _combine(text)


def _combine(text: str) -> str:
    """Return ``text`` with pairs as the characters they stand for, and single halves as U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
