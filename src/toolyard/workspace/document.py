"""A text file as its bytes and as its text, and edits spliced from the one into the other.

Only the bytes of a splice are ever encoded; every byte outside it is taken over as it is. A file whose text does not
give back its bytes is not edited at all. Where the encoding is a guess, no character beyond ASCII is added, and none is
changed in any encoding that may be meant: a byte of ASCII either is its character or the second half of another one,
and nobody can say which. So all of them count as characters, which finds every place where a text may stand; and a
change is right only if every encoding that the file may be in still reads the same other characters in the same order.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from toolyard.message import Message
from toolyard.protocol.edits.text_edit import Splice, apply_splices
from toolyard.protocol.envelope import ErrorCode, Failure, Reason
from toolyard.workspace.encoding import Encoding, detect_encoding, looks_binary

UTF8 = Encoding("utf-8")  # of every new file
MAX_GUESSED = 4 * 1024 * 1024  # of a file in an unknown encoding: its bytes are looked at one by one
MAX_BYTES = 64 * 1024 * 1024  # of a file that is edited: it is held in memory, several times over
_CERTAINTY = Message(
    "Use ASCII characters, convert the file to UTF-8 first, or have its encoding set as fallback_encodings."
)
_STATEFUL = re.compile("iso-?2022|hz|utf-?7", re.IGNORECASE)  # what a byte means depends on the bytes before it
_RUN = re.compile(rb"[\x00-\x7f]+|[\x80-\xff]+")
_PART = re.compile("([\0-\x7f\udc80-\udcff]+)|[^\0-\x7f\udc80-\udcff]+")
_BEYOND_ASCII = re.compile("[^\0-\x7f]")
_DOUBLE = ("gb18030", "big5hkscs", "cp932", "euc_jp", "cp949")  # in which a byte of ASCII may be half a character


@dataclass(frozen=True, slots=True)
class Document:
    raw: bytes
    encoding: Encoding
    text: str  # without the byte-order mark; bytes that are no text are kept as lone surrogates

    @classmethod
    def from_bytes(cls, raw: bytes, path: str, fallbacks: tuple[str, ...]) -> "Document":
        if looks_binary(raw):
            raise Failure(
                ErrorCode.BINARY_FILE,
                Message("'{path}' is a binary file.", path=path),
                hint=Message("Only text files can be edited."),
            )
        encoding = detect_encoding(raw, whole=True, fallbacks=fallbacks)
        if encoding.guessed and len(raw) > MAX_GUESSED:
            raise Failure(
                Reason.TOO_LARGE,
                Message(
                    "'{path}' is too large to be edited while its encoding is only a guess ({name}).",
                    path=path,
                    name=encoding.name,
                ),
                hint=Message("Convert the file to UTF-8 first."),
            )
        try:
            document = cls.from_known(raw, encoding)
            sure = encoding.name == "utf-8" and encoding.certain  # valid UTF-8 is the only way to write its text
            faithful = sure or (
                document._encode(document.text) == raw[len(encoding.bom) :] and not _STATEFUL.match(encoding.name)
            )
        except UnicodeError:
            document, faithful = cls(raw, encoding, ""), False
        if not faithful:
            raise Failure(
                Reason.UNSUPPORTED_ENCODING,
                Message(
                    "'{path}' cannot be edited safely: its bytes are not a clean text in {name}.",
                    path=path,
                    name=encoding.name,
                ),
                hint=Message("Convert the file to UTF-8 first."),
            )
        return document

    @classmethod
    def from_known(cls, raw: bytes, encoding: Encoding) -> "Document":
        """Bytes whose encoding is known, because they were just made from a text in it."""
        body = raw[len(encoding.bom) :]
        text = (
            decode_guess(body, encoding.name)
            if encoding.guessed
            else body.decode(encoding.name, _error_handler(encoding))
        )
        return cls(raw, encoding, text)

    def splice(self, splices: tuple[Splice, ...], path: str) -> bytes:
        """The file's bytes with the splices put in."""
        if self.encoding.guessed:
            splices = self._narrow_splices(splices)
        raw = memoryview(self.raw)  # its slices are no copies
        pieces: list[bytes | memoryview] = [self.encoding.bom]
        at, offset = 0, len(self.encoding.bom)
        for splice in splices:
            unchanged, removed = self._byte_length(at, splice.start), self._byte_length(splice.start, splice.end)
            pieces += [raw[offset : offset + unchanged], self.encode_text(splice.text, path)]
            at, offset = splice.end, offset + unchanged + removed
        return self._require_kept_characters(b"".join([*pieces, raw[offset:]]))

    def _byte_length(self, start: int, end: int) -> int:
        """Count the bytes of the characters ``start:end``."""
        if self.encoding.name == "utf-8" and self.text.isascii():
            return end - start
        return len(self._encode(self.text[start:end]))

    def encode_whole(self, text: str) -> bytes:
        """The file with another text; without states in the encoding, what is equal text is equal bytes."""
        return self._require_kept_characters(self.encoding.bom + self._encode(text))

    def encode_text(self, text: str, path: str) -> bytes:
        """New text in the file's own encoding."""
        if self.encoding.guessed and not text.isascii():
            raise Failure(
                Reason.UNSUPPORTED_ENCODING,
                Message(
                    "The encoding of '{path}' is only a guess ({name}): too weak to write such characters.",
                    path=path,
                    name=self.encoding.name,
                ),
                hint=_CERTAINTY,
            )
        try:
            return text.encode(self.encoding.name)
        except UnicodeEncodeError as error:
            raise Failure(
                Reason.UNSUPPORTED_ENCODING,
                Message(
                    "'{path}' is written in {name}, which has no {start!r}.",
                    path=path,
                    name=self.encoding.name,
                    start=text[error.start],
                ),
                hint=Message("Leave that character out, or convert the file to UTF-8 first."),
            ) from error

    def _encode(self, text: str) -> bytes:
        if self.encoding.guessed:
            return encode_guess(text, self.encoding.name)
        return text.encode(self.encoding.name, _error_handler(self.encoding))

    def _narrow_splices(self, splices: tuple[Splice, ...]) -> tuple[Splice, ...]:
        """Make the splices as small as possible; raises Failure when one may begin or end inside a character."""
        edges = (Splice(edge, edge, "\n") for splice in splices for edge in (splice.start, splice.end))
        self.encode_whole(apply_splices(self.text, tuple(edges)))  # a character with a newline in it is none
        return tuple(map(self._narrow_splice, splices))

    def _narrow_splice(self, splice: Splice) -> Splice:
        """Without what it leaves as it is at its ends: those characters need not be written."""
        old, new = self.text[splice.start : splice.end], splice.text
        lead = _count_common(old, new)
        tail = _count_common(old[lead:][::-1], new[lead:][::-1])
        return Splice(splice.start + lead, splice.end - tail, new[lead : len(new) - tail])

    def _require_kept_characters(self, new: bytes) -> bytes:
        if self.encoding.guessed and not keeps_characters(self.raw, new):
            raise Failure(
                Reason.UNSUPPORTED_ENCODING,
                Message(
                    "The encoding of the file is only a guess ({name}): in another one, the change would fall into "
                    "the middle of a character.",
                    name=self.encoding.name,
                ),
                hint=Message("Replace whole lines, or convert the file to UTF-8 first."),
            )
        return new


