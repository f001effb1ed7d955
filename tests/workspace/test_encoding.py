"""Which encoding a file is in: a mark decides, then UTF-8, then the owner's choice, then a guess that says so."""

import codecs
import encodings
import pkgutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolyard.protocol.envelope import ErrorCode, Failure, Reason
from toolyard.workspace.document import decode_guess, encode_guess, keeps_characters
from toolyard.workspace.encoding import BINARY_PROBE, Encoding, detect_encoding, find_encoding, looks_binary

pytestmark = pytest.mark.requirement("read:encoding")

BOMS = {
    "utf-8": codecs.BOM_UTF8,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
    "utf-32-le": codecs.BOM_UTF32_LE,
    "utf-32-be": codecs.BOM_UTF32_BE,
}
CHINESE = "你好，世界。今天天气很好。\n"
PACKED = {"base64_codec", "bz2_codec", "hex_codec", "quopri_codec", "rot_13", "uu_codec", "zlib_codec"}
NO_TEXT = {*PACKED, "raw_unicode_escape", "unicode_escape"}
NO_FILE = {"aliases", "idna", "mbcs", "oem", "punycode", "undefined"}
MODULES = {module.name for module in pkgutil.iter_modules(encodings.__path__) if not module.name.startswith("_")}
TEXT_NAMES = sorted(MODULES - NO_TEXT - NO_FILE)


def detect(raw: bytes, *fallbacks: str, whole: bool = True) -> Encoding:
    return detect_encoding(raw, whole=whole, fallbacks=fallbacks)


@pytest.mark.parametrize("name", BOMS)
def test_a_byte_order_mark_decides(name: str) -> None:
    raw = BOMS[name] + "né\n".encode(name)
    assert detect(raw, "gb18030") == Encoding(name, BOMS[name])
    assert detect(raw[:-1], "gb18030", whole=False) == Encoding(name, BOMS[name])


@pytest.mark.parametrize("name", [name for name in BOMS if name != "utf-8"])
def test_a_marked_file_that_is_damaged_is_not_certain(name: str) -> None:
    assert detect(BOMS[name] + "né".encode(name)[:-1]) == Encoding(name, BOMS[name], certain=False)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"", Encoding("utf-8")),
        (b"plain\n", Encoding("utf-8")),
        (CHINESE.encode(), Encoding("utf-8")),
        ("a \ufffd b".encode(), Encoding("utf-8")),
        (CHINESE.encode("gb18030"), Encoding("gb18030")),
        (CHINESE.encode() * 3 + b"\xff", Encoding("utf-8", certain=False)),
        (CHINESE.encode()[:-2], Encoding("utf-8", certain=False)),
        (b"ok\n\xe4\xb8", Encoding.from_guess("utf-8")),
        (b"caf\xe9", Encoding.from_guess("utf-8")),
    ],
)
def test_utf8_comes_before_the_owners_fallback(raw: bytes, expected: Encoding) -> None:
    assert detect(raw, "gb18030") == expected


def test_a_sample_may_end_inside_a_character() -> None:
    for end in range(len(CHINESE.encode())):
        assert detect(CHINESE.encode()[:end], "gb18030", whole=False) == Encoding("utf-8")
    assert detect(CHINESE.encode("gb18030")[:-2], "gb18030", whole=False) == Encoding("gb18030")


def test_the_fallbacks_are_tried_in_their_order() -> None:
    raw = "こんにちは、世界".encode("shift_jis")
    assert [detect(raw, "shift_jis", "latin-1").name, detect(raw, "latin-1", "shift_jis").name] == [
        "shift_jis",
        "latin-1",
    ]


@pytest.mark.parametrize("unfit", ["utf-16", "utf-32", "idna", "ascii"])
def test_a_fallback_that_cannot_read_the_file_is_passed_over(unfit: str) -> None:
    assert detect("é".encode("latin-1") * 3, unfit, "latin-1") == Encoding("latin-1")


