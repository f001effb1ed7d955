"""Decoders for what the plugins paint, written from the formats' rules and apart from their encoders."""

import base64
import struct
import zlib
from dataclasses import dataclass

Colour = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Picture:
    """An RGB picture."""

    width: int
    height: int
    pixels: bytes

    def at(self, x: float, y: float) -> Colour:
        start = (int(y) * self.width + int(x)) * 3
        red, green, blue = self.pixels[start : start + 3]
        return red, green, blue

    def where(self, colour: Colour, near: int = 12) -> list[tuple[int, int]]:
        """The pixels of (almost) this colour."""
        return [
            (x, y)
            for y in range(self.height)
            for x in range(self.width)
            if all(abs(a - b) <= near for a, b in zip(self.at(x, y), colour, strict=True))
        ]


def from_uri(uri: str, kind: str) -> bytes:
    head, _, body = uri.partition(",")
    assert head == f"data:image/{kind};base64"
    return base64.b64decode(body, validate=True)


def png(raw: bytes) -> Picture:
    """An 8-bit RGB PNG without row filters; every checksum is verified."""
    assert raw[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, []
    while at < len(raw):
        (size,) = struct.unpack(">I", raw[at : at + 4])
        name, body = raw[at + 4 : at + 8], raw[at + 8 : at + 8 + size]
        assert struct.unpack(">I", raw[at + 8 + size : at + 12 + size])[0] == zlib.crc32(name + body)
        chunks.append((name, body))
        at += 12 + size
    assert (chunks[0][0], chunks[-1]) == (b"IHDR", (b"IEND", b""))
    width, height, depth, colours = struct.unpack(">IIBB", chunks[0][1][:10])
    assert (depth, colours) == (8, 2)
    rows = zlib.decompress(b"".join(body for name, body in chunks if name == b"IDAT"))
    stride = width * 3 + 1
    assert len(rows) == stride * height
    assert set(rows[::stride]) == {0}
    return Picture(width, height, b"".join(rows[i + 1 : i + stride] for i in range(0, len(rows), stride)))


def gif(raw: bytes) -> tuple[list[Picture], int]:
    """The frames of a GIF with one table of colours, and the pause between them in hundredths of a second."""
    assert raw[:6] == b"GIF89a"
    width, height, flags = struct.unpack("<HHB", raw[6:11])
    count = 2 << (flags & 7)
    table = [raw[13 + i * 3 : 16 + i * 3] for i in range(count)]
    at, frames, pause = 13 + 3 * count, [], 0
    while raw[at] != 0x3B:
        if raw[at] == 0x21:
            if raw[at + 1] == 0xF9:
                (pause,) = struct.unpack("<H", raw[at + 4 : at + 6])
            _, at = _blocks(raw, at + 2)
            continue
        assert raw[at] == 0x2C
        assert struct.unpack("<HHHHB", raw[at + 1 : at + 10]) == (0, 0, width, height, 0)
        packed, after = _blocks(raw, at + 11)
        indices = _unpacked(packed, raw[at + 10])
        assert len(indices) == width * height
        frames.append(Picture(width, height, b"".join(table[index] for index in indices)))
        at = after
    assert at == len(raw) - 1
    return frames, pause


def _blocks(raw: bytes, at: int) -> tuple[bytes, int]:
    found = b""
    while raw[at]:
        found += raw[at + 1 : at + 1 + raw[at]]
        at += 1 + raw[at]
    return found, at + 1


def _unpacked(packed: bytes, bits: int) -> bytes:
    clear, stop = 1 << bits, (1 << bits) + 1
    stream, place = int.from_bytes(packed, "little"), 0
    table: list[bytes] = []
    out: list[bytes] = []
    width, last = bits + 1, b""
    while True:
        code = (stream >> place) & ((1 << width) - 1)
        place += width
        if code == stop:
            assert len(packed) * 8 - place < 8
            return b"".join(out)
        if code == clear:
            table = [bytes((i,)) for i in range(clear)] + [b"", b""]
            width, last = bits + 1, b""
            continue
        entry = table[code] if code < len(table) else last + last[:1]
        assert code <= len(table)
        out.append(entry)
        if last and len(table) < 4096:
            table.append(last + entry[:1])
        if len(table) == 1 << width and width < 12:
            width += 1
        last = entry
