"""A window of lines out of a text file of any size, in constant memory.

Lines end at ``\\n`` (at ``\\r`` in a file that has no ``\\n``), as editors, git and ripgrep count them. The file is
read block by block, only up to the size it had when it was opened; whatever changed underneath is noticed (R96).
"""

import hashlib
import os
from codecs import getincrementaldecoder
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from toolyard.protocol.envelope import ErrorCode
from toolyard.protocol.failure import Failure
from toolyard.protocol.tool import Checkpoint
from toolyard.workspace.encoding import Encoding, detect, named
from toolyard.workspace.workspace import Opened

SMALL_FILE = 10 * 1024 * 1024  # up to here the whole file is looked at: hash, number of lines, encoding
_BLOCK = 1024 * 1024
_SAMPLE = 64 * 1024


@dataclass(frozen=True, slots=True)
class Line:
    text: str
    size: int  # in bytes, before any cut
    cut: bool


@dataclass(frozen=True, slots=True)
class Window:
    lines: tuple[Line, ...]
    encoding: Encoding
    eol: str | None  # lf, crlf, cr, mixed; None when there is no line ending
    next_line: int | None  # where the next window begins
    total_lines: int | None  # known when the end was reached or the file is small
    hash: str | None  # sha256, likewise


@dataclass(frozen=True, slots=True)
class Limits:
    start_line: int
    max_lines: int
    max_bytes: int  # of all lines
    max_line_chars: int


@dataclass(frozen=True, slots=True)
class TextReader:
    """How a caller reads text: the encoding it asks for, or the owner's fall-backs."""

    encoding: str | None
    fallbacks: Sequence[str]
    checkpoint: Checkpoint

    def window(self, file: Opened, limits: Limits) -> Window:
        window = self._small(file, limits) if file.stat.st_size <= SMALL_FILE else self._large(file, limits)
        _require_unchanged(file)
        return window

    def _small(self, file: Opened, limits: Limits) -> Window:
        raw = read_exactly(file.fd, 0, file.stat.st_size)
        encoding = self._encoding(raw, whole=True)
        body = raw[len(encoding.bom) :]
        if encoding.wide:
            body = encoding.decode(body).encode()
        newline = _newline(body)
        scan = _Scan(limits, newline)
        if not scan.feed(body):
            scan.finish()
        return Window(
            lines=_lines(scan, encoding, limits),
            encoding=encoding,
            eol="cr" if newline == b"\r" else _eol(body.count(b"\r\n"), body.count(b"\n")),
            next_line=scan.next_line,
            total_lines=body.count(newline) + (bool(body) and not body.endswith(newline)),
            hash=hashlib.sha256(raw).hexdigest(),
        )

    def _large(self, file: Opened, limits: Limits) -> Window:
        size = file.stat.st_size
        head = read_exactly(file.fd, 0, _SAMPLE)
        encoding = self._encoding(head, whole=False)
        newline = _newline(encoding.decode(head).encode() if encoding.wide else head)
        scan = _Scan(limits, newline)
        ended = not any(map(scan.feed, self._blocks(file.fd, size, encoding)))
        if ended:
            scan.finish()
        if head.isascii():  # the window may be the first place where the file shows its encoding
            encoding = self._encoding(b"\n".join(raw for raw, _ in scan.lines), whole=True)
        return Window(
            lines=_lines(scan, encoding, limits),
            encoding=encoding,
            eol="cr" if newline == b"\r" else _eol(scan.crlf, scan.crlf + scan.lf),
            next_line=scan.next_line,
            total_lines=scan.seen if ended else None,
            hash=self._hash(file.fd, size) if ended else None,
        )

    def _encoding(self, sample: bytes, *, whole: bool) -> Encoding:
        return named(self.encoding, sample) if self.encoding else detect(sample, whole=whole, fallbacks=self.fallbacks)

    def _blocks(self, fd: int, size: int, encoding: Encoding) -> Iterator[bytes]:
        """The text of the file as bytes in which a newline is one byte."""
        decoder = getincrementaldecoder(encoding.name)("backslashreplace") if encoding.wide else None
        for offset in range(len(encoding.bom), size, _BLOCK):
            self.checkpoint()
            block = read_exactly(fd, offset, min(_BLOCK, size - offset))
            yield decoder.decode(block, final=offset + _BLOCK >= size).encode() if decoder else block

    def _hash(self, fd: int, size: int) -> str:
        checksum = hashlib.sha256()
        for offset in range(0, size, _BLOCK):
            self.checkpoint()
            checksum.update(read_exactly(fd, offset, min(_BLOCK, size - offset)))
        return checksum.hexdigest()


