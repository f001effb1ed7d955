"""A window of lines out of a text file of any size, in constant memory.

Lines end at ``\\n`` (at ``\\r`` in a file that has no ``\\n``), as editors, git and ripgrep count them. The file is
read block by block, only up to the size it had when it was opened; one that is written meanwhile gives a consistent
window or CONFLICT (R96).
"""

import hashlib
from bisect import bisect_right
from codecs import getincrementaldecoder
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import NamedTuple

from toolyard.protocol.tool import Checkpoint
from toolyard.workspace.encoding import Encoding, decodes, detect, named
from toolyard.workspace.snapshot import read_exactly, settled
from toolyard.workspace.workspace import Opened

SMALL_FILE = 10 * 1024 * 1024  # up to here the whole file is looked at: hash, number of lines, encoding
_BLOCK = 1024 * 1024
_FIRST_BLOCK = 128 * 1024  # enough for the first page of most files
_SAMPLE = 64 * 1024


class Line(NamedTuple):
    text: str
    size: int  # in bytes, before any cut
    cut: bool

    @property
    def shown(self) -> str:
        return f"{self.text}… [line cut: {self.size} bytes in all]" if self.cut else self.text


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
class Limits:
    start_line: int
    max_lines: int
    max_bytes: int  # of all lines as they are shown, each with its number, a tab and a newline between
    max_line_chars: int


@dataclass(frozen=True, slots=True)
class TextReader:
    """How a caller reads text: the encoding it asks for, or the owner's fall-backs."""

    encoding: str | None
    fallbacks: Sequence[str]
    checkpoint: Checkpoint

    def window(self, file: Opened, limits: Limits) -> Window:
        return settled(file, lambda now: (self._small if now.stat.st_size <= SMALL_FILE else self._large)(now, limits))

    def _small(self, file: Opened, limits: Limits) -> Window:
        raw = read_exactly(file.fd, 0, file.stat.st_size)
        encoding = self._encoding(raw, whole=True)
        body = raw[len(encoding.bom) :]
        if encoding.wide:
            body = encoding.utf8(body)
        newline = _newline(body)
        scan = _Scan(limits, newline)
        if not scan.feed(body):
            scan.finish()
        lines, next_line = _fitting(scan, encoding, limits)
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
        scan = _Scan(limits, newline)
        if not any(map(scan.feed, self._blocks(file.fd, size, encoding))):
            scan.finish()
        if not encoding.wide:
            encoding = self._confirmed(encoding, head, scan)
        lines, next_line = _fitting(scan, encoding, limits)
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

    def _confirmed(self, encoding: Encoding, head: bytes, scan: "_Scan") -> Encoding:
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


