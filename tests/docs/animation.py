"""An animated WebP from pictures of a browser, which encodes single ones only: the container is written here."""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

_IMAGE_CHUNKS: Final = (b"ALPH", b"VP8 ", b"VP8L")
_ANIMATED: Final = 0x02
_NO_BLENDING: Final = 0x02


@dataclass(frozen=True, slots=True)
class Frame:
    """A still WebP, and for how long it is shown."""

    image: bytes
    milliseconds: int


def encode_animation(frames: Iterable[Frame], width: int, height: int) -> bytes:
    """Return a WebP that shows the frames one after the other, again and again. All have the same size."""
    size = _to_24_bits(width - 1) + _to_24_bits(height - 1)
    chunks = [
        _make_chunk(b"VP8X", bytes([_ANIMATED, 0, 0, 0]) + size),
        _make_chunk(b"ANIM", b"\xff\xff\xff\xff" + struct.pack("<H", 0)),
    ]
    for frame in frames:
        head = bytes(6) + size + _to_24_bits(frame.milliseconds) + bytes([_NO_BLENDING])
        image = b"".join(_make_chunk(name, data) for name, data in _read_chunks(frame.image) if name in _IMAGE_CHUNKS)
        chunks.append(_make_chunk(b"ANMF", head + image))
    body = b"WEBP" + b"".join(chunks)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def _to_24_bits(number: int) -> bytes:
    return number.to_bytes(3, "little")


def _make_chunk(name: bytes, data: bytes) -> bytes:
    return name + struct.pack("<I", len(data)) + data + bytes(len(data) % 2)


def _read_chunks(webp: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = 12  # after RIFF, the size, and WEBP
    while at < len(webp):
        (length,) = struct.unpack_from("<I", webp, at + 4)
        yield webp[at : at + 4], webp[at + 8 : at + 8 + length]
        at += 8 + length + length % 2