class _Scan:
    """Feed blocks of bytes, get the lines of one window; of a long line only the beginning is kept."""

    def __init__(self, limits: Limits, newline: bytes) -> None:
        self._limits, self._newline = limits, newline
        self._keep = limits.max_line_chars * 4 + 4  # bytes of a line worth keeping: no character has more than 4
        self._open = b""  # the beginning of the line that has not ended yet
        self._open_size = 0
        self._kept_bytes = 0
        self.seen = 0  # lines that have ended
        self.lf = self.crlf = 0  # line endings inside the window
        self.lines: list[tuple[bytes, int]] = []
        self.next_line: int | None = None

    def feed(self, block: bytes) -> bool:
        """Take one block; True when the window is full and nothing more is needed."""
        at = self._skip_lines(block)
        while self.next_line is None and at < len(block):
            end = block.find(self._newline, at)
            stop = end if end >= 0 else len(block)
            self._open += block[at : min(stop, at + self._keep - len(self._open))]
            self._open_size += stop - at
            at = stop + 1
            if end >= 0:
                self._end_line(ended=True)
        return self.next_line is not None

    def finish(self) -> None:
        """The file has ended; what is open is a last line without a line ending."""
        if self._open_size:
            self._end_line(ended=False)

    def _skip_lines(self, block: bytes) -> int:
        """Where in ``block`` the window begins, or the block's end when it begins later."""
        missing = self._limits.start_line - 1 - self.seen
        if missing <= 0:
            return 0
        count = block.count(self._newline)
        if count < missing:
            self.seen += count
            self._open_size = 0 if block.endswith(self._newline) else 1
            return len(block)
        self.seen += missing
        self._open_size = 0
        return _after(block, self._newline, missing)

    def _end_line(self, *, ended: bool) -> None:
        raw, size = self._open, self._open_size
        self._open, self._open_size = b"", 0
        self.seen += 1
        if self.seen < self._limits.start_line:
            return
        if ended and self._newline == b"\n":
            carriage = raw.endswith(b"\r") and size == len(raw)
            self.crlf += carriage
            self.lf += not carriage
            raw, size = (raw[:-1], size - 1) if carriage else (raw, size)
        self._kept_bytes += min(size, self._keep) + len(str(self.seen)) + 2  # and its number, tab and newline
        full = len(self.lines) >= self._limits.max_lines or self._kept_bytes > self._limits.max_bytes
        if full and self.lines:
            self.next_line = self.seen
        else:
            self.lines.append((raw, size))


def _lines(scan: _Scan, encoding: Encoding, limits: Limits) -> tuple[Line, ...]:
    name = "utf-8" if encoding.wide else encoding.name  # wide text was already turned into UTF-8
    return tuple(_line(raw.decode(name, errors="backslashreplace"), size, limits) for raw, size in scan.lines)


def _line(text: str, size: int, limits: Limits) -> Line:
    return Line(text[: limits.max_line_chars], size, len(text) > limits.max_line_chars)


def _eol(crlf: int, all_newlines: int) -> str | None:
    if not all_newlines:
        return None
    return "lf" if not crlf else "crlf" if crlf == all_newlines else "mixed"


def _after(block: bytes, newline: bytes, count: int) -> int:
    """The position behind the ``count``-th newline of ``block``, which has at least that many."""
    low, high = 0, len(block)
    while high - low > 4096:  # halve by counting, which is far faster than finding one by one
        middle = (low + high) // 2
        inside = block.count(newline, low, middle)
        if inside >= count:
            high = middle
        else:
            low, count = middle, count - inside
    for _ in range(count):
        low = block.index(newline, low) + 1
    return low


def _newline(sample: bytes) -> bytes:
    return b"\r" if b"\r" in sample and b"\n" not in sample else b"\n"


def read_exactly(fd: int, offset: int, count: int) -> bytes:
    pieces = []
    while count > 0:
        piece = os.pread(fd, count, offset)
        if not piece:
            raise Failure(ErrorCode.CONFLICT, "The file became shorter while it was read.", hint="Read it again.")
        pieces.append(piece)
        offset += len(piece)
        count -= len(piece)
    return b"".join(pieces)


def _require_unchanged(file: Opened) -> None:
    """A file that only grew was read as it was; one rewritten in place may have given us two halves."""
    now = os.fstat(file.fd)
    if now.st_size <= file.stat.st_size and now.st_mtime_ns != file.stat.st_mtime_ns:
        raise Failure(ErrorCode.CONFLICT, f"'{file.path}' changed while it was read.", hint="Read it again.")
