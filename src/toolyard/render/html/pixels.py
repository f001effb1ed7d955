"""The size of a picture, read from its first bytes without decoding it: a small file may expand to a huge one."""

from collections.abc import Iterator

_JPEG_SIZES = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})  # segments with width and height
_JPEG_BARE = frozenset({0x01, *range(0xD0, 0xD9)})  # markers without a length


def read_pixels(mime: str, data: bytes) -> tuple[int, int] | None:
    """Return width and height, or None when the picture does not contain them."""
    match mime:
        case "image/png" if data[12:16] == b"IHDR" and len(data) >= 24:
            return _read_big_endian(data, 16, 4), _read_big_endian(data, 20, 4)
        case "image/gif" if len(data) >= 10:
            return _read_gif(data)
        case "image/jpeg":
            return next(_read_jpeg(data), None)
        case "image/webp":
            return _read_webp(data)
    return None


def _read_big_endian(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "big")


def _read_little_endian(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")


def _read_gif(data: bytes) -> tuple[int, int]:
    """Return the size of a GIF: its screen, or its first frame where that is larger."""
    width, height = _read_little_endian(data, 6, 2), _read_little_endian(data, 8, 2)
    palette = 3 << ((data[10] & 7) + 1) if len(data) > 10 and data[10] & 0x80 else 0
    at = 13 + palette
    if data[at : at + 1] == b"," and len(data) >= at + 9:
        return max(width, _read_little_endian(data, at + 5, 2)), max(height, _read_little_endian(data, at + 7, 2))
    return width, height


def _read_jpeg(data: bytes) -> Iterator[tuple[int, int]]:
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF or marker in _JPEG_BARE:
            at += 1 if marker == 0xFF else 2
        elif marker in _JPEG_SIZES:
            yield _read_big_endian(data, at + 7, 2), _read_big_endian(data, at + 5, 2)
            return
        else:
            at += 2 + max(2, _read_big_endian(data, at + 2, 2))


def _read_webp(data: bytes) -> tuple[int, int] | None:
    if len(data) < 30:
        return None
    match data[12:16]:
        case b"VP8X":
            return _read_little_endian(data, 24, 3) + 1, _read_little_endian(data, 27, 3) + 1
        case b"VP8L":
            bits = _read_little_endian(data, 21, 4)
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8 ":
            return _read_little_endian(data, 26, 2) & 0x3FFF, _read_little_endian(data, 28, 2) & 0x3FFF
    return None
