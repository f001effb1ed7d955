"""Finds the complete JSON objects in a stream of bytes, at any position, as the bytes arrive.

A candidate begins at a brace that a key or a closing brace follows, and lives as long as the following bytes can still
be JSON: ``{not json`` is dead at once and hides nothing. After a dead one the search continues where it failed; it
goes back only to a string it just left (the quote may belong to what follows) and to an object at the very start of a
line inside it (a cut line swallowed a complete one). It never takes the other inner objects of a dead candidate: half
of a result is not a result.

Linear: every byte is read a fixed number of times, and the bytes read again are never more in sum than those read.
Never recurses. Words (numbers, true, NaN) are matched loosely here: the parser decides about each region.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from toolyard.protocol.regex import compile_pattern

_TEXT = rb'[^"\\\x00-\x1f]*+(?:\\["\\/bfnrtu][^"\\\x00-\x1f]*+)*+'  # the inside of a string
_STRING = rb'"' + _TEXT + rb'"'
_BLANKS = rb"[ \t\r\n]*+"
_WORD = rb"[-0-9tfnNI][-+.0-9A-Za-z]*+"
_MEMBER = _BLANKS + _STRING + _BLANKS + b":"
_SCALAR = _BLANKS + b"(?:" + _STRING + b"|" + _WORD + b")" + _BLANKS
_LEAF_ARRAY = rb"\[(?:" + _SCALAR + rb",)*+" + _SCALAR + rb"\]"
_LEAF_OBJECT = rb"\{(?:" + _MEMBER + _SCALAR + rb",)*+" + _MEMBER + _SCALAR + rb"\}"
_INNER = b"|".join((_STRING, _WORD, _LEAF_ARRAY, rb"(?<!\n)" + _LEAF_OBJECT))  # at the start of a line it may be more
_PLAIN = _BLANKS + b"(?:" + _INNER + b")" + _BLANKS + b","

_start = compile_pattern(
    rb"\{(?=" + _BLANKS + rb"(?:\}|\Z|" + _MEMBER + rb'|"' + _TEXT + rb"\\?\Z|" + _STRING + _BLANKS + rb"\Z))"
)
_leaf = compile_pattern(_LEAF_OBJECT)
_text = compile_pattern(_TEXT)
_blanks = re.compile(_BLANKS)
_word = re.compile(rb"[-+.0-9A-Za-z]*+")
_members = compile_pattern(b"(?:" + _MEMBER + _PLAIN + b")*+")  # complete runs at the speed of the regex engine
_items = compile_pattern(b"(?:" + _PLAIN + b")*+")

_OBJECT, _ARRAY = b"{["
_QUOTE, _COLON, _COMMA, _BACKSLASH, _LINE_FEED = b'":,\\\n'
_CLOSERS = {_OBJECT: ord("}"), _ARRAY: ord("]")}
_RUNS = {_members: ("first_key", "key"), _items: ("first_item", "value")}
_MAX_LINE_STARTS = 100  # remembered at a time; deeper nesting is no cut line
_WORD_STARTS = frozenset(b"-0123456789tfnNI")


@dataclass(frozen=True, slots=True)
class Region:
    """``buffer[start:end]`` is an object as far as its structure goes; it nests ``depth`` levels deep or one less."""

    start: int
    end: int
    depth: int


class _Candidate:
    """A brace and the progress of its reading. ``state`` names what may come next."""

    __slots__ = ("at", "complete_line", "depth", "in_string", "line_starts", "open", "start", "state", "string_at")

    def __init__(self, start: int) -> None:
        self.start, self.at = start, start + 1
        self.state = "first_key"
        self.open = bytearray((_OBJECT,))
        self.depth = 1
        self.in_string = False
        self.string_at = -1  # start of the last string, while nothing came after it
        self.line_starts: dict[int, int] = {}  # open inner objects at the start of a line, by depth
        self.complete_line = -1  # the first of them that is complete


class JsonScan:
    """Feed ``buffer`` by extending it; ``regions`` yields the objects complete by now."""

    def __init__(self) -> None:
        self.buffer = bytearray()
        self.work = 0  # bytes read, those read again included: the proof that it is linear
        self._at = 0
        self._again = 0
        self._candidate: _Candidate | None = None

    def regions(self, *, final: bool = False) -> Iterator[Region]:
        """Yield the objects complete by now that were not yielded before; ``final``: no more bytes will come."""
        while True:
            if self._candidate is None:
                match = _start.search(self.buffer, self._at)
                if not match:
                    self._skip_to(len(self.buffer))
                    return
                self._skip_to(match.start())
                del match  # it holds the buffer, which could not grow
                end = _end(_leaf, self.buffer, self._at)  # most lines of a log
                if end > self._at:
                    start = self._at
                    self._skip_to(end)
                    yield Region(start, end, 1)
                    continue
                self._candidate = _Candidate(self._at)
            candidate = self._candidate
            before = candidate.at
            alive = _advance(candidate, self.buffer)
            self.work += candidate.at - before
            if alive and not candidate.open:
                self._at, self._candidate = candidate.at, None
                yield Region(candidate.start, candidate.at, candidate.depth)
            elif alive and not final:
                return
            else:
                self._bury(candidate)

    def _skip_to(self, at: int) -> None:
        self.work += at - self._at
        self._at = at

    def _bury(self, dead: _Candidate) -> None:
        back = dead.complete_line if dead.complete_line >= 0 else dead.string_at
        again = dead.at - back
        if back <= dead.start or self._again + again > dead.at:
            back, again = max(dead.at, dead.start + 1), 0
        self._again += again
        self._at, self._candidate = back, None


def _advance(candidate: _Candidate, buffer: bytearray) -> bool:
    """Read on to the end of the object or of the buffer. False when it cannot be JSON any more."""
    size = len(buffer)
    while candidate.open:
        if candidate.in_string:
            if not _read_text(candidate, buffer):
                return candidate.at >= size or (buffer[candidate.at] == _BACKSLASH and candidate.at + 1 >= size)
            continue
        _read_run(candidate, buffer)
        candidate.at = _end(_blanks, buffer, candidate.at)
        if candidate.at >= size:
            return True
        if not _STEPS[candidate.state](candidate, buffer[candidate.at], buffer):
            return False
    return True


def _end(pattern: re.Pattern[bytes], buffer: bytearray, at: int) -> int:
    match = pattern.match(buffer, at)
    return match.end() if match else at


def _read_run(candidate: _Candidate, buffer: bytearray) -> None:
    """Read many plain members or items at once; the single steps handle anything else."""
    run = _members if candidate.open[-1] == _OBJECT else _items
    if candidate.state not in _RUNS[run]:
        return
    end = _end(run, buffer, candidate.at)
    if end > candidate.at:
        candidate.at, candidate.string_at = end, -1
        candidate.state = "key" if run is _members else "value"
        candidate.depth = max(candidate.depth, len(candidate.open) + 1)


def _read_text(candidate: _Candidate, buffer: bytearray) -> bool:
    candidate.at = _end(_text, buffer, candidate.at)
    if candidate.at >= len(buffer) or buffer[candidate.at] != _QUOTE:
        return False
    candidate.at += 1
    candidate.in_string = False
    return True


def _open_string(candidate: _Candidate, then: str) -> bool:
    candidate.string_at = candidate.at
    candidate.at += 1
    candidate.in_string, candidate.state = True, then
    return True


def _close(candidate: _Candidate, byte: int) -> bool:
    if byte != _CLOSERS[candidate.open[-1]]:
        return False
    line_start = candidate.line_starts.pop(len(candidate.open), -1)
    if candidate.complete_line < 0:
        candidate.complete_line = line_start
    candidate.open.pop()
    candidate.at += 1
    candidate.state, candidate.string_at = "after", -1
    return True


def _key(candidate: _Candidate, byte: int, _: bytearray) -> bool:
    return byte == _QUOTE and _open_string(candidate, "colon")


def _first_key(candidate: _Candidate, byte: int, buffer: bytearray) -> bool:
    return _key(candidate, byte, buffer) or _close(candidate, byte)


def _colon(candidate: _Candidate, byte: int, _: bytearray) -> bool:
    if byte != _COLON:
        return False
    candidate.at += 1
    candidate.state, candidate.string_at = "value", -1
    return True


def _value(candidate: _Candidate, byte: int, buffer: bytearray) -> bool:
    if byte == _QUOTE:
        return _open_string(candidate, "after")
    if byte in _CLOSERS:
        candidate.open.append(byte)
        candidate.depth = max(candidate.depth, len(candidate.open))
        at_line_start = byte == _OBJECT and buffer[candidate.at - 1] == _LINE_FEED
        if at_line_start and len(candidate.line_starts) < _MAX_LINE_STARTS:
            candidate.line_starts[len(candidate.open)] = candidate.at
        candidate.at += 1
        candidate.state = "first_key" if byte == _OBJECT else "first_item"
        return True
    if byte not in _WORD_STARTS:
        return False
    candidate.at = _end(_word, buffer, candidate.at)
    candidate.state = "after_word"
    return True


def _first_item(candidate: _Candidate, byte: int, buffer: bytearray) -> bool:
    return _value(candidate, byte, buffer) or _close(candidate, byte)


def _after(candidate: _Candidate, byte: int, _: bytearray) -> bool:
    if byte != _COMMA:
        return _close(candidate, byte)
    candidate.at += 1
    candidate.state = "key" if candidate.open[-1] == _OBJECT else "value"
    candidate.string_at = -1
    return True


def _after_word(candidate: _Candidate, byte: int, buffer: bytearray) -> bool:
    end = _end(_word, buffer, candidate.at)  # the word may have been cut by the end of the buffer
    if end == candidate.at:
        candidate.state = "after"
        return _after(candidate, byte, buffer)
    candidate.at = end
    return True


_STEPS = {
    "first_key": _first_key,
    "key": _key,
    "colon": _colon,
    "value": _value,
    "first_item": _first_item,
    "after": _after,
    "after_word": _after_word,
}
