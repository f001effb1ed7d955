"""The result that a model sees: nothing twice, nothing that only programs understand, and not too much (002 §2).

The *full* envelope is the tool's; the *shown* one is for a model. A result is measured by the text that
would be shown: the content, then ``data`` as indented JSON without the texts that the content has already; a batch by
the texts of its items. It is cut when that text has more than 2000 lines or 51200 bytes; exactly as many is not too
many. The preview is a piece of the text itself, never re-escaped and never half a character. Pure: the caller
stores the full result first, as JSON and as the text in pages, and passes the paths.
"""

import json
from dataclasses import dataclass, replace

from toolyard.message import Message
from toolyard.protocol.content import Blob, Link, Part, Text
from toolyard.protocol.envelope import Envelope, Fault, Status
from toolyard.protocol.json import Json, JsonObject, shorten_text, shorten_value
from toolyard.protocol.result_limits import HARD_CAP_BYTES, MAX_BYTES, MAX_LINE_CHARS, MAX_LINES, Direction
from toolyard.protocol.tool import Outcome


@dataclass(frozen=True, slots=True)
class Cut:
    preview: str
    original_lines: int
    original_bytes: int
    kept_lines: int
    kept_bytes: int


@dataclass(frozen=True, slots=True)
class StoredOutput:
    """The paths of a stored full result, relative to the project root."""

    json_path: str  # the envelope
    text_path: str  # the text in lines that Read can page through


@dataclass(frozen=True, slots=True)
class TextPages:
    """The text of a result as stored for Read and Grep, and the line where the part begins that was not shown."""

    text: str
    next_line: int  # the next line to read; 1 when the end was shown

    @property
    def line_count(self) -> int:
        return count_lines(self.text)


def to_readable(outcome: Outcome) -> str:
    """Return the text of a result as a model would read it; of a batch, its summary and the texts of its items."""
    if outcome.batch:
        return "\n".join([outcome.envelope.text, *(to_readable(item.outcome) for item in outcome.batch)])
    texts = [part.text for part in outcome.extras.parts if isinstance(part, Text)] or [outcome.envelope.text]
    skipped = {outcome.extras.content_key} if outcome.extras.content_key else set()  # the parts replace it
    data = {key: value for key, value in outcome.envelope.data.items() if key not in skipped and value not in texts}
    if data and not any(is_repeated(data, text) for text in texts):
        texts.append(json.dumps(data, ensure_ascii=False, indent=2))
    return "\n".join(texts)


