"""Bytes of pictures: recognised by their first bytes, written as data URIs, kept as files."""

import base64
import binascii
import os
import time
from pathlib import Path

from web import Refused

_BEGINNINGS = ((b"\x89PNG\r\n\x1a\n", "png"), (b"\xff\xd8\xff", "jpeg"), (b"GIF8", "gif"), (b"BM", "bmp"))


def kind_of(picture: bytes) -> str:
    """png, jpeg, webp, gif or bmp; anything else is refused."""
    if picture[:4] == b"RIFF" and picture[8:12] == b"WEBP":
        return "webp"
    for beginning, kind in _BEGINNINGS:
        if picture.startswith(beginning):
            return kind
    raise Refused(f"The provider sent no picture (it begins with {picture[:12]!r}): check the model and the address.")


def from_base64(text: str) -> bytes:
    """The bytes of a base64 text, with or without the head of a data URI."""
    try:
        return base64.b64decode(text.partition("base64,")[2] or text, validate=False)
    except (binascii.Error, ValueError):
        raise Refused("The base64 data of the picture are damaged: try again.") from None


def decoded(uri: str) -> tuple[bytes, str]:
    """The bytes and the kind of a data URI."""
    if not uri.startswith("data:image/"):
        raise Refused("image must be data:image/...;base64,...: this plugin reads no addresses.")
    picture = from_base64(uri)
    return picture, kind_of(picture)


def data_uri(picture: bytes) -> str:
    """The picture inside an address."""
    return f"data:image/{kind_of(picture)};base64,{base64.b64encode(picture).decode()}"


def keep(picture: bytes, folder: Path, number: int) -> Path:
    """Writes the picture to a new file that overwrites nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{time.strftime('%Y%m%d_%H%M%S')}_{os.getpid()}_{number}.{kind_of(picture)}"
    file = folder / name
    with file.open("xb") as opened:
        opened.write(picture)
    return file