def test_what_nothing_fits_is_a_guess_and_says_so() -> None:
    text = "Съешь же ещё этих мягких французских булок, да выпей чаю.\n" * 5
    guess = detect(text.encode("cp1251"))
    assert not guess.certain
    assert guess.to_utf8(text.encode("cp1251")).decode() == text


@pytest.mark.parametrize(
    "text",
    [
        "# 配置文件\nport = 1\n",
        "变量 = 一\n",
        "你好\n",
        "print('测试 😀')\n",
        "提示：请输入密码。\n",
        "// 鼯鼠、貔貅和饕餮都是这里可以用的名字，请选择其中一个。\n",
    ],
)
def test_a_few_chinese_words_are_evidence_of_gb18030(text: str) -> None:
    assert detect(text.encode("gb18030"), "gb18030") == Encoding("gb18030")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Größe\nfoo\n", "cp1252"),
        ("éfoo = 1\nfoo = 2\n", "cp1252"),
        ("naïve résumés, différent\n", "cp1252"),
        ("設定\nfoo\n", "cp932"),
        ("これはテストの設定ファイルです。\n", "cp932"),
        ("設定ファイル\nfoo\n", "euc_jp"),
        ("설정 파일\nfoo\n", "cp949"),
        ("실행할 파일\n", "cp949"),  # which is four common characters in Chinese
        ("設定檔案\nfoo\n", "big5"),
        ("привет\n", "koi8-r"),
        ("锁\n", "gb18030"),
        ("哪哪哪哪\n", "gb18030"),  # a line of boxes on an old terminal
    ],
)
def test_that_gb18030_decodes_another_encoding_is_no_evidence(text: str, name: str) -> None:
    raw = text.encode(name)
    raw.decode("gb18030")
    assert detect(raw, "gb18030").guessed


def test_an_encoding_that_the_owner_chose_is_certain_unless_another_of_them_has_evidence() -> None:
    japanese, chinese = "設定ファイル".encode("cp932"), "请输入配置".encode("gb18030")
    assert detect(japanese, "cp932", "gb18030") == Encoding("cp932")
    assert detect(chinese, "latin-1") == Encoding("latin-1")
    assert detect(chinese, "latin-1", "gb18030") == Encoding.from_guess("latin-1")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Größe = 1\n", "cp1252"),
        ("これはテストの設定です。\n", "cp932"),
        ("설정 파일입니다. 여기에 값을 적으세요\n", "cp949"),
    ],
)
def test_what_is_not_chinese_is_guessed_among_the_encodings_in_use(text: str, name: str) -> None:
    raw = text.encode(name)
    assert detect(raw, "gb18030").to_utf8(raw).decode() == text


@given(raw=st.binary(max_size=60), name=st.sampled_from(["gb18030", "cp1252", "cp932", "utf-8"]))
def test_a_guess_loses_no_byte_and_hides_no_ascii(raw: bytes, name: str) -> None:
    text = decode_guess(raw, name)
    assert encode_guess(text, name) == raw
    assert [char for char in text if char.isascii()] == [chr(byte) for byte in raw if byte < 128]
    assert keeps_characters(raw, raw)


@given(
    raw=st.binary(max_size=60), whole=st.booleans(), fallbacks=st.sampled_from([("gb18030",), ("utf-16", "shift_jis")])
)
def test_any_bytes_have_an_encoding_that_shows_them(raw: bytes, whole: bool, fallbacks: tuple[str, ...]) -> None:
    encoding = detect_encoding(raw, whole=whole, fallbacks=fallbacks)
    shown = encoding.to_utf8(raw[len(encoding.bom) :]).decode()
    if encoding.certain and whole:
        assert shown.encode(encoding.name) == raw[len(encoding.bom) :]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("UTF-8", "utf-8"),
        ("utf_8_sig", "utf-8"),
        ("GBK", "gbk"),
        ("Latin-1", "iso8859-1"),
        ("utf16", "utf-16-le"),
        ("utf-16-be", "utf-16-be"),
        ("UTF-32", "utf-32-le"),
        ("ebcdic-cp-us", "cp037"),
    ],
)
def test_a_named_encoding_is_known_by_any_of_its_names(name: str, expected: str) -> None:
    assert find_encoding(name, b"", whole=True) == Encoding(expected)


