"""Animated GIF files: 256 colours, own LZW coder, frames written as they come so that memory stays flat."""

import struct
from collections.abc import Sequence
from typing import BinaryIO

Colour = tuple[int, int, int]


class GifFile:
    """A GIF that grows frame by frame and loops for ever; call ``end`` once."""

    def __init__(self, file: BinaryIO, width: int, height: int, palette: Sequence[Colour], fps: float) -> None:
        self.file = file
        self.width = width
        self.height = height
        self.hundredths = max(2, round(100 / fps))
        self.bits = max(2, (max(2, len(palette)) - 1).bit_length())
        table = b"".join(bytes(colour) for colour in palette).ljust(3 * 2**self.bits, b"\0")
        file.write(b"GIF89a" + struct.pack("<HHBBB", width, height, 0xF0 | (self.bits - 1), 0, 0) + table)
        file.write(b"\x21\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00")

    def add(self, pixels: bytes) -> None:
        """One frame: a palette index per pixel, row by row."""
        if len(pixels) != self.width * self.height:
            raise ValueError(f"a frame has {self.width * self.height} pixels, not {len(pixels)}")
        self.file.write(b"\x21\xf9\x04\x04" + struct.pack("<H", self.hundredths) + b"\0\0")
        self.file.write(b"\x2c" + struct.pack("<HHHHB", 0, 0, self.width, self.height, 0) + bytes((self.bits,)))
        packed = lzw(pixels, self.bits)
        for at in range(0, len(packed), 255):
            block = packed[at : at + 255]
            self.file.write(bytes((len(block),)) + block)
        self.file.write(b"\0")

    def end(self) -> None:
        """Closes the animation."""
        self.file.write(b"\x3b")


def lzw(pixels: bytes, bits: int) -> bytes:
    """GIF's variant: codes grow from bits+1 to 12, then the table begins anew."""
    clear, stop = 1 << bits, (1 << bits) + 1
    table: dict[tuple[int, int], int] = {}
    width, following = bits + 1, stop + 1
    out = bytearray()
    held, count = clear, width
    prefix = pixels[0]
    for pixel in pixels[1:]:
        code = table.get((prefix, pixel))
        if code is not None:
            prefix = code
            continue
        held |= prefix << count
        count += width
        if following < 4096:
            table[prefix, pixel] = following
            if following == 1 << width:
                width += 1
            following += 1
        else:
            held |= clear << count
            count += width
            table.clear()
            width, following = bits + 1, stop + 1
        while count >= 8:
            out.append(held & 255)
            held, count = held >> 8, count - 8
        prefix = pixel
    held |= prefix << count
    count += width
    if following == 1 << width and width < 12:
        width += 1
    held |= stop << count
    count += width
    out += held.to_bytes((count + 7) // 8, "little")
    return bytes(out)
