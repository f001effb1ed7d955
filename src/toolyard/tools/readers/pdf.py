"""A PDF as the file itself and as the text of its pages."""

import hashlib
import io

from toolyard.protocol.content import Media, Text
from toolyard.protocol.json import JsonObject
from toolyard.protocol.outcome import Extras, Result
from toolyard.protocol.tool import Checkpoint
from toolyard.protocol.truncation import MAX_BYTES
from toolyard.tools.readers.page import Page


def read(media: Media, path: str, page: Page, checkpoint: Checkpoint) -> Result:
    lines, pages, problem = _lines(media.data, checkpoint)
    first = page.start - 1
    if first and first >= len(lines):
        raise page.beyond(path, len(lines), "lines of text")
    shown = _that_fit(lines[first : first + page.limit])
    after = first + len(shown)
    next_line = after + 1 if after < len(lines) else None
    text = f"Read '{path}' (application/pdf, {pages} pages, {len(media.data)} bytes)."
    if problem:
        text += f" Its text could not be read: {problem}. Look at the attached file instead."
    elif next_line is not None:
        text += f" (Truncated to lines {page.start}-{after} of {len(lines)}.) Use start_line={next_line} to read on."
    data: JsonObject = {
        "content": "\n".join(f"{number}\t{line}" for number, line in enumerate(shown, page.start)),
        "mime": media.mime,
        "pages": pages,
        "truncated": next_line is not None,
        "next_line": next_line,
        "total_lines": len(lines),
        "hash": hashlib.sha256(media.data).hexdigest(),
    }
    whole = () if first else (media,)  # later pages of text need no second copy of the file
    return Result(
        data=data,
        text=text,
        partial=bool(problem),
        stats={"lines": len(shown), "bytes": len(media.data)},
        context={"path_resolved": path, "truncation_skip": True},
        extras=Extras(parts=(Text(text), Text("\n".join(shown)), *whole)),
    )


def _lines(raw: bytes, checkpoint: Checkpoint) -> tuple[list[str], int, str]:
    """The text line by line with a heading for each page, the number of pages, and what went wrong."""
    import pypdf  # slow to import, and only PDF files need it
    from pypdf.errors import PyPdfError

    lines: list[str] = []
    pages = 0
    try:
        document = pypdf.PdfReader(io.BytesIO(raw))
        pages = len(document.pages)
        for number, page in enumerate(document.pages, 1):
            checkpoint()
            lines.append(f"--- page {number} of {pages} ---")
            lines.extend(_clean(page.extract_text()).split("\n"))
    except (PyPdfError, ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError) as error:
        # A PDF may be broken in more ways than the library foresees; what was read so far still counts.
        return lines, pages, f"{type(error).__name__}: {error}"[:200]
    return lines, pages, ""


def _clean(text: str) -> str:
    return text.encode(errors="replace").decode()


def _that_fit(lines: list[str]) -> list[str]:
    size = 0
    for count, line in enumerate(lines):
        size += len(line.encode()) + 8
        if size > MAX_BYTES and count:
            return lines[:count]
    return lines
