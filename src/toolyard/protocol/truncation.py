"""The cutting of a result that is too long for a model (002 §2).

The *full* envelope is the tool's; the *shown* one is for a model. A result is measured by the text that a model would
read. It is cut when that text has more than 2000 lines or 51200 bytes; exactly as many is not too many. The preview
is a piece of the text itself, never re-escaped and never half a character. Pure: the caller stores the full result
first, as JSON and as the text in pages, and passes the paths.
"""

from dataclasses import dataclass, replace

from toolyard.message import Message, join_sentences
from toolyard.protocol.envelope import Envelope, Fault, Status
from toolyard.protocol.json import shorten_text, shorten_value
from toolyard.protocol.result_limits import HARD_CAP_BYTES, MAX_BYTES, MAX_LINE_CHARS, MAX_LINES, Direction


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
    cut = (
        Message(
            "⚠️ Output too large, truncated: the preview is the first {kept} of {lines} lines ({kept_bytes} of {bytes} "
            "bytes).",
            kept=piece.kept_lines,
            lines=piece.original_lines,
            kept_bytes=piece.kept_bytes,
            bytes=piece.original_bytes,
        )
        if direction is Direction.HEAD
        else Message(
            "⚠️ Output too large, truncated: the preview is the last {kept} of {lines} lines ({kept_bytes} of {bytes} "
            "bytes).",
            kept=piece.kept_lines,
            lines=piece.original_lines,
            kept_bytes=piece.kept_bytes,
            bytes=piece.original_bytes,
        )
    )
    text = join_sentences(
        cut,
        _describe_next_call(stored, pages, piece, direction)
        if stored
        else Message("The whole result could not be stored ({problem}): narrow the call.", problem=problem),
    )
    error = envelope.error
    if error is not None:
        error = Fault(error.code, shorten_text(error.message))
        text = join_sentences(error.message, text)
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
    return join_sentences(
        Message(
            "The whole text is in {path} ({lines} lines, long ones broken at {most} characters).",
            path=stored.text_path,
            lines=pages.line_count,
            most=MAX_LINE_CHARS,
        )
        if broken
        else Message("The whole text is in {path} ({lines} lines).", path=stored.text_path, lines=pages.line_count),
        Message("Read on with: Read path={path} start_line={line}.", path=stored.text_path, line=pages.next_line)
        if direction is Direction.HEAD
        else Message(
            "Read what comes before with: Read path={path} start_line={line}.",
            path=stored.text_path,
            line=pages.next_line,
        ),
        Message("Or search it with Grep path={path}, or narrow the call.", path=stored.text_path),
        Message("The whole result as JSON is in {path}.", path=stored.json_path),
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
