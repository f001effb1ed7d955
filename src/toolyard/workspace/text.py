"""A window of lines out of a text file of any size, in constant memory.

Lines end at ``\\n`` (at ``\\r`` in a file that has no ``\\n``), as editors, git and ripgrep count them. The file is
read block by block, only up to the size it had when it was opened; one that is written meanwhile gives a consistent
window or CONFLICT (R96).
"""

import hashlib
from codecs import getincrementaldecoder
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from toolyard.protocol.tool import Checkpoint
from toolyard.workspace.encoding import Encoding, decodes, detect, named
from toolyard.workspace.line_scan import Limits, Line, LineScan
from toolyard.workspace.snapshot import read_exactly, settled
from toolyard.workspace.workspace import Opened

SMALL_FILE = 10 * 1024 * 1024  # up to here the whole file is looked at: hash, number of lines, encoding
_BLOCK = 1024 * 1024
_FIRST_BLOCK = 128 * 1024  # enough for the first page of most files
_SAMPLE = 64 * 1024


@dataclass(frozen=True, slots=True)
class Window:
    lines: tuple[Line, ...]
    encoding: Encoding
    eol: str | None  # lf, crlf, cr, mixed; None when there is no line ending
    next_line: int | None  # where the next window begins
    total_lines: int | None  # known when the end was reached or the file is small
    hash: str | None  # sha256, likewise
    size: int  # of the file, in bytes


@dataclass(frozen=True, slots=True)
class TextReader:
    """How a caller reads text: the encoding it asks for, or the owner's fall-backs."""

    encoding: str | None
    fallbacks: Sequence[str]
    checkpoint: Checkpoint

    def window(self, file: Opened, limits: Limits) -> Window:
        return settled(file, lambda now: self.of(now, limits))

    def of(self, file: Opened, limits: Limits) -> Window:
        """The window of the file at the size it is known to have, for who settles more than one of them."""
        return (self._small if file.stat.st_size <= SMALL_FILE else self._large)(file, limits)

    def _small(self, file: Opened, limits: Limits) -> Window:
        raw = read_exactly(file.fd, 0, file.stat.st_size)
        encoding = self._encoding(raw, whole=True)
        body = raw[len(encoding.bom) :]
        if encoding.wide:
            body = encoding.utf8(body)
        newline = _newline(body)
        scan = LineScan(limits, newline)
        if not scan.feed(body):
            scan.finish()
        lines, next_line = scan.fitting(encoding)
        return Window(
            lines=lines,
            encoding=encoding,
            eol="cr" if newline == b"\r" else _eol(body.count(b"\r\n"), body.count(b"\n")),
            next_line=next_line,
            total_lines=body.count(newline) + (bool(body) and not body.endswith(newline)),
            hash=hashlib.sha256(raw).hexdigest(),
            size=len(raw),
        )

    def _large(self, file: Opened, limits: Limits) -> Window:
        size = file.stat.st_size
        head = read_exactly(file.fd, 0, min(size, _SAMPLE))
        encoding = self._encoding(head, whole=len(head) == size)
        seen = encoding.utf8(head) if encoding.wide else head
        newline = _newline(seen if len(head) == size else seen.removesuffix(b"\r"))  # perhaps half of a CRLF
        scan = LineScan(limits, newline)
        if not any(map(scan.feed, self._blocks(file.fd, size, encoding))):
            scan.finish()
        if not encoding.wide:
            encoding = self._confirmed(encoding, head, scan)
        lines, next_line = scan.fitting(encoding)
        ended = next_line is None
        return Window(
            lines=lines,
            encoding=encoding,
            eol="cr" if newline == b"\r" else _eol(scan.crlf, scan.crlf + scan.lf),
            next_line=next_line,
            total_lines=scan.seen if ended else None,
            hash=self._hash(file.fd, size) if ended else None,
            size=size,
        )

    def _encoding(self, sample: bytes, *, whole: bool) -> Encoding:
        if self.encoding:
            return named(self.encoding, sample, whole=whole)
        return detect(sample, whole=whole, fallbacks=self.fallbacks)

    def _confirmed(self, encoding: Encoding, head: bytes, scan: LineScan) -> Encoding:
        """What the head promised, held against the window; behind an ASCII head it is the first to show an encoding."""
        window, whole = scan.sample()
        if head.isascii():
            return self._encoding(head + b"\n" + window, whole=whole)
        return encoding if decodes(window, encoding.name, whole=whole) else replace(encoding, certain=False)

    def _blocks(self, fd: int, size: int, encoding: Encoding) -> Iterator[bytes]:
        """The text of the file as bytes in which a newline is one byte."""
        decoder = getincrementaldecoder(encoding.name)("backslashreplace") if encoding.wide else None
        offset, length = len(encoding.bom), min(_FIRST_BLOCK, _BLOCK)
        while offset < size:
            self.checkpoint()
            block = read_exactly(fd, offset, min(length, size - offset))
            offset, length = offset + len(block), _BLOCK
            if decoder:
                block = decoder.decode(block, final=offset >= size).encode(errors="backslashreplace")
            if block:  # else it was less than a character
                yield block

    def _hash(self, fd: int, size: int) -> str:
        checksum = hashlib.sha256()
        for offset in range(0, size, _BLOCK):
            self.checkpoint()
            checksum.update(read_exactly(fd, offset, min(_BLOCK, size - offset)))
        return checksum.hexdigest()


def _eol(crlf: int, all_newlines: int) -> str | None:
    if not all_newlines:
        return None
    return "lf" if not crlf else "crlf" if crlf == all_newlines else "mixed"


def _newline(sample: bytes) -> bytes:
    return b"\r" if b"\r" in sample and b"\n" not in sample else b"\n"