def _count_common(one: str, other: str) -> int:
    """Count the characters that both texts begin with."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _error_handler(encoding: Encoding) -> str:
    return "surrogateescape" if encoding.name == "utf-8" else "strict"


def decode_guess(raw: bytes, name: str) -> str:
    """Bytes beyond ASCII in the encoding ``name`` where they are text by themselves, else as lone surrogates."""
    return "".join(_decode_run(run, name) for run in _RUN.findall(raw))


def encode_guess(text: str, name: str) -> bytes:
    """The way back. Raises UnicodeError for characters that the encoding does not have."""
    return b"".join(
        part[0].encode("ascii", "surrogateescape") if part[1] else part[0].encode(name) for part in _PART.finditer(text)
    )


def keeps_characters(before: bytes, after: bytes) -> bool:
    """Return whether ``after`` has no new characters beyond ASCII, in every encoding that can read ``before``."""
    old, new = _changed_lines(before, after)
    return all(
        _is_part_of(_list_non_ascii(new, name), _list_non_ascii(old, name))
        for name in _DOUBLE
        if _can_decode(before, name)
    )


def _decode_run(run: bytes, name: str) -> str:
    escaped = run.decode("ascii", "surrogateescape")
    if escaped.isascii():
        return escaped
    try:
        text = run.decode(name)
        return text if encode_guess(text, name) == run else escaped
    except UnicodeError:
        return escaped


def _changed_lines(before: bytes, after: bytes) -> tuple[bytes, bytes]:
    """Drop the lines that are the same at both ends; a newline is never half a character."""
    old, new = before.split(b"\n"), after.split(b"\n")
    while old and new and old[-1] == new[-1]:
        old.pop()
        new.pop()
    same = next((at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    return b"\n".join(old[same:]), b"\n".join(new[same:])


def _can_decode(raw: bytes, name: str) -> bool:
    try:
        raw.decode(name)
    except UnicodeError:
        return False
    return True


def _list_non_ascii(raw: bytes, name: str) -> Iterator[str]:
    return (match[0] for match in _BEYOND_ASCII.finditer(raw.decode(name, "surrogateescape")))


def _is_part_of(some: Iterator[str], every: Iterator[str]) -> bool:
    return all(char in every for char in some)  # each is looked for behind the one before it
