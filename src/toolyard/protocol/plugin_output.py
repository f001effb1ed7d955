"""What a plugin said on stdout: the JSON objects with a status, found among whatever else it printed.

Contract. An object counts when its ``status`` is success, error or partial. The first is the receipt of an asynchronous
plugin, known as soon as its last brace has been fed; the last is the answer of a synchronous one. Where there is none,
the last object with any other status counts, or the only object of all in an older form (``plugin_forms``). Everything
else is noise: its first lines are kept, the rest is counted. An object nested deeper than ``MAX_DEPTH`` is not read.
Read kindly, each noted: invalid UTF-8 is replaced, NaN and Infinity become null, halves of surrogate pairs are
replaced; of two equal keys the last counts. Linear in the output; never recurses; keeps at most the output itself.
"""

import json
import re
from dataclasses import dataclass, replace

import orjson

from toolyard.protocol.json import MAX_DEPTH, JsonObject
from toolyard.protocol.json_scan import JsonScan, Region
from toolyard.protocol.plugin_forms import has_status, read_form_without_status, read_status_word

NOISE_KEPT = 2048  # bytes
_BOM = b"\xef\xbb\xbf"

_digits = bytes(48 if 48 <= byte <= 57 else 120 for byte in range(256))  # a table: every digit a 0, the rest x
_LONG = b"0" * 19  # such integers do not fit 64 bits, and orjson would round them
_one_kind = bytes.maketrans(b"{}", b"[]")
_no_brackets = bytes(byte for byte in range(256) if byte not in b"[]{}")
_escape = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[dD][89a-fA-F][0-9a-fA-F]{2}|.)", re.S
)


@dataclass(frozen=True, slots=True)
class PrintedObject:
    """One object with a status: ``stdout[start:end]``."""

    value: JsonObject
    start: int
    end: int
    bad_utf8_at: int | None = None  # the offset in stdout of the first byte that is no UTF-8
    notes: tuple[str, ...] = ()

    @property
    def is_answer(self) -> bool:
        """Whether its status means something."""
        return has_status(self.value)


@dataclass(frozen=True, slots=True)
class Output:
    """The whole of stdout."""

    first: PrintedObject | None
    last: PrintedObject | None
    count: int  # objects with a status
    noise: str  # what stood around them, from its beginning
    noise_bytes: int
    too_deep_at: int | None  # where an object nested too deep begins
    size: int


class OutputDecoder:
    """Feed it stdout; ask for the receipt at any time, for everything at the end."""

    def __init__(self) -> None:
        self._scan = JsonScan()
        self._first: PrintedObject | None = None
        self._last: PrintedObject | None = None
        self._odd: PrintedObject | None = None  # the last one with another status
        self._count = 0
        self._noise = bytearray()
        self._noise_bytes = 0
        self._told = 0  # up to here everything is either noise or a counted object
        self._too_deep_at: int | None = None

    @property
    def size(self) -> int:
        return len(self._scan.buffer)

    @property
    def noise(self) -> str:
        """What stood around the objects that were found, from its beginning."""
        return self._noise.decode("utf-8", "replace")

    def head(self, size: int) -> bytes:
        return bytes(self._scan.buffer[:size])

    def feed(self, chunk: bytes) -> None:
        self._scan.buffer += chunk

    def receipt(self) -> PrintedObject | None:
        """The first object with a status, as soon as it is complete."""
        if self._first is None:
            for region in self._scan.regions():
                self._take(region)
        return self._first

    def finish(self) -> Output:
        """Nothing more will come."""
        quick = None if self._scan.work else _find_quickly(self._scan.buffer)
        before = self._scan
        if quick:
            before = JsonScan()
            before.buffer += self._scan.buffer[: quick.start]
        for region in before.regions(final=True):
            self._take(region)
        if quick:
            self._count_object(quick)
        elif not self._count and (older := self._odd or _only_object(self._scan.buffer)):
            self._count_object(older)
        self._note_noise(len(self._scan.buffer))
        return Output(
            self._first,
            self._last,
            self._count,
            self.noise,
            self._noise_bytes,
            self._too_deep_at,
            len(self._scan.buffer),
        )

    def _take(self, region: Region) -> None:
        if region.depth > MAX_DEPTH and not _is_shallow(self._scan.buffer[region.start : region.end]):
            self._too_deep_at = region.start if self._too_deep_at is None else self._too_deep_at
            return
        if self._scan.buffer.find(b'"status"', region.start, region.end) < 0:  # as most lines of a log
            return
        said = _parse_region(self._scan.buffer, region)
        if said is not None and said.is_answer:
            self._count_object(said)
        elif said is not None and "status" in said.value:
            value, notes = read_status_word(said.value)
            self._odd = replace(said, value=value, notes=(*said.notes, *notes))

    def _count_object(self, said: PrintedObject) -> None:
        self._note_noise(said.start)
        self._told = said.end
        self._first = self._first or said
        self._last = said
        self._count += 1

    def _note_noise(self, end: int) -> None:
        start = self._told
        if self._scan.buffer.startswith(_BOM) and not start:
            start = min(len(_BOM), end)
        noise = bytes(self._scan.buffer[start:end]).strip()
        if noise:
            self._noise_bytes += len(noise)
            room = max(0, NOISE_KEPT - len(self._noise))
            self._noise += noise[:room] + b"\n" if room else b""
        self._told = end


