"""A plugin's answer on stdout: the JSON objects with a status, found among any other output.

Contract. An object counts when its ``status`` is success, error or partial. The first is the receipt of an asynchronous
plugin, known as soon as its last brace has been fed; the last is the answer of a synchronous one. Where there is none,
the last object with any other status counts, or the only object of all in an older form. Everything
else is noise: its first lines are kept, the rest is counted. An object nested deeper than ``MAX_DEPTH`` is not read.
Tolerated, each with a note: invalid UTF-8 is replaced, NaN and Infinity become null, halves of surrogate pairs are
replaced; of two equal keys the last counts. Linear in the output; never recurses; keeps at most the output itself.

Forms of answers from before VCP v2 (000 §1.1, 001 §3.3, 002 §3.3) are converted to the one with a status, each with a
warning for the plugin's author:

- ``ok``, ``fail`` and ``failed`` are read as the statuses they mean.
- ``{"success": true, "data": ...}``, ``{"success": false, "error": ...}`` and ``{"error": ...}`` have no status at all,
  as log lines have none: they count only where nothing else was printed.

The stdout of a static plugin is the text of a placeholder. VCPToolBox folds long values by relevance, which takes
embeddings; without them it shows the base block, and so do we.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

import orjson

from toolyard.message import Message
from toolyard.protocol.json import MAX_DEPTH, Json, JsonObject
from toolyard.protocol.plugin_answers.json_scan import JsonScan, Region

NOISE_KEPT = 2048  # bytes
_BOM = b"\xef\xbb\xbf"
_digits = bytes(48 if 48 <= byte <= 57 else 120 for byte in range(256))  # a table: every digit a 0, the rest x
_LONG = b"0" * 19  # such integers do not fit 64 bits, and orjson would round them
_one_kind = bytes.maketrans(b"{}", b"[]")
_no_brackets = bytes(byte for byte in range(256) if byte not in b"[]{}")
_escape = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[dD][89a-fA-F][0-9a-fA-F]{2}|.)", re.S
)
STATUSES = ("success", "partial", "error")
_WORDS: Mapping[str, str] = {"ok": "success", "fail": "error", "failed": "error"}
_BESIDE = ("_specialAction", "payload")
_FOLD = re.compile(r"^\[===\s*vcp_fold:\s*([0-9.]+).*?===\]\s*$", re.MULTILINE)


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
        """Return whether its status is one of the three."""
        return has_status(self.value)


@dataclass(frozen=True, slots=True)
class Output:
    """The parsed stdout of a plugin."""

    first: PrintedObject | None
    last: PrintedObject | None
    count: int  # objects with a status
    noise: str  # the text around them, from its beginning
    noise_bytes: int
    too_deep_at: int | None  # start of an object nested too deep
    size: int


class OutputDecoder:
    """Feed it stdout; the receipt is available at any time, everything else at the end."""

    def __init__(self) -> None:
        self._scan = JsonScan()
        self._first: PrintedObject | None = None
        self._last: PrintedObject | None = None
        self._odd: PrintedObject | None = None  # the last one with another status
        self._count = 0
        self._noise = bytearray()
        self._noise_bytes = 0
        self._handled = 0  # up to here everything is either noise or a counted object
        self._too_deep_at: int | None = None

    @property
    def size(self) -> int:
        return len(self._scan.buffer)

    @property
    def noise(self) -> str:
        """The text around the objects that were found, from its beginning."""
        return self._noise.decode("utf-8", "replace")

    def head(self, size: int) -> bytes:
        return bytes(self._scan.buffer[:size])

    def feed(self, chunk: bytes) -> None:
        self._scan.buffer += chunk

    def receipt(self) -> PrintedObject | None:
        """Return the first object with a status, as soon as it is complete."""
        if self._first is None:
            for region in self._scan.regions():
                self._take(region)
        return self._first

    def finish(self) -> Output:
        """Return the parsed output: no more will come."""
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
        printed = _parse_region(self._scan.buffer, region)
        if printed is not None and printed.is_answer:
            self._count_object(printed)
        elif printed is not None and "status" in printed.value:
            value, notes = read_status_word(printed.value)
            self._odd = replace(printed, value=value, notes=(*printed.notes, *notes))

    def _count_object(self, printed: PrintedObject) -> None:
        self._note_noise(printed.start)
        self._handled = printed.end
        self._first = self._first or printed
        self._last = printed
        self._count += 1

    def _note_noise(self, end: int) -> None:
        start = self._handled
        if self._scan.buffer.startswith(_BOM) and not start:
            start = min(len(_BOM), end)
        noise = bytes(self._scan.buffer[start:end]).strip()
        if noise:
            self._noise_bytes += len(noise)
            room = max(0, NOISE_KEPT - len(self._noise))
            self._noise += noise[:room] + b"\n" if room else b""
        self._handled = end


def holds_answer(stdout: bytes) -> bool:
    """Return whether an answer would be found in ``stdout`` if nothing more came."""
    if b"}" not in stdout:
        return False
    decoder = OutputDecoder()
    decoder.feed(stdout)
    last = decoder.finish().last
    return last is not None and last.is_answer


def _find_quickly(buffer: bytearray) -> PrintedObject | None:
    """Return the answer of the common cases at the parser's speed: the last object that begins a line, or the first."""
    end = buffer.rfind(b"}") + 1
    last, first = buffer.rfind(b"\n{") + 1, buffer.find(b"{")
    return _parse_plain(buffer, last, end) or (_parse_plain(buffer, first, end) if first >= 0 else None)


