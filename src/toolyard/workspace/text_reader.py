"""A window of lines out of a text file of any size, in constant memory.

Lines end at ``\\n`` (at ``\\r`` in a file that has no ``\\n``), as editors, git and ripgrep count them. The file is
read block by block, only up to the size it had when it was opened; one that is written meanwhile gives a consistent
window or CONFLICT (R96).

Nearly all files have short lines that end alike and are plain ASCII: those are taken and decoded many at once. The
others are taken one by one, which gives the same.
"""

import hashlib
from bisect import bisect_right
from codecs import getincrementaldecoder
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, repeat
from typing import NamedTuple

from toolyard.protocol.tool import Checkpoint
from toolyard.workspace.encoding import Encoding, can_decode, detect_encoding, find_encoding
from toolyard.workspace.workspace import OpenHandle, read_consistently, read_exactly

SMALL_FILE = 10 * 1024 * 1024  # up to here the whole file is looked at: hash, number of lines, encoding
_BLOCK = 1024 * 1024
_FIRST_BLOCK = 128 * 1024  # enough for the first page of most files
_SAMPLE = 64 * 1024
_CR = ord("\r")


class Line(NamedTuple):
    text: str
    size: int  # in bytes, before any cut
    cut: bool

    @property
    def display_text(self) -> str:
        return f"{self.text}… [line cut: {self.size} bytes in all]" if self.cut else self.text


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
class WindowLimits:
    start_line: int
    max_lines: int
    max_bytes: int  # of all lines as they are shown, each with its number, a tab and a newline between
    max_line_chars: int


class LineScan:
    """Feed blocks of bytes, get the lines of one window; of a long line only the beginning is kept."""

    def __init__(self, limits: WindowLimits, newline: bytes) -> None:
        self._limits, self._newline = limits, newline
        self._keep = limits.max_line_chars * 4 + 4  # bytes of a line worth keeping: no character has more than 4
        self._open = b""  # the beginning of the line that has not ended yet
        self._open_size = 0
        self._last = 0  # the last byte of that line so far
        self._shown_bytes = 0  # at least so many; the encoding tells later how many exactly
        self.seen = 0  # lines that have ended
        self.lf = self.crlf = 0  # line endings inside the window
        self._raws: list[bytes] = []  # the lines of the window, or of long ones the beginning
        self._sizes: list[int] = []  # how long each of them is
        self._long = False  # whether one of them is longer than what is shown of it
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

    def build_sample(self) -> tuple[bytes, bool]:
        """The lines up to the first one that is not kept whole, and whether there is none."""
        pairs = zip(self._raws, self._sizes, strict=True) if self._long else ()
        count = next((number for number, (raw, size) in enumerate(pairs, 1) if len(raw) < size), None)
        return b"\n".join(self._raws[:count]), count is None

    def decode_lines(self, encoding: Encoding) -> tuple[tuple[Line, ...], int | None]:
        """The lines as text, as many as fit when shown, and where the next window begins."""
        together = self._newline.join(self._raws)
        if self._long or not self._raws or not _is_ascii(together, encoding):
            return self._decode_one_by_one(encoding)
        texts = together.decode().split(self._newline.decode())  # each byte is shown as one: that they fit is known
        return tuple(map(Line._make, zip(texts, self._sizes, repeat(False)))), self.next_line

    def _decode_one_by_one(self, encoding: Encoding) -> tuple[tuple[Line, ...], int | None]:
        """Decode the lines one by one."""
        limits, lines, shown, wide = self._limits, list[Line](), 0, encoding.is_wide
        for number, (raw, size) in enumerate(zip(self._raws, self._sizes, strict=True), limits.start_line):
            utf8 = raw if wide or _is_ascii(raw, encoding) else encoding.to_utf8(raw)  # wide text is UTF-8 by now
            text = utf8.decode(errors="backslashreplace")  # a cut may leave half a character
            cut = len(text) > limits.max_line_chars or len(raw) < size
            line = Line(text[: limits.max_line_chars], size, cut)
            shown += (len(line.display_text.encode()) if cut else len(utf8)) + _count_extra_bytes(
                number, first=not lines
            )
            if lines and shown > limits.max_bytes:
                return tuple(lines), number
            lines.append(line)
        return tuple(lines), self.next_line

    def _skip_lines(self, block: bytes) -> int:
        """Find where in ``block`` the window begins; the block's end when it begins later."""
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
        return _find_position_after(block, self._newline, missing)

    def _take_many(self, block: bytes, at: int) -> int:
        """Take lines that fit, from ``at`` on and all at once; returns where the next one begins.

        Only for speed: short lines that end alike, as nearly all do. The others are taken one by one.
        """
        limits = self._limits
        stop = block.rfind(self._newline, at, at + limits.max_bytes) + 1
        ending = _find_common_ending(block[at:stop], self._newline)
        if self._open_size or ending is None:
            return at
        raws = block[at : stop - len(ending)].split(ending)[: limits.max_lines - len(self._raws)]
        lengths = list(map(len, raws))
        if max(lengths, default=0) > limits.max_line_chars:
            return at
        numbers = map(len, map(str, range(self.seen + 1, self.seen + 1 + len(raws))))
        sizes = map(sum, zip(lengths, numbers, repeat(2)))  # as ``_count_extra_bytes`` has it
        shown = list(accumulate(sizes, initial=self._shown_bytes - (not self._raws)))
        count = bisect_right(shown, limits.max_bytes) - 1
        if count <= 0:
            return at
        self._raws += raws[:count]
        self._sizes += lengths[:count]
        self._shown_bytes = shown[count]
        self.seen += count
        self.crlf += count if ending == b"\r\n" else 0
        self.lf += count if ending == b"\n" else 0
        return at + sum(lengths[:count]) + count * len(ending)

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
        self._shown_bytes += min(size, self._limits.max_line_chars) + _count_extra_bytes(
            self.seen, first=not self._raws
        )
        full = len(self._raws) >= self._limits.max_lines or self._shown_bytes > self._limits.max_bytes
        if full and self._raws:
            self.next_line = self.seen
            return
        self._raws.append(raw)
        self._sizes.append(size)
        self._long = self._long or size > self._limits.max_line_chars


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


def _is_ascii(raw: bytes, encoding: Encoding) -> bool:
    """Return whether bytes are shown as they are: in some encodings ASCII bytes stand for other characters."""
    return raw.isascii() and (encoding.name == "utf-8" or encoding.is_wide)


def _count_extra_bytes(number: int, *, first: bool) -> int:
    """The bytes shown besides the line itself: its number, a tab, and a newline before all but the first."""
    return len(str(number)) + (1 if first else 2)


def _find_common_ending(lines: bytes, newline: bytes) -> bytes | None:
    """Find the ending of some whole lines; None when they end differently, or there are none."""
    if newline == b"\n" and b"\r" in lines:
        alike = lines.count(b"\r") == lines.count(b"\r\n") == lines.count(b"\n")
        return b"\r\n" if alike else None
    return newline if lines else None


def _find_position_after(block: bytes, newline: bytes, count: int) -> int:
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