@pytest.mark.parametrize(
    ("name", "mark", "expected"),
    [("utf-16", "utf-16-be", "utf-16-be"), ("utf-16-le", "utf-16-be", "utf-16-be"), ("utf8", "utf-8", "utf-8")],
)
def test_a_mark_makes_a_named_encoding_exact_and_is_no_text(name: str, mark: str, expected: str) -> None:
    assert find_encoding(name, BOMS[mark] + "a".encode(expected), whole=True) == Encoding(expected, BOMS[mark])


def test_a_mark_of_another_encoding_is_text() -> None:
    assert find_encoding("latin-1", codecs.BOM_UTF8, whole=True) == Encoding("iso8859-1")


def test_a_named_encoding_that_does_not_fit_is_not_certain() -> None:
    assert find_encoding("ascii", "né".encode(), whole=True) == Encoding("ascii", certain=False)


@pytest.mark.requirement("read:unsupported-encoding")
@pytest.mark.parametrize(
    "name",
    [
        "nonsense",
        "hex",
        "rot13",
        "idna",
        "punycode",
        "undefined",
        "aliases",
        "a.b",
        "../x",
        "utf-8\0",
        " ",
        *sorted(NO_TEXT),
    ],
)
def test_what_is_no_encoding_of_text_is_refused(name: str) -> None:
    with pytest.raises(Failure) as failure:
        find_encoding(name, b"", whole=True)
    assert (failure.value.code, failure.value.reason) == (ErrorCode.INVALID_PARAM, Reason.UNSUPPORTED_ENCODING)
    assert failure.value.hint


@pytest.mark.requirement("read:unsupported-encoding")
def test_a_refused_name_is_not_repeated_whole() -> None:
    with pytest.raises(Failure) as failure:
        find_encoding("x" * 10_000, b"", whole=True)
    assert len(failure.value.message) < 100


@given(raw=st.binary(max_size=40), name=st.sampled_from(TEXT_NAMES))
def test_a_named_encoding_of_text_shows_any_bytes(raw: bytes, name: str) -> None:
    encoding = find_encoding(name, raw, whole=True)
    shown = encoding.to_utf8(raw[len(encoding.bom) :]).decode()
    assert bool(shown) or len(raw) <= 4, "only a mark or an escape sequence shows nothing"


def test_bytes_that_are_no_text_are_shown_and_never_dropped() -> None:
    assert Encoding("utf-8").to_utf8(b"a\xffb\xe4\xb8") == rb"a\xffb\xe4\xb8"
    assert Encoding("utf-7").to_utf8(b"+2AA-") == rb"\ud800"


@pytest.mark.parametrize(
    ("name", "wide"),
    [
        ("utf-8", False),
        ("gb18030", False),
        ("shift_jis", False),
        ("utf-16-le", True),
        ("utf-32-be", True),
        ("cp037", True),
    ],
)
def test_wide_is_where_a_newline_is_not_its_byte_in_ascii(name: str, wide: bool) -> None:
    assert Encoding(name).is_wide is wide


@pytest.mark.requirement("read:binary")
@pytest.mark.parametrize(
    ("head", "binary"),
    [
        (b"", False),
        (b"text", False),
        (b"\0", True),
        (b"text\0", True),
        (b"x" * (BINARY_PROBE - 1) + b"\0", True),
        (b"x" * BINARY_PROBE + b"\0", False),
        (codecs.BOM_UTF16_LE + b"a\0", False),
        (codecs.BOM_UTF32_BE + b"\0\0\0a", False),
    ],
)
def test_a_nul_near_the_beginning_is_binary_unless_a_mark_explains_it(head: bytes, binary: bool) -> None:
    assert looks_binary(head) is binary
