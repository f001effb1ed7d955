"""A text file as its bytes and as its text, and edits spliced from the one into the other.

Only the bytes of a splice are ever encoded; every byte outside it is taken over as it is. A file whose text does not
give back its bytes is not edited at all. Where the encoding is a guess, no character beyond ASCII is added, and none is
changed in any encoding that may be meant.
"""

import re
from dataclasses import dataclass

from toolyard.message import Message
from toolyard.protocol.edit import Splice, apply_splices
from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure, Reason
from toolyard.workspace.encoding import Encoding, detect_encoding, looks_binary
from toolyard.workspace.encoding_guess import decode_guess, encode_guess, keeps_characters

UTF8 = Encoding("utf-8")  # of every new file
MAX_GUESSED = 4 * 1024 * 1024  # of a file in an unknown encoding: its bytes are looked at one by one
MAX_BYTES = 64 * 1024 * 1024  # of a file that is edited: it is held in memory, several times over


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
                Message("file.binary_file", "'{path}' is a binary file.", path=path),
                hint=Message("hint.only_text_files", "Only text files can be edited."),
            )
        encoding = detect_encoding(raw, whole=True, fallbacks=fallbacks)
        if encoding.guessed and len(raw) > MAX_GUESSED:
            raise Failure(
                Reason.TOO_LARGE,
                Message(
                    "edit.too_large_encoding_guessed",
                    "'{path}' is too large to be edited while its encoding is only a guess ({name}).",
                    path=path,
                    name=encoding.name,
                ),
                hint=Message("hint.convert_to_utf8", "Convert the file to UTF-8 first."),
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
                    "edit.text_not_clean",
                    "'{path}' cannot be edited safely: its bytes are not a clean text in {name}.",
                    path=path,
                    name=encoding.name,
                ),
                hint=Message("hint.convert_to_utf8", "Convert the file to UTF-8 first."),
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
                    "edit.encoding_uncertain",
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
                    "file.written_no",
                    "'{path}' is written in {name}, which has no {start!r}.",
                    path=path,
                    name=self.encoding.name,
                    start=text[error.start],
                ),
                hint=Message(
                    "hint.leave_character_out", "Leave that character out, or convert the file to UTF-8 first."
                ),
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
                    "edit.encoding_splits_character",
                    "The encoding of the file is only a guess ({name}): in another one, the change would fall into "
                    "the middle of a character.",
                    name=self.encoding.name,
                ),
                hint=Message("hint.replace_whole_lines", "Replace whole lines, or convert the file to UTF-8 first."),
            )
        return new


_CERTAINTY = Message(
    "hint.encoding_certainty",
    "Use ASCII characters, convert the file to UTF-8 first, or have its encoding set as fallback_encodings.",
)
_STATEFUL = re.compile("iso-?2022|hz|utf-?7", re.IGNORECASE)  # what a byte means depends on the bytes before it


def _count_common(one: str, other: str) -> int:
    """Count the characters that both texts begin with."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _error_handler(encoding: Encoding) -> str:
    return "surrogateescape" if encoding.name == "utf-8" else "strict"
