"""A PDF as the file itself and as the text of its pages."""

import hashlib
import io
import struct
import zlib
from typing import NamedTuple

from toolyard.message import Message, join_sentences
from toolyard.protocol.content import Media, Text
from toolyard.protocol.envelope import Extras
from toolyard.protocol.json import JsonObject
from toolyard.protocol.result_limits import MAX_BYTES, MAX_LINE_CHARS
from toolyard.protocol.tool import Checkpoint, Result
from toolyard.tools.counts import count_pages
from toolyard.tools.readers import Page
from toolyard.workspace.text_reader import Line


def read(media: Media, path: str, page: Page, checkpoint: Checkpoint) -> Result:
    lines, pages, problem = _extract_lines(media.data, checkpoint)
    first = page.start - 1
    if first and first >= len(lines):
        raise page.beyond_end_failure(path, len(lines), Message("lines of text"))
    shown = _cut_lines(lines[first : first + page.limit])
    after = first + len(shown)
    next_line = after + 1 if after < len(lines) else None
    cuts = sum(line.cut for line in shown)
    text = join_sentences(
        Message(
            "Read '{path}' (application/pdf, {pages}, {size} bytes).",
            path=path,
            pages=count_pages(pages),
            size=len(media.data),
        ),
        Message(
            "(Truncated to lines {first}-{last} of {total}.) Use start_line={line} to read on.",
            first=page.start,
            last=after,
            total=len(lines),
            line=next_line,
        )
        if next_line is not None
        else "",
        Message("Lines longer than {most} characters are cut: {count}.", most=MAX_LINE_CHARS, count=cuts)
        if cuts
        else "",
        Message("Its text could not be read: {problem}. Look at the attached file instead.", problem=problem)
        if problem
        else "",
    )
    data: JsonObject = {
        "content": "\n".join(f"{number}\t{line.display_text}" for number, line in enumerate(shown, page.start)),
        "mime": media.mime,
        "pages": pages,
        "truncated": next_line is not None or cuts > 0,
        "next_line": next_line,
        "total_lines": len(lines),
        "hash": hashlib.sha256(media.data).hexdigest(),
    }
    whole = () if first else (media,)  # later pages of text need no second copy of the file
    return Result(
        data=data,
        text=text,
        partial=bool(problem),
        stats={"lines": len(shown), "bytes": len(media.data), "total_lines": len(lines)},
        context={"path_resolved": path, "truncation_skip": True},
        extras=Extras(parts=(Text(text), Text("\n".join(line.display_text for line in shown)), *whole)),
    )


def extract_text(raw: bytes, checkpoint: Checkpoint) -> tuple[str, str]:
    """Return the text with a heading for each page, and what went wrong."""
    lines, _, problem = _extract_lines(raw, checkpoint)
    return "\n".join(line.display_text for line in lines), problem


class TextStart(NamedTuple):
    """The beginning of the text of a PDF, page by page."""

    text: str
    pages: int  # of the PDF
    has_text: bool  # other than the headings of the pages
    is_cut: bool  # there is more
    problem: str  # what went wrong


def extract_start(raw: bytes, max_characters: int, checkpoint: Checkpoint) -> TextStart:
    """Return the text up to the page on which it has more than ``max_characters``."""
    lines, pages, problem = _extract_lines(raw, checkpoint, max_characters)
    texts = [line.display_text for line in lines]
    text = "\n".join(texts)
    headings = [at for at, line in enumerate(texts) if line.startswith("--- page ")]
    has_text = any(line.strip() for at, line in enumerate(texts) if at not in headings)
    return TextStart(text, pages, has_text, len(text) > max_characters, problem)


def _extract_lines(
    raw: bytes, checkpoint: Checkpoint, max_characters: int | None = None
) -> tuple[list[Line], int, str]:
    """The text line by line with a heading for each page, the number of pages, and what went wrong.

    Pages after the one on which the text exceeds ``max_characters`` are not read.
    """
    import pypdf  # slow to import, and only PDF files need it
    from pypdf.errors import DependencyError, PyPdfError

    lines: list[str] = []
    pages = 0
    problem = ""
    try:
        document = pypdf.PdfReader(io.BytesIO(raw))
        pages = len(document.pages)
        for number, page in enumerate(document.pages, 1):
            checkpoint()
            lines.append(f"--- page {number} of {pages} ---")
            lines.extend(_clean(page.extract_text()).split("\n"))
            if max_characters is not None and sum(map(len, lines)) > max_characters:
                break
    except (PyPdfError, DependencyError, *_BROKEN) as error:
        problem = _clean(f"{type(error).__name__}: {error}")[:200]
    return [_cut_line(line) for line in lines], pages, problem


# A PDF may be broken in more ways than the library foresees; what was read until then still counts.
_BROKEN = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
    struct.error,
    zlib.error,
)


def _clean(text: str) -> str:
    return text.encode(errors="replace").decode()


def _cut_line(text: str) -> Line:
    return Line(text[:MAX_LINE_CHARS], len(text.encode()), len(text) > MAX_LINE_CHARS)


def _cut_lines(lines: list[Line]) -> list[Line]:
    size = 0
    for count, line in enumerate(lines):
        size += len(line.display_text.encode()) + 8  # and its number
        if size > MAX_BYTES:
            return lines[:count]
    return lines