def paginate(text: str, preview: str, direction: Direction) -> TextPages:
    """Break ``text`` into lines that Read shows in full; a NUL, which would make the file binary, is replaced."""
    lines = break_long_lines(text).replace("\0", "\u2400")
    if direction is Direction.TAIL:
        return TextPages(lines, 1)
    *_, last_line = preview.rpartition("\n")  # the preview may end inside a line, at the end of a piece
    before = break_long_lines(preview[: len(preview) - len(last_line)])
    return TextPages(lines, before.count("\n") + len(last_line) // MAX_LINE_CHARS + 1)


def break_long_lines(text: str) -> str:
    """Break every line that is longer than Read shows, at ``MAX_LINE_CHARS`` characters."""
    return "\n".join(
        piece
        for line in text.split("\n")
        for piece in (line[at : at + MAX_LINE_CHARS] for at in range(0, max(len(line), 1), MAX_LINE_CHARS))
    )


def is_too_long(text: str, *, skip: bool) -> bool:
    size = len(text.encode())
    return size > HARD_CAP_BYTES if skip else size > MAX_BYTES or count_lines(text) > MAX_LINES


def cut_text(text: str, direction: Direction) -> Cut:
    """Keep as much of the beginning or the end of ``text`` as the limits allow."""
    full = text.encode()
    part = _cut_head(full) if direction is Direction.HEAD else _cut_tail(full)
    preview = part.decode()
    return Cut(preview, count_lines(text), len(full), count_lines(preview), len(part))


def count_lines(text: str) -> int:
    return text.count("\n") + (1 if text and not text.endswith("\n") else 0)


def truncate_envelope(
    envelope: Envelope,
    piece: Cut,
    direction: Direction,
    *,
    stored: StoredOutput | None,
    pages: TextPages,
    problem: str = "",
) -> Envelope:
    """Return the shown envelope; ``stored`` has the full result's paths, ``problem`` why it could not be stored."""
    side = "first" if direction is Direction.HEAD else "last"
    text = (
        f"⚠️ Output too large, truncated: the preview is the {side} {piece.kept_lines} of {piece.original_lines} lines "
        f"({piece.kept_bytes} of {piece.original_bytes} bytes). "
    )
    if stored:
        text += _describe_next_call(stored, pages, piece, direction)
    else:
        text += f"The whole result could not be stored ({problem}): narrow the call."
    error = envelope.error
    if error is not None:
        error = Fault(error.code, shorten_text(error.message))
        text = f"{error.message} {text}"
    return replace(
        envelope,
        error=error,
        status=Status.ERROR if envelope.status is Status.ERROR else Status.PARTIAL,
        data={
            "truncated": True,
            "truncation": {
                "direction": direction.value,
                "max_lines": MAX_LINES,
                "max_bytes": MAX_BYTES,
                "original_lines": piece.original_lines,
                "original_bytes": piece.original_bytes,
                "kept_lines": piece.kept_lines,
                "kept_bytes": piece.kept_bytes,
                "full_output_path": stored.json_path if stored else None,
            },
            "preview": piece.preview,
        },
        text=text,
        context={**envelope.context, **({"full_text_path": stored.text_path} if stored else {})},
    )


def _describe_next_call(stored: StoredOutput, pages: TextPages, piece: Cut, direction: Direction) -> str:
    broken = pages.line_count != piece.original_lines
    lines = f"{pages.line_count} lines" + (f", long ones broken at {MAX_LINE_CHARS} characters" if broken else "")
    way_on = "Read on with" if direction is Direction.HEAD else "Read what comes before with"
    return (
        f"The whole text is in {stored.text_path} ({lines}). {way_on}: Read path={stored.text_path} "
        f"start_line={pages.next_line}. Or search it with Grep path={stored.text_path}, or narrow the call. "
        f"The whole result as JSON is in {stored.json_path}."
    )


def shorten_params(envelope: Envelope) -> Envelope:
    """Cut long strings of ``context.params_input``: the model wrote them and need not read them again."""
    params = envelope.context.get("params_input")
    short = shorten_value(params)
    return envelope if short == params else replace(envelope, context={**envelope.context, "params_input": short})


def _cut_head(full: bytes) -> bytes:
    end = 0
    for _ in range(MAX_LINES):
        newline = full.find(b"\n", end)
        if newline < 0 or newline >= MAX_BYTES:
            break
        end = newline + 1
    else:
        return full[:end]
    if len(full) <= MAX_BYTES:
        return full
    # The byte limit came first. Whole lines read best, unless one long line would cost most of the preview.
    if end >= MAX_BYTES // 2:
        return full[:end]
    return full[:MAX_BYTES].decode(errors="ignore").encode()


def _cut_tail(full: bytes) -> bytes:
    start = len(full)
    floor = len(full) - MAX_BYTES
    for _ in range(MAX_LINES):
        newline = full.rfind(b"\n", 0, max(start - 1, 0))
        if newline + 1 < floor:
            break
        start = newline + 1
        if start == 0:
            return full
    else:
        return full[start:]
    if len(full) - start >= MAX_BYTES // 2:
        return full[start:]
    while full[floor] & 0xC0 == 0x80:  # a continuation byte: the character began before
        floor += 1
    return full[floor:]


def to_shown(outcome: Outcome) -> Outcome:
    """Return the outcome without repetitions of its text, and with plain parts; of a batch, every item too."""
    envelope, extras = outcome.envelope, outcome.extras
    parts = tuple(_to_plain_part(part) for part in extras.parts)
    if envelope.error and parts:  # the parts are the plugin's own; the next step is in the text
        rest = (part for part in parts if not isinstance(part, Text) or part.text not in envelope.text)
        parts = (Text(envelope.text), *rest)
    text, data = envelope.text, drop_repeats(envelope.data, envelope.text, extras.content_key)
    if extras.mcp and parts and not envelope.error:  # structured content stays, and a text that repeats it is a part
        text = text if data else Message("The result is in data.")
        data = envelope.data
    return replace(
        outcome,
        envelope=envelope
        if data == envelope.data and text is envelope.text
        else replace(envelope, text=text, data=data),
        extras=replace(extras, parts=parts, details=None),
        batch=tuple(item._replace(outcome=to_shown(item.outcome)) for item in outcome.batch),
    )


def drop_repeats(data: JsonObject, text: str, key: str = "") -> JsonObject:
    """Return ``data`` without repetitions of ``text``: a result that is the text, texts of the parts under ``key``."""
    if is_repeated(data, text):
        return {}
    remaining = {name: value for name, value in data.items() if not is_repeated(value, text)}
    result = remaining.get("result")
    if text.startswith(result) if isinstance(result, str) else is_written(result, text):
        del remaining["result"]
    content = remaining.get(key)
    if key and isinstance(content, list):
        others: list[Json] = [item for item in content if not _is_text_in(item, text)]
        remaining = {name: value for name, value in remaining.items() if name != key or others}
        remaining |= {key: others} if others else {}
    return remaining


def is_repeated(value: Json, text: str) -> bool:
    """Return whether ``text`` is this value: the same text, or the value as JSON."""
    if isinstance(value, str):
        return value == text and bool(value)
    if not isinstance(value, dict | list) or text[:1] not in ("{", "["):
        return False
    try:
        return bool(json.loads(text) == value)
    except (ValueError, RecursionError):
        return False


def is_written(value: Json, text: str) -> bool:
    """Return whether ``text`` is this number or truth value."""
    return isinstance(value, bool | int | float) and json.dumps(value) == text


def _is_text_in(item: Json, text: str) -> bool:
    own = item.get("text") if isinstance(item, dict) and item.get("type") == "text" else None
    return isinstance(own, str) and own in text


def _to_plain_part(part: Part) -> Part:
    """Return a part without the item it was read from: a model gets texts, and media whose type is known."""
    if isinstance(part, Link | Blob):
        return Text(part.text)
    return replace(part, original=None) if part.original is not None else part
