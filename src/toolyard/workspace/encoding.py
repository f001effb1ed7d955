"""Which encoding a file is written in, and what its bytes say.

A byte-order mark decides; else strict UTF-8; else UTF-8 with a few damaged bytes; else the first of the owner's
``fallbacks`` that decodes everything (gb18030 by default); else a statistical guess, which is reported as one. Bytes
that no text can stand for are shown as ``\\xff``, never dropped and never replaced.
"""

import codecs
from collections.abc import Sequence
from dataclasses import dataclass

from toolyard.protocol.failure import Failure, Reason

BINARY_PROBE = 8192  # git's rule: a NUL in the first 8 kB means binary
_BOMS = (  # the longer ones first: UTF-32's begins like UTF-16's
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_WITHOUT_BOM = {"utf-8-sig": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}


@dataclass(frozen=True, slots=True)
class Encoding:
    name: str
    bom: bytes = b""
    certain: bool = True  # False: a guess, or some bytes are not text in this encoding

    @property
    def wide(self) -> bool:
        """Whether a newline is anything else than its one byte in ASCII."""
        return "\n".encode(self.name) != b"\n"

    def utf8(self, raw: bytes) -> bytes:
        """``raw`` in UTF-8. Some codecs give lone surrogates, which no UTF-8 can carry: they are shown as well."""
        return raw.decode(self.name, errors="backslashreplace").encode(errors="backslashreplace")


def looks_binary(head: bytes) -> bool:
    return b"\0" in head[:BINARY_PROBE] and not any(head.startswith(bom) for bom, _ in _BOMS)


def named(name: str, sample: bytes, *, whole: bool) -> Encoding:
    """The encoding a caller asked for."""
    try:
        info = codecs.lookup(name)
        Encoding(info.name).utf8(b"a")  # codecs such as hex or idna are no encodings of text files and fail here
    except (LookupError, ValueError, TypeError):
        raise Failure(
            Reason.UNSUPPORTED_ENCODING,
            f"'{name[:40]}' is not a text encoding that Toolyard knows.",
            hint="Use a name such as utf-8, gb18030, utf-16-le, shift_jis or latin-1, or leave it out.",
        ) from None
    bom, exact = next(
        ((bom, exact) for bom, exact in _BOMS if sample.startswith(bom) and info.name.startswith(exact[:6])),
        (b"", _WITHOUT_BOM.get(info.name, info.name)),
    )
    return _marked(exact, bom, sample, whole=whole)


def detect(sample: bytes, *, whole: bool, fallbacks: Sequence[str]) -> Encoding:
    """The encoding of a file that begins with ``sample``, or is it when ``whole``."""
    for bom, name in _BOMS:
        if sample.startswith(bom):
            return _marked(name, bom, sample, whole=whole)
    if sample.isascii() or decodes(sample, "utf-8", whole=whole):
        return Encoding("utf-8")
    if decodes(sample, "utf-8", whole=False) or _mostly_utf8(sample):
        return Encoding("utf-8", certain=False)
    for name in fallbacks:
        if decodes(sample, name, whole=whole):
            return Encoding(name)
    return _guess(sample)


def decodes(sample: bytes, name: str, *, whole: bool) -> bool:
    """Whether a text that begins with ``sample``, or is it when ``whole``, can be in this encoding."""
    try:
        codecs.getincrementaldecoder(name)("strict").decode(sample, final=whole)
    except UnicodeError:
        return False
    return True


def _marked(name: str, bom: bytes, sample: bytes, *, whole: bool) -> Encoding:
    return Encoding(name, bom, certain=decodes(sample[len(bom) :], name, whole=whole))


def _mostly_utf8(sample: bytes) -> bool:
    """Nine of ten bytes beyond ASCII belong to valid UTF-8: damage, not another encoding."""
    valid = sample.decode(errors="ignore").encode()
    beyond = len(sample.translate(None, _ASCII))
    return (len(sample) - len(valid)) * 10 <= beyond


_ASCII = bytes(range(128))


def _guess(sample: bytes) -> Encoding:
    from charset_normalizer import from_bytes  # slow to import and seldom needed

    best = from_bytes(sample[:65536]).best()
    guess = Encoding(codecs.lookup(best.encoding).name, certain=False) if best else None
    return guess if guess and not guess.wide else Encoding("utf-8", certain=False)
