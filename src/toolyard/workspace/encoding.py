"""The encoding of a file, and its bytes as text.

A byte-order mark decides; else strict UTF-8; else UTF-8 with a few damaged bytes; else the first of the owner's
``fallbacks`` that decodes everything (gb18030 by default), certain only when no other one may be meant; else a
statistical guess, which is reported as one. Bytes that no text can stand for are shown as ``\\xff``, never dropped and
never replaced.

gb18030 decodes nearly every text in an old encoding of East Asia and many in a Western one, so that it decodes is no
evidence of Chinese. That the characters are those which Chinese texts are made of is: a few hundred make up four fifths
of any text, and they are few among the thousands that the bytes of other encodings turn into. Of a long text only so
much is looked at as holds ``_ENOUGH`` characters.
"""

import codecs
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from toolyard.message import Message
from toolyard.protocol.envelope import Failure, Reason

BINARY_PROBE = 8192  # git's rule: a NUL in the first 8 kB means binary
_BOMS = (  # the longer ones first: UTF-32's begins like UTF-16's
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_WITHOUT_BOM = {"utf-8-sig": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}
_ASCII = bytes(range(128))
_WORTH_GUESSING = [  # of a short text, statistics tell next to nothing: those in use are likelier than all others
    *("cp1252", "cp1250", "cp1251", "koi8_r", "cp1253", "cp1254", "cp1255", "cp1256", "cp866", "tis_620"),
    *("cp932", "euc_jp", "big5", "cp949", "gb18030"),
]
CHINESE = ("gb18030", "gbk", "gb2312")
_ENOUGH = 4096
_MOST_PIECES = 20_000
_FEW = 8  # characters: too few for statistics
_LEAD = 2  # by how many the common characters must be more than all others
_NO_WORDS = re.compile(  # ASCII, punctuation and symbols: what many languages have
    "[\0-\x7f\u00b7\u2010-\u2027\u2190-\u2bff\u3000-\u303f\uff00-\uff65\U0001f000-\U0001faff]+"
)
_BEYOND_ASCII = re.compile(rb"[\x80-\xff][^\n]{0,10000}")  # a newline is never half a character
_EVERYDAY = range(0xB0, 0xD8)  # the first bytes of the 3755 characters in everyday use
_HANZI = frozenset(
    "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年动同工也能下过子说产种面而方后"
    "多定行学法所民得经十三之进着等部度家电力里如水化高自二理起小物现实加量都两体制机当使点从业本去把性好应开它合"
    "还因由其些然前外天政四日那社义事平形相全表间样与关各重新线内数正心反你明看原又么利比或但质气第向道命此变条只"
    "没结解问意建月公无系军很情者最立代想已通并提直题党程展五果料象员革位入常文总次品式活设及管特件长求老头基资边"
    "流路级少图山统接知较将组见计别她手角期根论运农指几九区强放决西被干做必战先回则任取据处队南给色光门即保治北造"
    "百规热领七海口东导器压志世金增争济阶油思术极交受联什认六共权收证改清己美再采转更单风切打白教速花带安场身车例"
    "真务具万每目至达走积示议声报斗完类八离华名确才科张信马节话米整空元况今集温传土许步群广石记需段研界拉林律叫且"
    "究观越织装影算低持音众书布复容儿须际商非验连断深难近千周委素技备半办青省列习响约支般史感劳便团往历市克何除消"
    "构府称太准精值号率族维划选标写存候毛亲快效院查江型眼王按格养易置派层片始却专状育厂京识适属包火住调满县局照参"
    "红细引听该铁价严配测试错误输默码函服端密钥户登录退删编辑译注释网页址链载您请键栈符串择找替换缓停启执索修版详"
    "项库览签述屏幕缩移剪贴粘限未仅另若跳够否略描拒绝警告失败忽尝临夹跟踪脚境依赖模块循环返继承异抛捕获序字典语显"
    "息令读创操软印含态档允检径束源止匹缺域析窗视围范冲排闭添询扩访供锁句预搜终框右仓助言左送菜功远留补旧控储"
)
_HANGUL = frozenset(
    "이다니지을수에습는로를하시가없스자일의정기어파용서음리합사트할인한오은위아터문않있그드제대보만치프름모값부상"
    "으표실해함작패입데바력고형소버여전도나키식경설된중명행업되라들면열블구못세비목성개출록동호류적과테잘변번조령"
    "원화장단내타필체환현추"
)


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
            Message("'{name}' is not a text encoding that Toolyard knows.", name=name[:40]),
            hint=Message("Use a name such as utf-8, gb18030, utf-16-le, shift_jis or latin-1, or leave it out."),
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


def _guess_encoding(sample: bytes) -> Encoding:
    from charset_normalizer import from_bytes  # slow to import and seldom needed

    best = from_bytes(sample[:65536], cp_isolation=_WORTH_GUESSING).best()
    if best is None:
        return Encoding.from_guess("utf-8")
    return Encoding.from_guess(
        "cp1252" if "cp1252" in best.could_be_from_charset else codecs.lookup(best.encoding).name
    )


def is_chinese(raw: bytes, name: str) -> bool:
    """Return whether ``raw``, which can be decoded in ``name``, is certainly Chinese."""
    words = _decode_words(raw, name)
    common = [char for char in words if char in _HANZI]
    if len(set(common)) < _LEAD or 2 * len(common) < len(words) + _LEAD:
        return False
    return sum(char in _HANGUL for char in _decode_words(raw, "cp949")) < len(common)


def may_be_chinese(raw: bytes, name: str) -> bool:
    """Return whether nothing speaks for another guess."""
    words = _decode_words(raw, name)
    if 2 * sum(char in _HANZI for char in words) >= len(words):
        return True
    return len(words) < _FEW and all(char.encode("gb2312", "replace")[0] in _EVERYDAY for char in words)


def _decode_words(raw: bytes, name: str) -> str:
    words = ""
    for piece in islice(_BEYOND_ASCII.finditer(raw), _MOST_PIECES):
        words += _NO_WORDS.sub("", piece[0].decode(name, errors="ignore"))
        if len(words) >= _ENOUGH:
            break
    return words
