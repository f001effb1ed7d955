"""File names as text, for any bytes a file system allows.

A name that is valid UTF-8 is itself. Bytes that are not are written ``\\xe9``: readable, valid in every JSON, and
something a model can type back. Two names are the same when they read the same in Unicode's composed form (NFC), since
nobody sees whether an ``é`` is one character or two; a name that is there exactly as written always wins.
"""

import unicodedata
from collections.abc import Iterable


def to_text(name: bytes) -> str:
    return name.decode(errors="backslashreplace")


def find_same_name(written: bytes, names: Iterable[bytes]) -> bytes | None:
    """The first of ``names`` that reads like ``written``."""
    if written.isascii() and b"\\x" not in written:
        return None  # such a name can only stand for itself
    composed = _to_composed(written)
    return next((name for name in names if _to_composed(name) == composed), None)


def _to_composed(name: bytes) -> str:
    return unicodedata.normalize("NFC", to_text(name))


def to_printable(text: str) -> str:
    """Text that was decoded with lone surrogates for bytes that are no text, as every JSON can carry it."""
    return text if text.isascii() else to_text(text.encode(errors="surrogateescape"))
