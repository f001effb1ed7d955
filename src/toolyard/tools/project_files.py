"""The files of the project for a person who attaches them to a message: found by words, read as attachments.

An attachment is the text of a file, the text of a PDF, or an image.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from toolyard.message import Message
from toolyard.protocol.content import SNIFF_BYTES, Attachment, AttachmentKind, Media, sniff
from toolyard.protocol.envelope import ErrorCode, Failure, Reason
from toolyard.tools.readers.pdf import extract_start
from toolyard.tools.search_report import path_text
from toolyard.workspace.encoding import detect_encoding, looks_binary
from toolyard.workspace.search.file_glob import FileGlob
from toolyard.workspace.search.file_walk import FileWalk, TimeLimit, TimeLimitReached
from toolyard.workspace.search.ignore import read_rules_above
from toolyard.workspace.workspace import OpenHandle, Workspace, read_consistently, read_exactly

MAX_FILE: Final = 32 * 2**20  # bytes of a PDF or an image, which is read completely
SEARCH_S: Final = 5.0
MAX_CHARACTERS: Final = 200_000  # of the text of one attachment
TEXT_BYTES: Final = 2 * 2**20  # of a text file that are looked at; they have as many characters in any encoding
PDF_S: Final = 20.0
_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})  # that models take


class FoundFiles(NamedTuple):
    paths: tuple[str, ...]
    truncated: bool


class ProjectFiles:
    """Hidden files and those that ``.gitignore`` leaves out are not found, but can be read by their paths."""

    def __init__(self, workspace: Workspace, fallback_encodings: Sequence[str]) -> None:
        self._workspace, self._fallbacks = workspace, fallback_encodings

    def find(self, search: str, limit: int) -> FoundFiles:
        """Return files whose paths contain all words of ``search``, best matches first. Raises Failure. Blocks.

        Without words, the last changed come first.
        """
        words = search.casefold().split()
        found: list[tuple[tuple[int, int, str], str]] = []
        is_complete = True
        with self._workspace.open_folder(".") as folder, TimeLimit(SEARCH_S, lambda: None) as time_limit:
            walk = FileWalk(
                folder.fd,
                (),
                FileGlob(hidden=False),
                rules=read_rules_above(self._workspace, ()),
                hidden=False,
                times=not words,
                pause=time_limit.check,
            )
            try:
                for part in walk:
                    for at, name in enumerate(part.files):
                        path = path_text(part.below + name)
                        if all(word in path.casefold() for word in words):
                            rank = _rank(path, words) if words else -part.times[at]
                            found.append(((rank, path.count("/") if words else 0, path), path))
            except TimeLimitReached:
                is_complete = False
        found.sort()
        paths = tuple(path for _, path in found[:limit])
        return FoundFiles(paths, truncated=len(found) > limit or not is_complete or walk.skipped.stopped)

    def attach(self, path: str) -> Attachment:
        """Return a file as an attachment. Raises Failure. Blocks."""
        with self._workspace.open_file(path) as file:
            raw = read_consistently(file, _read_start)
            return read_attachment(file.path, raw, size=file.stat.st_size, fallbacks=self._fallbacks)


def _rank(path: str, words: Sequence[str]) -> int:
    """Return how well the name of a file fits: 0 is best, 3 when only its folders have the words."""
    name = path.rpartition("/")[2].casefold()
    if name in words or name.rpartition(".")[0] in words:
        return 0
    if name.startswith(words[0]):
        return 1
    return 2 if any(word in name for word in words) else 3


def _read_start(file: OpenHandle) -> bytes:
    """Return a PDF or an image completely, of any other file the part that is looked at."""
    size = file.stat.st_size
    if sniff(read_exactly(file.fd, 0, min(size, SNIFF_BYTES))) is None:
        return read_exactly(file.fd, 0, min(size, TEXT_BYTES))
    if size > MAX_FILE:
        raise Failure(
            Reason.TOO_LARGE,
            Message(
                "'{name}' is too large to attach: PDFs and images can have at most {limit} MiB.",
                name=file.path,
                limit=MAX_FILE // 2**20,
            ),
        )
    return read_exactly(file.fd, 0, size)


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
