"""Finding a plugin's answer in whatever it printed."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolyard.protocol.json import Json, JsonObject
from toolyard.protocol.plugin_answers.json_scan import JsonScan
from toolyard.protocol.plugin_answers.plugin_output import NOISE_KEPT, Output, OutputDecoder, holds_answer

OK = b'{"status": "success"}'
MIB = 2**20


def _decode(stdout: bytes, chunk: int = 0) -> Output:
    """In one piece, or by chunks with a look for the receipt after each."""
    decoder = OutputDecoder()
    if not chunk:
        decoder.feed(stdout)
    for at in range(0, len(stdout) if chunk else 0, chunk or 1):
        decoder.feed(stdout[at : at + chunk])
        decoder.receipt()
    return decoder.finish()


def _answers(stdout: bytes) -> list[object]:
    """First and last object, read in every way, which must all agree."""
    outputs = [_decode(stdout, chunk) for chunk in (0, 1, 7, 4096)]
    assert all(output == outputs[0] for output in outputs)
    return [printed.value if printed else None for printed in (outputs[0].first, outputs[0].last)]


@pytest.mark.requirement("r:R20", "r:R21", "plugin:stdout")
@pytest.mark.parametrize(
    "stdout",
    [
        OK,
        b"\xef\xbb\xbf" + OK,
        b"\r\n  " + OK + b"\r\n",
        b'{\n  "status":\n\t"success"\n}\n',
        b"loading {not json\n" + OK,
        b"dict: {'a': 1}\n" + OK + b"\nbye {",
        b"{" + OK,
        b"{{{{ " + OK + b" }}}}",
        b'{"unterminated: ' + OK,
        b'{"key": "unterminated ' + OK,
        b'{"cut": "in a string\n' + OK,
        b'{"cut": [1, 2,\n' + OK,
        b'{"cut":\n' + OK + b"\nTraceback",
        b'{"cut":\n' + OK,
        b'{"level": "info"}\n' + OK + b'\n{"level": "debug", "status": 200}',
        b'{"python": None}' + OK,
        b"[" + OK + b"]",
        b'the word "{" is a brace ' + OK,
        b"\x00\xff{\xfe}" + OK,
    ],
)
def test_the_answer_is_found_wherever_it_stands(stdout: bytes) -> None:
    assert _answers(stdout) == [{"status": "success"}, {"status": "success"}]


@pytest.mark.requirement("r:R19", "plugin:stdout")
@pytest.mark.parametrize(
    "stdout",
    [
        b"",
        b"plain text",
        b'{"status": "success"',
        b'{"status": "success", "result": {"status": "success"}',
        b'{"status": "success", "result": [{"status": "success"}, Traceback (most recent call last):',
        b'{"status": "success", "result": "half',
        b'{"state": "success"}',
        b'{"success": "true", "data": 1}',
        b'{"error": ""}',
        b'{"success": true, "data": 1} and more',
        b'log line\n{"success": true, "data": 1}',
        b'{"success": true}\n{"success": true}',
        b'{"error": "a"}{"error": "b"}',
        b'"{\\"status\\": \\"success\\"}"',
        b'[{"status"]: "success"}',
        b'{"status": "success", }',
        b'{"status": "success", "n": 01}',
        b'{"status": "success", "n": "\\x"}',
    ],
)
def test_what_is_not_a_whole_object_with_a_status_is_no_answer(stdout: bytes) -> None:
    assert _answers(stdout) == [None, None]


SUCCESS, ERROR = {"status": "success"}, {"status": "error"}


@pytest.mark.requirement("plugin:older-forms")
@pytest.mark.parametrize(
    ("stdout", "value"),
    [
        (b'{"success": true, "data": {"a": 1}}\n', {**SUCCESS, "result": {"a": 1}}),
        (b'\xef\xbb\xbf {"success": true, "data": "done"}', {**SUCCESS, "result": "done"}),
        (b'{"success": true, "result": 1, "data": 2}', {**SUCCESS, "result": 1, "data": 2}),
        (b'{"success": true, "message": "m"}', {**SUCCESS, "message": "m"}),
        (
            b'{"success": true, "data": {"message": "m", "_specialAction": "act", "payload": {}}}',
            {**SUCCESS, "result": {"message": "m"}, "_specialAction": "act", "payload": {}},
        ),
        (b'{"success": false, "error": "Unknown action: X"}', {**ERROR, "error": "Unknown action: X"}),
        (b'{"success": false, "data": 1}', {**ERROR, "data": 1}),
        (b'{"error": "Error: boom"}', {**ERROR, "error": "Error: boom"}),
        (b'{"error": {"message": "boom"}, "code": 5}', {**ERROR, "error": {"message": "boom"}, "code": 5}),
        (b'{"status": "ok", "result": 1}', {**SUCCESS, "result": 1}),
        (b'a log line\n{"status": "fail", "error": "no"} bye', {**ERROR, "error": "no"}),
        (b'{"status": "failed", "success": true}', {**ERROR, "success": True}),
    ],
)
def test_an_older_form_is_read_as_the_status_it_means_with_a_warning(stdout: bytes, value: JsonObject) -> None:
    assert _answers(stdout) == [value, value]
    output = _decode(stdout)
    assert output.last
    assert output.last.is_answer
    assert len(output.last.notes) == 1


@pytest.mark.requirement("plugin:older-forms")
@pytest.mark.parametrize("status", ['"done"', '["success"]', "200", "null"])
def test_any_other_status_is_kept_for_its_word_to_be_named(status: str) -> None:
    output = _decode(b'{"n": 1}\n{"status": %s}' % status.encode())
    assert output.last
    assert (output.last.value, output.last.notes) == ({"status": json.loads(status)}, ())
    assert not output.last.is_answer


@pytest.mark.requirement("plugin:older-forms", "plugin:stdout")
@pytest.mark.parametrize("other", [b'{"status": "ok"}', b'{"status": "working"}', b'{"success": true}'])
def test_beside_a_real_status_every_other_one_is_noise(other: bytes) -> None:
    for stdout in (other + b"\n" + OK, OK + b"\n" + other):
        assert _answers(stdout) == [{"status": "success"}, {"status": "success"}]
        assert other.decode() in _decode(stdout).noise


@pytest.mark.requirement("plugin:answered")
@pytest.mark.parametrize(
    ("stdout", "holds"),
    [
        (b"", False),
        (b"no brace", False),
        (OK[:-1], False),
        (OK, True),
        (b"noise {" + OK, True),
        (b'{"success": true}', True),
        (b'{"status": "ok"}', True),
        (b'{"status": "working"}', False),
        (b"{}", False),
    ],
)
def test_what_was_printed_so_far_is_an_answer_or_not(stdout: bytes, holds: bool) -> None:
    assert holds_answer(stdout) is holds


@pytest.mark.requirement("r:R22")
def test_the_first_and_the_last_object_with_a_status_are_told_apart() -> None:
    stdout = b'x {"status": "partial", "n": 1} {"n": 2}\n{"status": "error", "n": 3}{"status": "success", "n": 4}'
    assert _answers(stdout) == [{"status": "partial", "n": 1}, {"status": "success", "n": 4}]
    output = _decode(stdout)
    assert output.count == 3
    assert output.last
    assert stdout[output.last.start : output.last.end] == b'{"status": "success", "n": 4}'


@pytest.mark.requirement("plugin:stdout")
@pytest.mark.parametrize(
    "receipt",
    [
        b'{"status": "success", "result": "if (x) {y} else } {{VCP_ASYNC_RESULT::A::1}} z"}',
        b'{\r\n  "status": "success",\r\n  "result": {\r\n    "a": [\r\n      {}\r\n    ]\r\n  }\r\n}',
    ],
)
def test_the_receipt_is_known_when_its_last_brace_arrives_and_not_before(receipt: bytes) -> None:
    decoder = OutputDecoder()
    decoder.feed(b"noise {\n" + receipt[:-1])
    assert decoder.receipt() is None
    decoder.feed(b"}")
    printed = decoder.receipt()
    assert printed
    assert printed.value == json.loads(receipt)
    decoder.feed(b' {"status": "error"}')
    assert decoder.receipt() is printed


@pytest.mark.requirement("r:R21")
def test_nan_long_numbers_equal_keys_and_halves_of_characters_are_read_kindly() -> None:
    numbers = rb'"a": [NaN, Infinity], "n": 123456789012345678901234567890, "k": 1, "k": 2'
    stdout = rb'{"status": "success", ' + numbers + rb', "h": "\ud83d", "w": "\ud83d\ude00", "b": "\\ud83d"}'
    output = _decode(stdout)
    assert output.last
    value = output.last.value
    assert value["a"] == [None, None]
    assert value["n"] == 123456789012345678901234567890
    assert (value["k"], value["h"], value["w"], value["b"]) == (2, "\ufffd", "\U0001f600", "\\ud83d")
    assert output.last.notes == (
        "NaN is not JSON; it was read as null",
        "Infinity is not JSON; it was read as null",
    )


@pytest.mark.requirement("r:R18")
def test_invalid_utf8_is_replaced_and_its_offset_told() -> None:
    output = _decode(b'log\n{"status": "success", "r": "\xff\xfe"}')
    assert output.last
    assert (output.last.value["r"], output.last.bad_utf8_at) == ("\ufffd\ufffd", 32)


@pytest.mark.requirement("r:R21")
@pytest.mark.parametrize("opening", [b'{"status":"success","a":', b'{"status":"success","a":['])
@pytest.mark.parametrize("levels", [250, 100_000])
def test_an_object_nested_too_deep_is_not_read(opening: bytes, levels: int) -> None:
    closing = b"]}" if opening.endswith(b"[") else b"}"
    for chunk in (0, 65536):
        output = _decode(b"x" + opening * levels + b"1" + closing * levels, chunk)
        assert (output.last, output.too_deep_at) == (None, 1)


@pytest.mark.requirement("r:R21")
def test_200_levels_are_read() -> None:
    output = _decode(b'{"status":"success","a":' + b"[" * 199 + b"]" * 199 + b"}")
    assert output.count == 1


@pytest.mark.requirement("r:R20")
def test_noise_is_kept_from_its_beginning_and_counted() -> None:
    output = _decode(b"one {\n" + OK + b"two\n" + b"x" * 5000)
    assert output.noise.startswith("one {\ntwo\nxxx")
    assert len(output.noise) <= NOISE_KEPT + 2
    assert output.noise_bytes == 5 + 4 + 5000
    assert _decode(b"\n" + OK + b"\n").noise == ""
    many = _decode((b"x" * 1500 + OK) * 100)
    assert len(many.noise) <= NOISE_KEPT + 2
    assert (many.noise_bytes, many.count) == (150_000, 100)


@pytest.mark.requirement("r:R21")
@pytest.mark.parametrize(
    "unit",
    [b"{", b'{"', b'{"":', b'{"":}', b"{}", b'{"":\n{},"":', b'{"a":"{', b'{":",":"', b'\n{"":', b'{"":[', b'{"a":1,',
     b'{"\\"{"', b'{"":1}\n{"x'],
)  # fmt: skip
def test_the_work_is_linear_whatever_is_printed(unit: bytes) -> None:
    for chunk in (65536, 10**9):
        scan = JsonScan()
        stdout = unit * (MIB // 8 // len(unit))
        for at in range(0, len(stdout), chunk):
            scan.buffer += stdout[at : at + chunk]
            assert len(list(scan.regions())) <= len(stdout)
        list(scan.regions(final=True))
        assert scan.work <= 3 * len(stdout)


@pytest.mark.requirement("r:R21")
def test_16_mib_of_braces_are_read_through() -> None:
    output = _decode(b"{" * 16 * MIB + OK)
    assert output.count == 1
    assert output.noise_bytes == 16 * MIB


@pytest.mark.requirement("r:R21")
def test_a_line_of_10_mb_among_noise_is_read() -> None:
    stdout = b'start {\n{"status": "success", "r": "' + b"{}" * 5_000_000 + b'"}\nend'
    for chunk in (0, 65536):
        output = _decode(stdout, chunk)
        assert output.last
        assert output.last.value["r"] == "{}" * 5_000_000


_JSON: st.SearchStrategy[Json] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
_NOISE = st.text(alphabet='{}[]":,\\ \nab1', max_size=40).filter(lambda text: '"status' not in text)


@pytest.mark.requirement("r:R21", "plugin:stdout")
@given(value=_JSON, indent=st.sampled_from([None, 1, 4]), ascii_only=st.booleans(), chunk=st.integers(1, 50))
def test_any_json_comes_through_as_it_was_written(
    value: Json, indent: int | None, ascii_only: bool, chunk: int
) -> None:
    answer = {"status": "success", "value": value}
    stdout = json.dumps(answer, indent=indent, ensure_ascii=ascii_only).encode("utf-8")
    for way in (0, chunk):
        output = _decode(stdout, way)
        assert output.last
        assert output.last.value == answer
        assert output.noise == ""


@pytest.mark.requirement("r:R20", "r:R21")
@given(noise=_NOISE, chunk=st.integers(1, 20))
def test_no_line_of_noise_hides_an_answer_that_begins_a_line(noise: str, chunk: int) -> None:
    stdout = noise.encode() + b"\n" + OK + b"\n"
    for way in (0, chunk):
        output = _decode(stdout, way)
        assert output.last
        assert output.last.value == {"status": "success"}


@pytest.mark.requirement("r:R21")
@given(stdout=st.binary(max_size=200), chunk=st.integers(1, 20))
def test_nothing_that_is_printed_breaks_the_decoder(stdout: bytes, chunk: int) -> None:
    assert _decode(stdout, chunk) == _decode(stdout)
