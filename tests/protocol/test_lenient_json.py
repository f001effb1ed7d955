"""The tolerant reader: what models write instead of JSON, read as it was meant."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolyard.protocol.json import MAX_DEPTH, Json
from toolyard.protocol.replies.escapes import decode_string, remove_cut_escape
from toolyard.protocol.replies.lenient_json import Reader, Reading, TooDeep
from toolyard.protocol.replies.reply_values import Repair

pytestmark = pytest.mark.requirement("reply:lenient", "reply:repaired")


def read(text: str) -> Reading:
    return Reader(text).read(text.index("{"))


@pytest.mark.parametrize(
    ("text", "value", "repairs"),
    [
        ('{"a": 1, // one\n /* two */ "b": 2 # three\n}', {"a": 1, "b": 2}, [Repair.COMMENTS]),
        ('{"a": [1, 2,], }', {"a": [1, 2]}, [Repair.TRAILING_COMMA]),
        ('{"a": 1 "b": [1 2]}', {"a": 1, "b": ["1 2"]}, [Repair.MISSING_COMMA, Repair.UNQUOTED]),
        ('{"a": "x"\n"b": "y"}', {"a": "x", "b": "y"}, [Repair.MISSING_COMMA]),
        ('{"a": 1,, "b": 2}', {"a": 1, "b": 2}, [Repair.EXTRA_COMMA]),
        ('{"b" {"a" "x"}}', {"b": {"a": "x"}}, [Repair.MISSING_COLON]),
        ("{'a': 'it\\'s', 'b': 'it's'}", {"a": "it's", "b": "it's"}, [Repair.QUOTES, Repair.ESCAPES]),
        ("{“a”: “x”, ‘b’: ‘y’}", {"a": "x", "b": "y"}, [Repair.QUOTES]),
        ('{"a"："x"，"b"：1}', {"a": "x", "b": 1}, [Repair.FULL_WIDTH]),
        ("{a: hello world, b: True}", {"a": "hello world", "b": True}, [Repair.UNQUOTED, Repair.LITERALS]),
        ('{"a": None, "b": NaN, "c": undefined}', {"a": None, "b": None, "c": None}, [Repair.LITERALS]),
        ('{"a": "one\ntwo\tthree"}', {"a": "one\ntwo\tthree"}, [Repair.RAW_CONTROL]),
        ('{"a": "he said "yes", "no" and left"}', {"a": 'he said "yes", "no" and left'}, [Repair.INNER_QUOTES]),
        ('{"a": "print("hi")", "b": 1}', {"a": 'print("hi")', "b": 1}, [Repair.INNER_QUOTES]),
        ('{"a": "json is {"k": "v"} ok"}', {"a": 'json is {"k": "v"} ok'}, [Repair.INNER_QUOTES]),
        ('{"a": "x, "b": "y"}', {"a": "x", "b": "y"}, [Repair.MISSING_QUOTE, Repair.MISSING_COMMA]),
        ('{"a": "x}', {"a": "x"}, [Repair.MISSING_QUOTE]),
        ('{"a": ["x]}', {"a": ["x"]}, [Repair.MISSING_QUOTE]),
        ('{"a": {"b": "f() {x} }}', {"a": {"b": "f() {x}"}}, [Repair.MISSING_QUOTE]),
        ('{"a": "f() {x}', {"a": "f() {x}"}, [Repair.TRUNCATED]),
        ('{"a": "x" oops, "b": 1 oops}', {"a": "x", "b": "1 oops"}, [Repair.STRAY_TEXT]),
        ('{"a:"x", "b: 1}', {"a": "x", "b": 1}, [Repair.MISSING_QUOTE]),
        ('{a":"x",b":"y"}', {"a": "x", "b": "y"}, [Repair.UNQUOTED]),
        ('{"a": x, y.", "b": z"}', {"a": "x, y.", "b": "z"}, [Repair.MISSING_QUOTE]),
        ('{""a"": ""x"", "b": \'\'y\'\'}', {"a": "x", "b": "y"}, [Repair.QUOTES]),
        ("{'a': '''x'y''', 'b': u'y'}", {"a": "x'y", "b": "y"}, [Repair.QUOTES]),
        ('{"a": [1], [2], "b": 3}', {"a": [1, 2], "b": 3}, [Repair.MISMATCHED_BRACKET]),
        ('{"a": [{"b": 1, {"b": 2}]}', {"a": [{"b": 1}, {"b": 2}]}, [Repair.MISMATCHED_BRACKET]),
        ('{"a": [{"b": 1}}, {"b": 2}]}', {"a": [{"b": 1}, {"b": 2}]}, [Repair.MISMATCHED_BRACKET]),
        ('{"a": ["b": 1, "c": 2]}', {"a": [{"b": 1, "c": 2}]}, [Repair.MISSING_BRACE]),
        (
            '{"a": .5, "b": 1., "c": +1, "d": 1_000, "e": 1e}',
            {"a": 0.5, "b": 1, "c": 1, "d": 1000, "e": 1},
            [Repair.LITERALS],
        ),
        ('{"a" 1, "b" true}', {"a": 1, "b": True}, [Repair.MISSING_COLON]),
        ('{"a": "x"// note\n}', {"a": "x"}, [Repair.COMMENTS]),
        ('{"a": 1 // note, "b": 2}', {"a": 1, "b": 2}, [Repair.COMMENTS]),
        ('{"a": "x"; "b": 2}', {"a": "x", "b": 2}, [Repair.MISSING_COMMA]),
        ('{"a": ObjectId("7"), "b": Long(7)}', {"a": "7", "b": 7}, [Repair.UNQUOTED]),
        ('{"a": "x" + "y"}', {"a": "xy"}, [Repair.CONCATENATION]),
        ('{"a": """x "y" z"""}', {"a": 'x "y" z'}, [Repair.QUOTES]),
        ('{"a": [1, 2}, "b": 3}', {"a": [1, 2], "b": 3}, [Repair.MISMATCHED_BRACKET]),
        ('{"a": 1}, "b": 2}', {"a": 1, "b": 2}, [Repair.MISMATCHED_BRACKET]),
        ('{"a": [1, ...], ...}', {"a": [1]}, [Repair.STRAY_TEXT, Repair.TRAILING_COMMA]),
        ('{"a": "x", "b": [1, {"c": "d', {"a": "x", "b": [1, {"c": "d"}]}, [Repair.TRUNCATED]),
        ('{"a": "x", "b": tr', {"a": "x", "b": True}, [Repair.LITERALS, Repair.TRUNCATED]),
        ('{"a": "x", "b', {"a": "x"}, [Repair.TRUNCATED]),
    ],
)
def test_each_fault_is_mended_and_named(text: str, value: dict[str, Json], repairs: list[Repair]) -> None:
    reading = read(text)
    assert reading.value == value
    assert set(repairs) <= set(reading.repairs)
    assert reading.complete is (Repair.TRUNCATED not in repairs)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (r"\frac{1}{2} \times \nabla \beta \theta \rho \neq \right)", None),
        (r"\alpha \( \[ \{ \, \_ \d+ C:\Users \usepackage \xi", None),
        (r"$\nu$ and $x \to 0$, \tan(x), \text{if}", None),
        (r"\\frac \\nabla", r"\frac \nabla"),
        (r"one\nnext\ttab\r\nto \"you\" \/ \u00e9", 'one\nnext\ttab\r\nto "you" / é'),
        (r"a\nu = 1\nto be\nnot", "a\nu = 1\nto be\nnot"),
        (r"\ud83d\ude00 \x41 \u{1F600} it\'s", "😀 A 😀 it's"),
        (r"\ud83d \ude00", "\ufffd \ufffd"),
        ("a\\\nb", "ab"),
    ],
)
def test_backslashes_mean_what_their_writer_meant(written: str, meant: str | None) -> None:
    assert decode_string(written, {}) == (written if meant is None else meant)


@pytest.mark.parametrize("end", ["\\", "\\u", "\\u00e", "\\ud83d", "\\ud83d\\", "\\uD83D\\ude0"])
def test_half_an_escape_at_a_cut_end_is_dropped(end: str) -> None:
    assert remove_cut_escape("a\\\\" + end) == "a\\\\"
    assert remove_cut_escape("\\ud83d\\ude00 \\u00e9") == "\\ud83d\\ude00 \\u00e9"


def test_many_words_without_quotes_on_one_line_are_read_in_one_pass() -> None:
    """Fifty thousand of them: anything quadratic would take minutes."""
    assert read("{" + '"a": x y\r' * 50_000 + "}").value == {"a": "x y"}


def test_depth_is_bounded_without_recursion() -> None:
    assert read('{"a":' + "[" * (MAX_DEPTH - 1)).complete is False
    with pytest.raises(TooDeep) as raised:
        read('{"a":' + "[" * 100_000)
    assert raised.value.position == len('{"a":') + MAX_DEPTH - 1


scalars = st.none() | st.booleans() | st.integers(-(10**15), 10**15) | st.text(st.sampled_from("ab \"\\{}[]:,'/中\n"))
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text("abc"), inner), max_leaves=12)
plain = st.text(st.sampled_from("ab {}[]:/中\n\\"))
plain_values = st.recursive(
    st.none() | st.booleans() | st.integers() | plain,
    lambda inner: st.lists(inner) | st.dictionaries(st.text("abc"), inner),
    max_leaves=12,
)


@given(st.dictionaries(st.text("abc"), plain_values), st.sampled_from([None, 1]))
def test_json_is_read_as_json(value: dict[str, Json], indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    reading = Reader(text).read(0)
    assert (reading.value, reading.end, reading.complete) == (value, len(text), True)


@given(st.dictionaries(st.text("abc"), values), st.data())
def test_any_prefix_of_json_is_read(value: dict[str, Json], data: st.DataObject) -> None:
    text = json.dumps(value)
    cut = data.draw(st.integers(1, len(text)))
    assert Reader(text[:cut]).read(0).end <= cut


@given(st.text(st.sampled_from("ab1 \"'“”`\\{}[]:：,，/*#.+-\n\ttn")))
def test_any_text_is_read(text: str) -> None:
    reading = Reader("{" + text).read(0)
    assert json.loads(json.dumps(reading.value)) == reading.value