def holds_answer(stdout: bytes) -> bool:
    """Whether an answer would be found in this if nothing more came."""
    if b"}" not in stdout:
        return False
    decoder = OutputDecoder()
    decoder.feed(stdout)
    last = decoder.finish().last
    return last is not None and last.is_answer


def _find_quickly(buffer: bytearray) -> PrintedObject | None:
    """The common cases at the parser's own speed: the last object that begins a line, or the first of all."""
    end = buffer.rfind(b"}") + 1
    last, first = buffer.rfind(b"\n{") + 1, buffer.find(b"{")
    return _parse_plain(buffer, last, end) or (_parse_plain(buffer, first, end) if first >= 0 else None)


def _parse_plain(buffer: bytearray, start: int, end: int) -> PrintedObject | None:
    """One object without anything odd about it, or None."""
    if buffer[start : start + 1] != b"{" or _long_number(buffer):
        return None
    with memoryview(buffer) as whole, whole[start:end] as text:
        try:
            value = orjson.loads(text)
        except ValueError:
            return None
    return PrintedObject(value, start, end) if has_status(value) and _is_shallow(buffer[start:end]) else None


def _only_object(buffer: bytearray) -> PrintedObject | None:
    """The one object that is all there is, if it is an answer in an older form."""
    bom = len(_BOM) if buffer.startswith(_BOM) else 0
    region = Region(len(buffer) - len(buffer[bom:].lstrip()), len(buffer.rstrip()), 0)
    if buffer[region.start : region.start + 1] != b"{" or not _is_shallow(buffer[region.start : region.end]):
        return None
    said = _parse_region(buffer, region)
    form = read_form_without_status(said.value) if said else None
    return replace(said, value=form[0], notes=(*said.notes, *form[1])) if said and form else None


def _parse_region(buffer: bytearray, region: Region) -> PrintedObject | None:
    """The object at a region, or None when it is none."""
    text = bytes(buffer[region.start : region.end])
    try:
        value = None if _long_number(text) else orjson.loads(text)
    except ValueError:
        value = None
    if value is not None:
        return PrintedObject(value, region.start, region.end) if isinstance(value, dict) else None
    return _parse_leniently(text, region)


def _parse_leniently(raw: bytes, region: Region) -> PrintedObject | None:
    bad_at: int | None = None
    notes: list[str] = []
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        bad_at = region.start + error.start
        text = raw.decode("utf-8", "replace")

    def null(word: str) -> None:
        note = f"{word} is not JSON; it was read as null"
        if note not in notes:
            notes.append(note)

    try:
        value = json.loads(_escape.sub(_whole_character, text), parse_constant=null)
    except ValueError:
        return None
    return PrintedObject(value, region.start, region.end, bad_at, tuple(notes)) if isinstance(value, dict) else None


def _whole_character(found: re.Match[str]) -> str:
    """Half of a surrogate pair is no character; everything else stays as written."""
    escape = found[0]
    return "\\ufffd" if len(escape) == 6 else escape


def _long_number(text: bytes | bytearray) -> bool:
    return _LONG in text.translate(_digits)


def _is_shallow(text: bytes | bytearray) -> bool:
    """Whether valid JSON nests at most ``MAX_DEPTH`` levels deep: so often can the innermost brackets be removed."""
    no_strings = b"".join(text.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')[::2])
    brackets = no_strings.translate(_one_kind, _no_brackets)
    for _ in range(MAX_DEPTH):
        brackets = brackets.replace(b"[]", b"")
    return not brackets
