"""A file as an attachment of a chat message: its text, the text of a PDF, or an image."""

from collections.abc import Sequence
from typing import Final

from toolyard.message import Message
from toolyard.protocol.content import SNIFF_BYTES, Attachment, AttachmentKind, Media, sniff
from toolyard.protocol.envelope import ErrorCode, Failure, Reason
from toolyard.tools.readers.pdf import extract_start
from toolyard.workspace.encoding import detect_encoding, looks_binary
from toolyard.workspace.search.file_walk import TimeLimit, TimeLimitReached

MAX_CHARACTERS: Final = 200_000  # of the text of one attachment
TEXT_BYTES: Final = 2 * 2**20  # of a text file that are looked at; they have as many characters in any encoding
PDF_S: Final = 20.0
_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})  # that models take


def read_attachment(name: str, raw: bytes, *, size: int, fallbacks: Sequence[str]) -> Attachment:
    """Return the attachment of a file that is or begins with ``raw``. Raises Failure. Blocks."""
    mime = sniff(raw[:SNIFF_BYTES])
    if mime == "application/pdf":
        return _read_pdf(name, raw, size)
    if mime in _IMAGES:
        return Attachment(name=name, kind=AttachmentKind.IMAGE, size=size, image=Media(mime, raw).data_uri())
    if mime is not None or looks_binary(raw):
        raise Failure(
            ErrorCode.BINARY_FILE,
            Message(
                "'{name}' cannot be attached: it is neither text nor a PDF, PNG, JPEG, GIF or WebP file.", name=name
            ),
        )
    head = raw[:TEXT_BYTES]
    encoding = detect_encoding(head, whole=len(head) == size, fallbacks=fallbacks)
    text = encoding.to_utf8(head[len(encoding.bom) :]).decode()
    is_cut = len(text) > MAX_CHARACTERS or len(head) < size
    return Attachment(name=name, kind=AttachmentKind.TEXT, size=size, text=text[:MAX_CHARACTERS], truncated=is_cut)


def _read_pdf(name: str, raw: bytes, size: int) -> Attachment:
    try:
        with TimeLimit(PDF_S, lambda: None) as limit:
            start = extract_start(raw, MAX_CHARACTERS, limit.check)
    except TimeLimitReached:
        raise Failure(
            Reason.TOO_LARGE,
            Message(
                "Reading the text of '{name}' takes more than {seconds} seconds. Attach a part of it.",
                name=name,
                seconds=int(PDF_S),
            ),
        ) from None
    if not start.has_text:
        message = (
            Message("'{name}' cannot be read as a PDF: {problem}.", name=name,
                    problem=start.problem)
            if start.problem
            else Message("'{name}' contains no text: its pages may be scanned images.",
                         name=name)
        )  # fmt: skip
        raise Failure(ErrorCode.INVALID_PARAM, message)
    return Attachment(
        name=name,
        kind=AttachmentKind.PDF,
        size=size,
        text=start.text[:MAX_CHARACTERS],
        truncated=start.is_cut or bool(start.problem),
        pages=start.pages,
    )