class _Scan:
    """Feed blocks of bytes, get the lines of one window; of a long line only the beginning is kept."""

    def __init__(self, limits: Limits, newline: bytes) -> None:
        self._limits, self._newline = limits, newline
        self._keep = limits.max_line_chars * 4 + 4  # bytes of a line worth keeping: no character has more than 4
        self._open = b""  # the beginning of the line that has not ended yet
        self._open_size = 0
        self._last = 0  # the last byte of that line so far
        self._shown_bytes = 0  # at least so many; the encoding tells later how many exactly
        self.seen = 0  # lines that have ended
        self.lf = self.crlf = 0  # line endings inside the window
        self.lines: list[tuple[bytes, int]] = []
        self.next_line: int | None = None

    def feed(self, block: bytes) -> bool:
        """Take one block; True when the window is full and nothing more is needed."""
        at = self._take_many(block, self._skip_lines(block))
        while self.next_line is None and at < len(block):
            end = block.find(self._newline, at)
            stop = end if end >= 0 else len(block)
            self._open += block[at : min(stop, at + self._keep - len(self._open))]
            self._open_size += stop - at
            self._last = block[stop - 1] if stop > at else self._last
            at = stop + 1
            if end >= 0:
                self._end_line(ended=True)
        return self.next_line is not None

    def finish(self) -> None:
        """The file has ended; what is open is a last line without a line ending."""
        if self._open_size:
            self._end_line(ended=False)

    def sample(self) -> tuple[bytes, bool]:
        """The lines up to the first one that is not kept whole, and whether there is none."""
        raws = []
        for raw, size in self.lines:
            raws.append(raw)
            if len(raw) < size:
                return b"\n".join(raws), False
        return b"\n".join(raws), True

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

    def _take_many(self, block: bytes, at: int) -> int:
        """Take lines that fit, from ``at`` on and all at once; returns where the next one begins.

        Only for speed: short lines that end alike, as nearly all do. The others are taken one by one.
        """
        limits = self._limits
        stop = block.rfind(self._newline, at, at + limits.max_bytes) + 1
        ending = _one_ending(block[at:stop], self._newline)
        if self._open_size or ending is None:
            return at
        raws = block[at : stop - len(ending)].split(ending)[: limits.max_lines - len(self.lines)]
        if max(map(len, raws), default=0) > limits.max_line_chars:
            return at
        sizes = [len(raw) + _extra(number, first=False) for number, raw in enumerate(raws, self.seen + 1)]
        shown = list(accumulate(sizes, initial=self._shown_bytes - (not self.lines)))
        count = bisect_right(shown, limits.max_bytes) - 1
        if count <= 0:
            return at
        self.lines += [(raw, len(raw)) for raw in raws[:count]]
        self._shown_bytes = shown[count]
        self.seen += count
        self.crlf += count if ending == b"\r\n" else 0
        self.lf += count if ending == b"\n" else 0
        return at + sum(map(len, raws[:count])) + count * len(ending)

    def _end_line(self, *, ended: bool) -> None:
        raw, size, last = self._open, self._open_size, self._last
        self._open, self._open_size, self._last = b"", 0, 0
        self.seen += 1
        if self.seen < self._limits.start_line:
            return
        if ended and self._newline == b"\n":
            carriage = last == _CR
            self.crlf += carriage
            self.lf += not carriage
            size -= carriage
            raw = raw[:size]
        self._shown_bytes += min(size, self._limits.max_line_chars) + _extra(self.seen, first=not self.lines)
        full = len(self.lines) >= self._limits.max_lines or self._shown_bytes > self._limits.max_bytes
        if full and self.lines:
            self.next_line = self.seen
        else:
            self.lines.append((raw, size))


_CR = ord("\r")


def _fitting(scan: _Scan, encoding: Encoding, limits: Limits) -> tuple[tuple[Line, ...], int | None]:
    """The lines as text, as many as fit when shown, and where the next window begins."""
    lines: list[Line] = []
    shown, wide, utf8_name = 0, encoding.wide, encoding.name == "utf-8"
    for number, (raw, size) in enumerate(scan.lines, limits.start_line):
        plain = wide or (utf8_name and raw.isascii())  # wide text is UTF-8 by now
        utf8 = raw if plain else encoding.utf8(raw)
        text = utf8.decode(errors="backslashreplace")  # a cut may leave half a character
        cut = len(text) > limits.max_line_chars or len(raw) < size
        line = Line(text[: limits.max_line_chars], size, cut)
        shown += (len(line.shown.encode()) if cut else len(utf8)) + _extra(number, first=not lines)
        if lines and shown > limits.max_bytes:
            return tuple(lines), number
        lines.append(line)
    return tuple(lines), scan.next_line


def _extra(number: int, *, first: bool) -> int:
    """The bytes shown besides the line itself: its number, a tab, and a newline before all but the first."""
    return len(str(number)) + (1 if first else 2)


def _eol(crlf: int, all_newlines: int) -> str | None:
    if not all_newlines:
        return None
    return "lf" if not crlf else "crlf" if crlf == all_newlines else "mixed"


def _one_ending(lines: bytes, newline: bytes) -> bytes | None:
    """How all of some whole lines end; None when not all end alike, or there are none."""
    if newline == b"\n" and b"\r" in lines:
        alike = lines.count(b"\r") == lines.count(b"\r\n") == lines.count(b"\n")
        return b"\r\n" if alike else None
    return newline if lines else None


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
