"""Finds the object of a text that is the reply.

Everything around it is skipped: prose, code fences, lists, the model's thinking in tags. Of several objects the first
with a content is the reply; those without one may supply its missing fields. Linear: objects are read one after
the other, and a brace that begins none is skipped.
"""

import re
from dataclasses import dataclass, replace

from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.regex import compile_pattern
from toolyard.protocol.replies.escapes import decode_string, is_suspicious
from toolyard.protocol.replies.lenient_json import Reader, Reading, is_closed_too_soon
from toolyard.protocol.replies.reply_values import TYPES, Repair
from toolyard.protocol.replies.strict import NOTHING, parse_strict_at
from toolyard.protocol.replies.strings import KEY_AHEAD

_BLANKS = r"(?:[\s,，\ufeff\u180e\u200b-\u200d\u2060]++|//[^\n]{0,500}+\n|\#[^\n]{0,500}+\n|/\*[^*]{0,500}+\*/){0,50}+"
_OWN = r"(?:think|content|attachments)"
_TAG = r"<\s{0,9}+(?P<end>/?)\s{0,9}+think(?:ing)?(?=[\s/>])[^<>]{0,200}+>"
_ANY_OBJECT = compile_pattern(rf"{_TAG}|\{{{_BLANKS}(?:{KEY_AHEAD}|[^\W\d][\w$-]{{0,100}}+\s*+[:：])", re.IGNORECASE)
_OWN_OBJECT = compile_pattern(rf"\{{{_BLANKS}[\"'“”‘’`]?{_OWN}[\"'“”‘’`]?\s*+[:：=\"'“]", re.IGNORECASE)
_BRACELESS = re.compile(rf"[\s\ufeff]*+(?:`{{3,}}\w{{0,20}}+\s*+)?(?=[\"'“]{_OWN}[\"'”]\s*+[:：])", re.IGNORECASE)
_ESCAPED = re.compile(r"\{\s*+(?:\\[nrt]\s*+){0,20}\\+\"")
_FENCE_BEFORE = re.compile(r"(?:`{3,}|~{3,})[\w+-]{0,20}\s*\Z")
_FENCE_AFTER = re.compile(r"\n[ \t]*(?:`{3,}|~{3,})\s*\Z")
_FENCES = re.compile(r"\s*(?:`{3,}|~{3,})[\w+-]{0,20}\s*(?:(?:`{3,}|~{3,})\s*)?")


_MAX_FAILURES = 8  # of the strict reader: each costs time in proportion to all text before it
_CLOSING = re.compile(r"<\s{0,9}+/\s{0,9}+think(?:ing)?\s{0,9}+>", re.IGNORECASE)
_FIELDS = frozenset({"think", "attachments"})


@dataclass(frozen=True, slots=True)
class FoundObject:
    value: JsonObject
    start: int
    repairs: tuple[Repair, ...] = ()
    think: str | None = None  # from tags around the object


@dataclass(frozen=True, slots=True)
class _Scan:
    readings: tuple[Reading, ...]
    think: str | None = None
    begin: int = 0  # the text before it is thinking


def find_object(text: str) -> FoundObject | None:
    """Return the object with the content; else the first object at all. Raises TooDeep."""
    scan = _scan_objects(text, _ANY_OBJECT)
    chosen = _find_with_content(scan)
    if chosen is None and scan.think is not None:
        chosen = _find_with_content(again := _scan_objects(text, _ANY_OBJECT, tags=False))
        scan = again if chosen else scan
    if chosen is None:
        chosen = _find_with_content(inner := _scan_objects(text, _OWN_OBJECT), attached=False)
        scan = inner if chosen else scan
    if chosen is None:
        chosen = next(filter(None, map(_find_wrapped, scan.readings)), None)
    if chosen is None and (start := _BRACELESS.match(text)):
        chosen = Reader(text).read(start.end(), brace=False)
        scan = _Scan((chosen,))
    chosen = chosen or next(iter(scan.readings), None)
    return _build_found(text, scan, chosen) if chosen else None


def unescape_object(text: str) -> str | None:
    """Return the object in a text whose quotes are all escaped, as in a string within a string."""
    match = _ESCAPED.search(text)
    if match is None:
        return None
    return decode_string(text[match.start() :].rstrip().removesuffix('"'), {})


