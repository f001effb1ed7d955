"""A text file whose encoding is only a guess, so that what is certain can be changed and nothing else.

In every encoding that a guess can mean, a byte of ASCII either is its character or the second half of another one, and
nobody can say which. So all of them count as characters, which finds every place where a text may stand; and a change
is right only if every encoding that the file may be in still reads the same other characters in the same order.
"""

import re
from collections.abc import Iterator

_RUN = re.compile(rb"[\x00-\x7f]+|[\x80-\xff]+")
_PART = re.compile("([\0-\x7f\udc80-\udcff]+)|[^\0-\x7f\udc80-\udcff]+")
_BEYOND_ASCII = re.compile("[^\0-\x7f]")
_DOUBLE = ("gb18030", "big5hkscs", "cp932", "euc_jp", "cp949")  # in which a byte of ASCII may be half a character


def decode_guess(raw: bytes, name: str) -> str:
    """Bytes beyond ASCII in the encoding ``name`` where they are text by themselves, else as lone surrogates."""
    return "".join(_decode_run(run, name) for run in _RUN.findall(raw))


def encode_guess(text: str, name: str) -> bytes:
    """The way back. Raises UnicodeError for characters that the encoding does not have."""
    return b"".join(
        part[0].encode("ascii", "surrogateescape") if part[1] else part[0].encode(name) for part in _PART.finditer(text)
    )


def keeps_characters(before: bytes, after: bytes) -> bool:
    """Return whether ``after`` has no new characters beyond ASCII, in every encoding that can read ``before``."""
    old, new = _changed_lines(before, after)
    return all(
        _is_part_of(_list_non_ascii(new, name), _list_non_ascii(old, name))
        for name in _DOUBLE
        if _can_decode(before, name)
    )


def _decode_run(run: bytes, name: str) -> str:
    escaped = run.decode("ascii", "surrogateescape")
    if escaped.isascii():
        return escaped
    try:
        text = run.decode(name)
        return text if encode_guess(text, name) == run else escaped
    except UnicodeError:
        return escaped


def _changed_lines(before: bytes, after: bytes) -> tuple[bytes, bytes]:
    """Drop the lines that are the same at both ends; a newline is never half a character."""
    old, new = before.split(b"\n"), after.split(b"\n")
    while old and new and old[-1] == new[-1]:
        old.pop()
        new.pop()
    same = next((at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    return b"\n".join(old[same:]), b"\n".join(new[same:])


def _can_decode(raw: bytes, name: str) -> bool:
    try:
        raw.decode(name)
    except UnicodeError:
        return False
    return True


def _list_non_ascii(raw: bytes, name: str) -> Iterator[str]:
    return (match[0] for match in _BEYOND_ASCII.finditer(raw.decode(name, "surrogateescape")))


def _is_part_of(some: Iterator[str], every: Iterator[str]) -> bool:
    return all(char in every for char in some)  # each is looked for behind the one before it
