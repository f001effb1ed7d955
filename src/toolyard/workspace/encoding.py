"""The encoding of a file, and its bytes as text.

A byte-order mark decides; else strict UTF-8; else UTF-8 with a few damaged bytes; else the first of the owner's
``fallbacks`` that decodes everything (gb18030 by default), certain only when no other one may be meant; else a
statistical guess, which is reported as one. Bytes that no text can stand for are shown as ``\\xff``, never dropped and
never replaced.
"""

import codecs
from collections.abc import Sequence
from dataclasses import dataclass

from toolyard.message import Message
from toolyard.protocol.failure import Failure, Reason
from toolyard.workspace.encoding_evidence import CHINESE, is_chinese, may_be_chinese

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
    guessed: bool = False  # what is beyond ASCII may just as well be in another encoding

    @classmethod
    def from_guess(cls, name: str) -> "Encoding":
        return cls(name, certain=False, guessed=True)

    @property
    def is_wide(self) -> bool:
        """Return whether a newline is anything else than its one byte in ASCII."""
        return "\n".encode(self.name) != b"\n"

    def to_utf8(self, raw: bytes) -> bytes:
        """``raw`` in UTF-8. Some codecs give lone surrogates, which no UTF-8 can carry: they are shown as well."""
        return raw.decode(self.name, errors="backslashreplace").encode(errors="backslashreplace")


def looks_binary(head: bytes) -> bool:
    return b"\0" in head[:BINARY_PROBE] and not any(head.startswith(bom) for bom, _ in _BOMS)


def find_encoding(name: str, sample: bytes, *, whole: bool) -> Encoding:
    """The encoding a caller asked for."""
    try:
        info = codecs.lookup(name)
        Encoding(info.name).to_utf8(b"a")  # codecs such as hex or idna are no encodings of text files and fail here
        if info.name.endswith("escape"):  # a notation of Python, which writes a newline as two letters
            raise LookupError
    except (LookupError, ValueError, TypeError):
        raise Failure(
            Reason.UNSUPPORTED_ENCODING,
            Message(
                "file.unknown_encoding",
                "'{name}' is not a text encoding that Toolyard knows.",
                name=name[:40],
            ),
            hint=Message(
                "hint.encoding_names",
                "Use a name such as utf-8, gb18030, utf-16-le, shift_jis or latin-1, or leave it out.",
            ),
        ) from None
    bom, exact = next(
        ((bom, exact) for bom, exact in _BOMS if sample.startswith(bom) and info.name.startswith(exact[:6])),
        (b"", _WITHOUT_BOM.get(info.name, info.name)),
    )
    return _with_bom(exact, bom, sample, whole=whole)


def detect_encoding(sample: bytes, *, whole: bool, fallbacks: Sequence[str]) -> Encoding:
    """The encoding of a file that begins with ``sample``, or is it when ``whole``."""
    for bom, name in _BOMS:
        if sample.startswith(bom):
            return _with_bom(name, bom, sample, whole=whole)
    if sample.isascii() or can_decode(sample, "utf-8", whole=whole):
        return Encoding("utf-8")
    if _is_mostly_utf8(sample):
        return Encoding("utf-8", certain=False)
    if can_decode(sample, "utf-8", whole=False):
        return Encoding.from_guess("utf-8")  # a character is cut off at the end, or it is one in another encoding
    return _choose_fallback(
        sample, [name for name in fallbacks if can_decode(sample, name, whole=whole)]
    ) or _guess_encoding(sample)


def can_decode(sample: bytes, name: str, *, whole: bool) -> bool:
    """Return whether a text that begins with ``sample``, or is it when ``whole``, can be in this encoding."""
    try:
        codecs.getincrementaldecoder(name)("strict").decode(sample, final=whole)
    except UnicodeError:
        return False
    return True


def _with_bom(name: str, bom: bytes, sample: bytes, *, whole: bool) -> Encoding:
    return Encoding(name, bom, certain=can_decode(sample[len(bom) :], name, whole=whole))


def _is_mostly_utf8(sample: bytes) -> bool:
    """Nine of ten bytes beyond ASCII belong to valid UTF-8: damage, not another encoding."""
    valid = sample.decode(errors="ignore").encode()
    beyond = len(sample.translate(None, _ASCII))
    return (len(sample) - len(valid)) * 10 <= beyond


_ASCII = bytes(range(128))


def _choose_fallback(sample: bytes, fitting: Sequence[str]) -> Encoding | None:
    """The first of the encodings that fit; None when that would be the worse guess."""
    if not fitting:
        return None
    first = fitting[0]
    chinese = [name for name in fitting if codecs.lookup(name).name in CHINESE]
    evident = any(is_chinese(sample, name) for name in chinese)
    if evident == (first in chinese):  # one that is not Chinese is there only because the owner chose it
        return Encoding(first)
    return Encoding.from_guess(first) if evident or may_be_chinese(sample, first) else None


_WORTH_GUESSING = [  # of a short text, statistics tell next to nothing: those in use are likelier than all others
    *("cp1252", "cp1250", "cp1251", "koi8_r", "cp1253", "cp1254", "cp1255", "cp1256", "cp866", "tis_620"),
    *("cp932", "euc_jp", "big5", "cp949", "gb18030"),
]


def _guess_encoding(sample: bytes) -> Encoding:
    from charset_normalizer import from_bytes  # slow to import and seldom needed

    best = from_bytes(sample[:65536], cp_isolation=_WORTH_GUESSING).best()
    if best is None:
        return Encoding.from_guess("utf-8")
    return Encoding.from_guess(
        "cp1252" if "cp1252" in best.could_be_from_charset else codecs.lookup(best.encoding).name
    )
