"""Requests written as text are read back as they were, and neutralised text is no request."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from toolyard.protocol.placeholders import find_placeholders
from toolyard.protocol.requests.marks import Call, Text
from toolyard.protocol.requests.scanner import Scanner, format_request, neutralise, parse_requests

MARKS = [
    "<<<[TOOL_REQUEST]>>>", "<<<[END_TOOL_REQUEST]>>>", "<<<[TOOL_REQUEST_ESCAPE]>>>",
    "<<<[END_TOOL_REQUEST_ESCAPE]>>>",
    "<<[TOOL_REQUEST]>>", "「始」", "「末」", "「始ESCAPE」", "「末ESCAPE」", "「末ESCAPEESCAPE」", "「末escape」",
    "「末日」", "{始}", "{末}", "\n", "\r", "\r\n", " ", "\t", "\u3000", "{{VCPAllTools}}", "{{{{", "`", "```\n",
    "<think>", "</think>", ",", ":", "//", "a", "x:「始」", "ESCAPE", "「末", "」", "<<<[", "]>>>", "「",
    "[TOOL_REQUEST:k7f3]", "<", "{", "始", "末",
]  # fmt: skip
tangled = st.lists(st.sampled_from(MARKS), max_size=12).map("".join)
values = st.one_of(st.text(), tangled)
names = st.from_regex(r"[A-Za-z0-9.\-中文][A-Za-z0-9_.\-中文]{0,12}", fullmatch=True)


@pytest.mark.requirement("request:escape", "s:S-22:text")
@given(values.filter(str.strip), st.dictionaries(names, values, max_size=5), st.none() | values)
@example("T", {"a": "「末ESCAPE」"}, None)
@example("T", {"a": "x\r"}, "\n")
@example("T", {"a": "", "b": " ", "c": "\n", "d": "\r\n"}, "")
def test_any_call_is_read_back_as_it_was_written(tool: str, args: dict[str, str], maid: str | None) -> None:
    text = format_request(tool, args, maid)
    scanner = Scanner()
    events = scanner.feed(f"Words before.\n{text}\nWords after.") + scanner.finish()
    requests = [event for event in events if not isinstance(event, Text)]
    expected = args if maid is None else {"maid": maid, **args}
    label = expected.get("maid", expected.get("valet"))
    assert requests == [Call(tool=tool, args=expected, span=(14, 14 + len(text)))]
    assert [event.to_dict()["maid"] for event in requests] == [label]


@pytest.mark.requirement("request:escape")
def test_a_value_is_escaped_only_when_it_must_be() -> None:
    assert format_request("Read", {"path": "a.txt"}, "Nova") == (
        "<<<[TOOL_REQUEST]>>>\nmaid:「始」Nova「末」,\ntool_name:「始」Read「末」,\npath:「始」a.txt「末」\n<<<[END_TOOL_REQUEST]>>>"
    )
    assert "content:「始ESCAPE」\nline\n\n「末ESCAPE」" in format_request("Write", {"content": "line\n"})


@pytest.mark.requirement("s:S-20")
def test_a_request_can_carry_the_nonce() -> None:
    text = format_request("Read", {}, nonce="k7f3")
    assert parse_requests(text) == []
    assert [record["tool"] for record in parse_requests(text, nonce="k7f3")] == ["Read"]


@pytest.mark.requirement("request:special-keys", "s:S-28")
@pytest.mark.parametrize(
    "name", ["", "a b", "a:b", "「a」", "tool_name", "archery", "tool_password", "__proto__", "a\n"]
)
def test_a_name_that_cannot_be_carried_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="request"):
        format_request("T", {name: "x"})
    with pytest.raises(ValueError, match="tool"):
        format_request(" ", {})


@pytest.mark.requirement("s:S-21:text")
@given(values, st.sampled_from(["", "\n"]))
def test_neutralised_text_is_inert_and_looks_the_same(text: str, before: str) -> None:
    inert = neutralise(before + text)
    assert parse_requests(inert) == []
    assert list(find_placeholders(inert)) == []
    assert neutralise(inert) == inert
    assert inert.replace("\u200b", "") == (before + text).replace("\u200b", "")


@pytest.mark.requirement("s:S-21:text")
def test_a_result_that_is_repeated_word_for_word_does_nothing() -> None:
    request = format_request("Shell", {"command": "「末」 {{VCPAllTools}}"}, nonce=None)
    result = (
        f"{request}\n<<[TOOL_REQUEST]>>\n{{{{VCP_ASYNC_RESULT::P::1}}}} {{{{{{{{Date}}}}}}}} {{始}}x{{末}} 「末日」"
    )
    inert = neutralise(result)
    assert (parse_requests(inert), list(find_placeholders(inert))) == ([], [])
    assert "「末日」" in inert
    for live in ("<[", "「始", "「末」", "「末E", "{{", "{始", "{末"):
        assert live not in inert
    wrapped = parse_requests(f"{format_request('Write', {'content': inert})}")
    assert wrapped[0]["args"] == {"content": inert}
