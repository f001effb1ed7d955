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
from toolyard.workspace.encoding import Encoding, can_decode, detect_encoding, find_encoding
from toolyard.workspace.line_scan import Line, LineScan, WindowLimits
from toolyard.workspace.snapshot import read_consistently, read_exactly
from toolyard.workspace.workspace import OpenHandle

SMALL_FILE = 10 * 1024 * 1024  # up to here the whole file is looked at: hash, number of lines, encoding
_BLOCK = 1024 * 1024
_FIRST_BLOCK = 128 * 1024  # enough for the first page of most files
_SAMPLE = 64 * 1024


@dataclass(frozen=True, slots=True)
class TextWindow:
    lines: tuple[Line, ...]
    encoding: Encoding
    eol: str | None  # lf, crlf, cr, mixed; None when there is no line ending
    next_line: int | None  # where the next window begins
    total_lines: int | None  # known when the end was reached or the file is small
    hash: str | None  # sha256, likewise
    size: int  # of the file, in bytes


@dataclass(frozen=True, slots=True)
class TextReader:
    """A reader of text files, in the requested encoding or with the owner's fallbacks."""

    encoding: str | None
    fallbacks: Sequence[str]
    checkpoint: Checkpoint

    def read_window(self, file: OpenHandle, limits: WindowLimits) -> TextWindow:
        return read_consistently(file, lambda now: self.read_window_once(now, limits))

    def read_window_once(self, file: OpenHandle, limits: WindowLimits) -> TextWindow:
        """The window of the file at the size it is known to have, for who settles more than one of them."""
        return (self._read_small if file.stat.st_size <= SMALL_FILE else self._read_large)(file, limits)

    def _read_small(self, file: OpenHandle, limits: WindowLimits) -> TextWindow:
        raw = read_exactly(file.fd, 0, file.stat.st_size)
        encoding = self._choose_encoding(raw, whole=True)
        body = raw[len(encoding.bom) :]
        if encoding.is_wide:
            body = encoding.to_utf8(body)
        newline = _choose_newline(body)
        scan = LineScan(limits, newline)
        if not scan.feed(body):
            scan.finish()
        lines, next_line = scan.decode_lines(encoding)
        return TextWindow(
            lines=lines,
            encoding=encoding,
            eol="cr" if newline == b"\r" else _name_line_ending(body.count(b"\r\n"), body.count(b"\n")),
            next_line=next_line,
            total_lines=body.count(newline) + (bool(body) and not body.endswith(newline)),
            hash=hashlib.sha256(raw).hexdigest(),
            size=len(raw),
        )

    def _read_large(self, file: OpenHandle, limits: WindowLimits) -> TextWindow:
        size = file.stat.st_size
        head = read_exactly(file.fd, 0, min(size, _SAMPLE))
        encoding = self._choose_encoding(head, whole=len(head) == size)
        seen = encoding.to_utf8(head) if encoding.is_wide else head
        newline = _choose_newline(seen if len(head) == size else seen.removesuffix(b"\r"))  # perhaps half of a CRLF
        scan = LineScan(limits, newline)
        if not any(map(scan.feed, self._read_blocks(file.fd, size, encoding))):
            scan.finish()
        if not encoding.is_wide:
            encoding = self._confirm_encoding(encoding, head, scan)
        lines, next_line = scan.decode_lines(encoding)
        ended = next_line is None
        return TextWindow(
            lines=lines,
            encoding=encoding,
            eol="cr" if newline == b"\r" else _name_line_ending(scan.crlf, scan.crlf + scan.lf),
            next_line=next_line,
            total_lines=scan.seen if ended else None,
            hash=self._hash_file(file.fd, size) if ended else None,
            size=size,
        )

    def _choose_encoding(self, sample: bytes, *, whole: bool) -> Encoding:
        if self.encoding:
            return find_encoding(self.encoding, sample, whole=whole)
        return detect_encoding(sample, whole=whole, fallbacks=self.fallbacks)

    def _confirm_encoding(self, encoding: Encoding, head: bytes, scan: LineScan) -> Encoding:
        """Check the encoding of the head against the window; after an ASCII head, detect it there."""
        window, whole = scan.build_sample()
        if head.isascii():
            return self._choose_encoding(head + b"\n" + window, whole=whole)
        return encoding if can_decode(window, encoding.name, whole=whole) else replace(encoding, certain=False)

    def _read_blocks(self, fd: int, size: int, encoding: Encoding) -> Iterator[bytes]:
        """The text of the file as bytes in which a newline is one byte."""
        decoder = getincrementaldecoder(encoding.name)("backslashreplace") if encoding.is_wide else None
        offset, length = len(encoding.bom), min(_FIRST_BLOCK, _BLOCK)
        while offset < size:
            self.checkpoint()
            block = read_exactly(fd, offset, min(length, size - offset))
            offset, length = offset + len(block), _BLOCK
            if decoder:
                block = decoder.decode(block, final=offset >= size).encode(errors="backslashreplace")
            if block:  # else it was less than a character
                yield block

    def _hash_file(self, fd: int, size: int) -> str:
        checksum = hashlib.sha256()
        for offset in range(0, size, _BLOCK):
            self.checkpoint()
            checksum.update(read_exactly(fd, offset, min(_BLOCK, size - offset)))
        return checksum.hexdigest()


def _name_line_ending(crlf: int, all_newlines: int) -> str | None:
    if not all_newlines:
        return None
    return "lf" if not crlf else "crlf" if crlf == all_newlines else "mixed"


def _choose_newline(sample: bytes) -> bytes:
    return b"\r" if b"\r" in sample and b"\n" not in sample else b"\n"
