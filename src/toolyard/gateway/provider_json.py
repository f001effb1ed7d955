"""JSON as model providers write it: strict JSON, and what the official clients of OpenAI read beside it.

``orjson`` reads nearly everything. Where it refuses, Python's own reader is asked: ``NaN`` and ``Infinity`` become
null, and half of a surrogate pair becomes U+FFFD unless the other half comes in the next event of the stream. Integers
are exact, however long. A value of too many parts is refused, because reading it would stop everything else.
"""

import gc
import json
import math
from collections.abc import Iterator
from typing import Any, Final

import orjson

from toolyard.gateway.sse import data_of
from toolyard.protocol.json import MAX_DEPTH, Json, json_bytes

MAX_PARTS: Final = 700_000  # signs that separate values; as many take less than 100 ms to read
MAX_ODD_PARTS: Final = 150_000  # of a value that orjson refuses: Python's reader takes longer
_MAX_HALVES = 64  # texts of a stream that may wait for the other half of a pair
_MAX_PATH = 12  # steps to a text that is waited for
_MANY_PARTS = 50_000
_SHORT = 64 * 1024  # bytes that cannot have many
_DIGITS = bytes.maketrans(b"0123456789", b"0" * 10)
_LONG = b"0" * 19  # digits of an integer that may be beyond 64 bits, which orjson rounds
_BACKSLASH, _N, _I = b"\\NI"

_Path = tuple[str | int, ...]


def parse_provider_json(data: bytes) -> Json:
    """Parse a value that a provider sent. Raises ValueError, with the reason, when it cannot be read."""
    parts = _count_parts(data) if len(data) > _SHORT else 0
    if parts > MAX_PARTS:
        raise ValueError(f"it has more than {MAX_PARTS:,} values")
    is_long = data.translate(_DIGITS).find(_LONG) >= 0 and parts <= MAX_ODD_PARTS
    if not is_long:
        try:
            value = _parse_large(data) if parts > _MANY_PARTS else orjson.loads(data)
        except orjson.JSONDecodeError:
            return _repair(_parse_odd(data))  # it knows more, and says why if it does not
        if len(data) > 2 * MAX_DEPTH:
            _require_flat(value, data)
        return value  # type: ignore[no-any-return]
    return _repair(_parse_odd(data))


def repair_provider_json(data: bytes) -> bytes:
    """Return ``data`` as strict JSON: the same bytes when it is, or when nothing can be made of it."""
    if not _may_be_odd(data) or _is_strict(data):
        return data
    try:
        return json_bytes(_repair(_parse_odd(data)))
    except ValueError:
        return data


class StreamRepair:
    """Makes the events of one stream strict JSON; a surrogate pair may be split over two of them."""

    __slots__ = ("_halves",)

    def __init__(self) -> None:
        self._halves: dict[_Path, str] = {}  # first halves of pairs, by the place of the text that they end

    def repair_event(self, event: bytes) -> bytes:
        """Return the event with strict JSON: the same bytes when it has it, as nearly all do."""
        if not self._halves and not _may_be_odd(event):
            return event
        data = data_of(event)
        if not data or data == b"[DONE]" or (not self._halves and _is_strict(data)):
            return event
        try:
            value = _repair(_parse_odd(data), self._halves)
        except ValueError:
            return event
        others = [line for line in event.split(b"\n") if not line.startswith(b"data:")]
        return b"\n".join([*others, b"data: " + json_bytes(value)])


def _may_be_odd(data: bytes) -> bool:
    """Whether it may hold NaN, Infinity or half of a pair; so written as to take a few dozen nanoseconds."""
    if _BACKSLASH in data and (b"\\ud" in data or b"\\uD" in data):
        return True
    return (_N in data and b"NaN" in data) or (_I in data and b"Infinity" in data) or data.startswith(b"\xef\xbb\xbf")


def _is_strict(data: bytes) -> bool:
    if _count_parts(data) > MAX_ODD_PARTS:
        return False
    try:
        orjson.loads(data)
    except orjson.JSONDecodeError:
        return False
    return True


def _count_parts(data: bytes) -> int:
    return data.count(b",") + data.count(b"[") + data.count(b"{")


def _parse_large(data: bytes) -> Any:
    """The collector would look again and again through what is being made, which doubles the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        return orjson.loads(data)
    finally:
        if enabled:
            gc.enable()


def _require_flat(value: Any, data: bytes) -> None:
    """Raises ValueError for what could be read and not be written again."""
    if data.count(b"[") + data.count(b"{") > MAX_DEPTH:
        try:
            orjson.dumps(value)
        except orjson.JSONEncodeError as error:
            raise ValueError("it is nested too deep") from error


def _parse_odd(data: bytes) -> Any:
    if _count_parts(data) > MAX_ODD_PARTS:
        raise ValueError(f"it is not strict JSON and has more than {MAX_ODD_PARTS:,} values")
    try:
        return json.loads(data, parse_constant=lambda _: None)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


def _repair(value: Any, halves: dict[_Path, str] | None = None) -> Json:
    """Make texts and numbers in ``value`` writable, in place. Never recurses. Raises ValueError for deep nesting."""
    holder = [value]
    pending: list[tuple[Any, _Path, int]] = [(holder, (), 0)]
    while pending:
        container, path, depth = pending.pop()
        if depth > MAX_DEPTH:
            raise ValueError("it is nested too deep")
        for key, inner, place in _entries(container, path):
            if isinstance(inner, dict | list):
                pending.append((inner, place, depth + 1))
            elif isinstance(inner, str):
                if halves or not _is_writable(inner):
                    container[key] = _repair_text(inner, place, halves)
            elif isinstance(inner, float) and not math.isfinite(inner):
                container[key] = None
    return holder[0]  # type: ignore[no-any-return]


def _entries(container: Any, path: _Path) -> Iterator[tuple[Any, Any, _Path]]:
    """Key, value and place of each; choices and calls are known by their index, wherever they stand."""
    if isinstance(container, dict):
        for key in list(container):
            inner = container[key]
            if not _is_writable(key):
                del container[key]
                container[key := _combine(key)] = inner
            yield key, inner, (*path, key) if len(path) < _MAX_PATH else path
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
    return text if _is_writable(text) else _combine(text)


def _combine(text: str) -> str:
    """Pairs as the characters they stand for, single halves as U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _is_writable(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