def _scan_objects(text: str, starts: re.Pattern[str], *, tags: bool = True) -> _Scan:
    reader, tries = Reader(text), 0 if is_suspicious(text) else _MAX_FAILURES
    readings: list[Reading] = []
    think: str | None = None
    at, begin, closing = 0, 0, True
    while match := starts.search(text, at):
        if match[0][0] == "{":
            reading = _read_strict(text, match.start()) if tries > 0 else None
            tries -= reading is None
            readings.append(reading or reader.read(match.start()))
            at = max(readings[-1].end, match.start() + 1)
            continue
        at = match.end()
        if not tags:
            continue
        inside, end = match.end(), None
        if match["end"]:  # the tag that opened it was part of the prompt: all before was thinking
            inside, end = begin, match
        elif closing:
            end = _CLOSING.search(text, at)
            closing = end is not None
        if end is not None:
            think = "\n\n".join(filter(None, (think, text[inside : end.start()].strip())))
            at = begin = end.end()
            readings.clear()
    return _Scan(tuple(readings), think, begin)


def _read_strict(text: str, start: int) -> Reading | None:
    strict = parse_strict_at(text, start)
    if strict is None or not isinstance(strict[0], dict) or is_closed_too_soon(text, strict[1]):
        return None
    return Reading(strict[0], start, strict[1], complete=True, repairs=())


def _find_with_content(scan: _Scan, *, attached: bool = True) -> Reading | None:
    """Return the first reading with a content, preferably a complete one; ``attached`` accepts attachments too."""
    those = [reading for reading in scan.readings if "content" in map(str.lower, reading.value)]
    those = [reading for reading in those if attached or not _is_attachment(reading.value)]
    return min(those, key=lambda reading: (not _has_content(reading.value), not reading.complete), default=None)


def _find_wrapped(reading: Reading) -> Reading | None:
    """Return the object with a content inside another one, as in a provider's answer; attachments do not count."""
    pending: list[Json] = [reading.value]
    for item in pending:
        if isinstance(item, list):
            pending += item
        elif isinstance(item, dict) and not _is_attachment(item):
            if _has_content(item):
                return replace(reading, value=item, repairs=(*reading.repairs, Repair.TEXT_AROUND))
            pending += [inside for key, inside in item.items() if key.lower() != "attachments"]
    return None


def _has_content(value: JsonObject) -> bool:
    return any(key.strip().lower() == "content" and item and isinstance(item, str) for key, item in value.items())


def _is_attachment(value: JsonObject) -> bool:
    return any(key.lower() == "type" and isinstance(item, str) and item.lower() in TYPES for key, item in value.items())


def _build_found(text: str, scan: _Scan, chosen: Reading) -> FoundObject:
    if not chosen.complete and _FENCE_BEFORE.search(text[max(0, chosen.start - 40) : chosen.start]):
        fence = _FENCE_AFTER.search(text, max(chosen.start, len(text.rstrip()) - 40))
        if fence:  # it closes the fence around the object, and is no part of the string that was cut
            brace = Repair.MISSING_BRACE not in chosen.repairs
            chosen = Reader(text[: fence.start()]).read(chosen.start, brace=brace)
    repairs = dict.fromkeys((*_join_around(text[scan.begin : chosen.start], text[chosen.end :]), *chosen.repairs))
    if scan.think is not None:
        repairs[Repair.THINK_TAGS] = None
    value = dict(chosen.value)
    have = set(map(str.lower, value))
    for reading in scan.readings:
        more = {key: item for key, item in reading.value.items() if key.lower() in _FIELDS - have}
        if more and reading.start != chosen.start:
            value |= more
            have |= set(map(str.lower, more))
            repairs[Repair.SEVERAL_OBJECTS] = None
    return FoundObject(value, chosen.start, tuple(repairs), scan.think or None)


def _join_around(before: str, after: str) -> tuple[Repair, ...]:
    outside = f"{before.strip(NOTHING)}\n{after.strip(NOTHING)}".strip()
    if not outside:
        return ()
    return (Repair.FENCE if _FENCES.fullmatch(outside) else Repair.TEXT_AROUND,)
