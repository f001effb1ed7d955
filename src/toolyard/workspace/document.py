"""A text file as its bytes and as its text, and edits spliced from the one into the other.

Only the bytes of a splice are ever encoded; every byte outside it is taken over as it is. A file whose text does not
give back its bytes is not edited at all.
"""

import re
from dataclasses import dataclass

from toolyard.protocol.edit import Splice
from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure, Reason
from toolyard.workspace.encoding import Encoding, detect, looks_binary

UTF8 = Encoding("utf-8")  # of every new file
MAX_BYTES = 64 * 1024 * 1024  # of a file that is edited: it is held in memory, several times over


@dataclass(frozen=True, slots=True)
class Document:
    raw: bytes
    encoding: Encoding
    text: str  # without the byte-order mark; bytes that are no text are kept as lone surrogates

    @classmethod
    def of(cls, raw: bytes, path: str, fallbacks: tuple[str, ...]) -> "Document":
        if looks_binary(raw):
            raise Failure(ErrorCode.BINARY_FILE, f"'{path}' is a binary file.", hint="Only text files can be edited.")
        encoding = detect(raw, whole=True, fallbacks=fallbacks)
        try:
            document = cls.known(raw, encoding)
            sure = encoding.name == "utf-8" and encoding.certain  # valid UTF-8 is the only way to write its text
            faithful = sure or (document.whole(document.text) == raw and not _STATEFUL.match(encoding.name))
        except UnicodeError:
            document, faithful = cls(raw, encoding, ""), False
        if not faithful:
            raise Failure(
                Reason.UNSUPPORTED_ENCODING,
                f"'{path}' cannot be edited safely: its bytes are not a clean text in {encoding.name}.",
                hint="Convert the file to UTF-8 first.",
            )
        return document

    @classmethod
    def known(cls, raw: bytes, encoding: Encoding) -> "Document":
        """Bytes whose encoding is known, because they were just made from a text in it."""
        return cls(raw, encoding, raw[len(encoding.bom) :].decode(encoding.name, _errors(encoding)))

    def spliced(self, splices: tuple[Splice, ...], path: str) -> bytes:
        """The file's bytes with the splices put in."""
        raw = memoryview(self.raw)  # its slices are no copies
        pieces: list[bytes | memoryview] = [self.encoding.bom]
        at, offset = 0, len(self.encoding.bom)
        for splice in splices:
            kept, gone = self._size(at, splice.start), self._size(splice.start, splice.end)
            pieces += [raw[offset : offset + kept], self.encoded(splice.text, path)]
            at, offset = splice.end, offset + kept + gone
        return b"".join([*pieces, raw[offset:]])

    def _size(self, start: int, end: int) -> int:
        """How many bytes the characters ``start:end`` are."""
        if self.encoding.name == "utf-8" and self.text.isascii():
            return end - start
        return len(self.text[start:end].encode(self.encoding.name, _errors(self.encoding)))

    def whole(self, text: str) -> bytes:
        """The file with another text; without states in the encoding, what is equal text is equal bytes."""
        return self.encoding.bom + text.encode(self.encoding.name, _errors(self.encoding))

    def encoded(self, text: str, path: str) -> bytes:
        """New text in the file's own encoding."""
        if not self.encoding.certain and self.encoding.name != "utf-8" and not text.isascii():
            raise Failure(
                Reason.UNSUPPORTED_ENCODING,
                f"The encoding of '{path}' is only a guess ({self.encoding.name}): too weak to write such characters.",
                hint="Use ASCII characters, or convert the file to UTF-8 first.",
            )
        try:
            return text.encode(self.encoding.name)
        except UnicodeEncodeError as error:
            raise Failure(
                Reason.UNSUPPORTED_ENCODING,
                f"'{path}' is written in {self.encoding.name}, which has no {text[error.start]!r}.",
                hint="Leave that character out, or convert the file to UTF-8 first.",
            ) from error


_STATEFUL = re.compile("iso-?2022|hz|utf-?7", re.IGNORECASE)  # what a byte means depends on the bytes before it


def _errors(encoding: Encoding) -> str:
    return "surrogateescape" if encoding.name == "utf-8" else "strict"