def _parse_plain(buffer: bytearray, start: int, end: int) -> PrintedObject | None:
    """Return one object without anything odd in it, or None."""
    if buffer[start : start + 1] != b"{" or _long_number(buffer):
        return None
    with memoryview(buffer) as view, view[start:end] as text:
        try:
            value = orjson.loads(text)
        except ValueError:
            return None
    return PrintedObject(value, start, end) if has_status(value) and _is_shallow(buffer[start:end]) else None


def _only_object(buffer: bytearray) -> PrintedObject | None:
    """Return the object that is the entire output, if it is an answer in an older form."""
    bom = len(_BOM) if buffer.startswith(_BOM) else 0
    region = Region(len(buffer) - len(buffer[bom:].lstrip()), len(buffer.rstrip()), 0)
    if buffer[region.start : region.start + 1] != b"{" or not _is_shallow(buffer[region.start : region.end]):
        return None
    printed = _parse_region(buffer, region)
    form = read_form_without_status(printed.value) if printed else None
    return replace(printed, value=form[0], notes=(*printed.notes, *form[1])) if printed and form else None


def _parse_region(buffer: bytearray, region: Region) -> PrintedObject | None:
    """Return the object at a region, or None when it is none."""
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
        note = Message("{word} is not JSON; it was read as null", word=word)
        if note not in notes:
            notes.append(note)

    try:
        value = json.loads(_escape.sub(_replace_lone_surrogate, text), parse_constant=null)
    except ValueError:
        return None
    return PrintedObject(value, region.start, region.end, bad_at, tuple(notes)) if isinstance(value, dict) else None


def _replace_lone_surrogate(match: re.Match[str]) -> str:
    """Replace half of a surrogate pair, which is no character; everything else stays as written."""
    escape = match[0]
    return "\\ufffd" if len(escape) == 6 else escape


def _long_number(text: bytes | bytearray) -> bool:
    return _LONG in text.translate(_digits)


def _is_shallow(text: bytes | bytearray) -> bool:
    """Return whether valid JSON nests at most ``MAX_DEPTH`` levels, by removing innermost brackets so often."""
    no_strings = b"".join(text.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')[::2])
    brackets = no_strings.translate(_one_kind, _no_brackets)
    for _ in range(MAX_DEPTH):
        brackets = brackets.replace(b"[]", b"")
    return not brackets


def has_status(value: object) -> bool:
    """Return whether ``value`` is an object with one of the three statuses."""
    status = value.get("status") if isinstance(value, dict) else None
    return isinstance(status, str) and status in STATUSES


def read_status_word(value: JsonObject) -> tuple[JsonObject, tuple[str, ...]]:
    """Return an object with another status word with the status that it means, and a warning.

    An unknown word is left as it is, for the reader of the answer to report.
    """
    word = value["status"]
    status = _WORDS.get(word) if isinstance(word, str) else None
    if status is None:
        return value, ()
    warning = Message(
        'Its status "{word}" was read as "{status}": the statuses are {names}.',
        word=str(word),
        status=status,
        names=", ".join(STATUSES),
    )
    return {**value, "status": status}, (warning,)


def read_form_without_status(value: JsonObject) -> tuple[JsonObject, tuple[str, ...]] | None:
    """Return the only printed object, in one of the older forms, with a status and a warning; None: it is none."""
    success = value.get("success")
    if isinstance(success, bool):
        status, form = ("success", '"success": true') if success else ("error", '"success": false')
    elif _is_error(value.get("error")):
        status, form = "error", '"error" alone'
    else:
        return None
    rest = {key: inner for key, inner in value.items() if key != "success"}
    answer: JsonObject = {"status": status, **(_with_result(rest) if status == "success" else rest)}
    warning = Message(
        'It answered with {form}, an older form: print "status": "{status}" instead.', form=form, status=status
    )
    return answer, (warning,)


def _is_error(error: Json) -> bool:
    return isinstance(error, str | dict) and bool(error)


def _with_result(rest: JsonObject) -> JsonObject:
    """Return ``rest`` with ``data`` renamed to ``result``; the special action stays beside it."""
    data = rest.get("data")
    if "data" not in rest or "result" in rest:
        return rest
    others = {key: value for key, value in rest.items() if key != "data"}
    if not isinstance(data, dict):
        return {**others, "result": data}
    beside = {key: data[key] for key in _BESIDE if key in data}
    return {**others, "result": {key: value for key, value in data.items() if key not in beside}, **beside}


def read_static_value(stdout: str) -> str:
    """Return the text to insert."""
    text = stdout.strip()
    if text.startswith("{") and "vcp_dynamic_fold" in text:
        folded = _object(text)
        if folded is not None:
            return folded
    marks = list(_FOLD.finditer(text))
    if not marks:
        return text
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    blocks = [(float(mark[1] or 0), text[mark.end() : end].strip()) for mark, end in zip(marks, ends, strict=True)]
    before = text[: marks[0].start()].strip()
    return before or min(blocks, key=lambda block: block[0])[1]


def _object(text: str) -> str | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    blocks = value.get("fold_blocks") if isinstance(value, dict) else None
    if not isinstance(blocks, list):
        return None
    good = [block for block in blocks if isinstance(block, dict) and isinstance(block.get("content"), str)]
    if not good:
        return None
    lowest = min(good, key=lambda block: block["threshold"] if isinstance(block.get("threshold"), int | float) else 0)
    return str(lowest["content"]).strip()
