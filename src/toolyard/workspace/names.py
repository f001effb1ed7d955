"""File names as text, for any bytes a file system allows.

A name that is valid UTF-8 is itself. Bytes that are not are written ``\\xe9``: readable, valid in every JSON, and
something a model can type back. A file whose name really holds a backslash, ``x`` and two digits wins over the bytes.
"""

import re

_ESCAPED = re.compile(rb"\\x([89a-f][0-9a-f])")


def to_text(name: bytes) -> str:
    return name.decode(errors="backslashreplace")


def readings(name: bytes) -> tuple[bytes, ...]:
    """The names on disk that a written name can stand for, the likeliest first."""
    raw = _ESCAPED.sub(lambda match: bytes.fromhex(match[1].decode()), name)
    return (name,) if raw == name else (name, raw)
