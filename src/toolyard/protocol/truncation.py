"""Where to cut a result that is too long for a model, and what to say (002 §2).

The *full* envelope is what the tool gave; the *shown* one is what a model reads. A result is measured by the text that
would be shown: the content, then ``data`` as indented JSON. It is cut when that text has more than 2000 lines or 51200
bytes; exactly as many is not too many. The preview is a piece of the text itself, never re-escaped and never half a
character. Pure: the caller stores the whole first and says where.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from toolyard.protocol.content import Text
from toolyard.protocol.envelope import Envelope, Fault, Status
from toolyard.protocol.json import Json
from toolyard.protocol.outcome import Outcome

MAX_LINES = 2000
MAX_BYTES = 51_200
HARD_CAP_BYTES = 1024 * 1024  # even a tool that pages by itself shows no more than this
MAX_PARAM_BYTES = 4096  # a longer string the caller sent, or message of an error, is not shown whole


class Direction(StrEnum):
    HEAD = "head"
    TAIL = "tail"


@dataclass(frozen=True, slots=True)
class Cut:
    preview: str
    original_lines: int
    original_bytes: int
    kept_lines: int
    kept_bytes: int


def readable(outcome: Outcome) -> str:
    """The text of a result as a model would read it."""
    texts = [part.text for part in outcome.extras.parts if isinstance(part, Text)] or [outcome.envelope.text]
    if outcome.envelope.data:
        texts.append(json.dumps(outcome.envelope.data, ensure_ascii=False, indent=2))
    return "\n".join(texts)


def too_long(text: str, *, skip: bool) -> bool:
    size = len(text.encode())
    return size > HARD_CAP_BYTES if skip else size > MAX_BYTES or count_lines(text) > MAX_LINES


def cut(text: str, direction: Direction) -> Cut:
    """Keep as much of the beginning or the end of ``text`` as the limits allow."""
    whole = text.encode()
    kept = _head(whole) if direction is Direction.HEAD else _tail(whole)
    preview = kept.decode()
    return Cut(preview, count_lines(text), len(whole), count_lines(preview), len(kept))


def count_lines(text: str) -> int:
    return text.count("\n") + (1 if text and not text.endswith("\n") else 0)


def truncated(
    envelope: Envelope, piece: Cut, direction: Direction, *, saved: str | None, problem: str = ""
) -> Envelope:
    """The shown envelope; ``saved`` is where the whole result is stored, ``problem`` why it could not be."""
    side = "first" if direction is Direction.HEAD else "last"
    text = (
        f"⚠️ Output too large, truncated: the preview is the {side} {piece.kept_lines} of {piece.original_lines} lines "
        f"({piece.kept_bytes} of {piece.original_bytes} bytes). "
    )
    if saved:
        text += f"The whole result is in {saved}: read it with Read or search it with Grep, or narrow the call."
    else:
        text += f"The whole result could not be stored ({problem}): narrow the call."
    error = envelope.error
    if error is not None:
        error = Fault(error.code, _shorten_text(error.message))
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
                "full_output_path": saved,
            },
            "preview": piece.preview,
        },
        text=text,
    )


def shorten_params(envelope: Envelope) -> Envelope:
    """Cut long strings of ``context.params_input``: the model wrote them and need not read them again."""
    params = envelope.context.get("params_input")
    return replace(envelope, context={**envelope.context, "params_input": shorten(params)})


def shorten(value: Json) -> Json:
    """A value whose long strings are cut, with a mark that says so."""
    if isinstance(value, str):
        return _shorten_text(value)
    if isinstance(value, Mapping):
        return {key: shorten(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [shorten(inner) for inner in value]
    return value


def _shorten_text(text: str) -> str:
    raw = text.encode()
    if len(raw) <= MAX_PARAM_BYTES:
        return text
    return raw[:MAX_PARAM_BYTES].decode(errors="ignore") + f"… [cut: {len(raw)} bytes in all]"


def _head(whole: bytes) -> bytes:
    end = 0
    for _ in range(MAX_LINES):
        newline = whole.find(b"\n", end)
        if newline < 0 or newline >= MAX_BYTES:
            break
        end = newline + 1
    else:
        return whole[:end]
    if len(whole) <= MAX_BYTES:
        return whole
    # The byte limit came first. Whole lines read best, unless one long line would cost most of the preview.
    if end >= MAX_BYTES // 2:
        return whole[:end]
    return whole[:MAX_BYTES].decode(errors="ignore").encode()


def _tail(whole: bytes) -> bytes:
    start = len(whole)
    floor = len(whole) - MAX_BYTES
    for _ in range(MAX_LINES):
        newline = whole.rfind(b"\n", 0, max(start - 1, 0))
        if newline + 1 < floor:
            break
        start = newline + 1
        if start == 0:
            return whole
    else:
        return whole[start:]
    if len(whole) - start >= MAX_BYTES // 2:
        return whole[start:]
    while whole[floor] & 0xC0 == 0x80:  # a continuation byte: the character began before
        floor += 1
    return whole[floor:]
