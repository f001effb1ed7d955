"""Both text languages against texts made of their own tokens: nothing raises, no cut matters, nothing grows."""

import itertools
import json
import os
import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolyard.protocol.replies.reply_values import Reply
from toolyard.protocol.reply import ReplyStream, parse_reply
from toolyard.protocol.requests.marks import Call, Malformed, Text
from toolyard.protocol.requests.scanner import Scanner

SOAK = os.environ.get("HYPOTHESIS_PROFILE") == "soak"
START, END = "<<<[TOOL_REQUEST]>>>", "<<<[END_TOOL_REQUEST]>>>"
ODD = ["\ud83d", "\udc00", "\x00", "\x08", "\f", "\r", "\u2028", "\ufeff", "\u200b", "\u3000", "😀", "中文"]
AROUND = ["<think>", "</think>", "<Thinking a>", "<think\n>", "< / think >", "<think", "<", "```", "```json\n", "~~~"]
REQUEST = [
    *ODD, *AROUND, START, END, f"\n{START}\n", f"\n{END}\n", "<<[TOOL_REQUEST]>>", "<<<[TOOL_REQUEST_ESCAPE]>>>",
    "「始」", "「末」", "「始ESCAPE」", "「末ESCAPE」", "{始}", "{末}", "「始escape」", "「末日」", "tool_name:", "a：",
    "tool_name:「始」T「末」", "c:「始」1「末」,\n", "__proto__:「始」x「末」", "b:", ",", "// c", "\n", "\n\n", "\r\n",
    " ", "\t", "x", "`", "``", "\\`", "> ", "- ", "1. ",
]  # fmt: skip
REPLY = [
    *ODD, *AROUND, *"{}[]\"'“”‘’`:：,，;=+\\#\n\t ", "//", "/*", "*/", '\\"', "\\n", "\\u", "\\ud83d", "\\ude00",
    "\\frac", "\\neq", "\\x41", "content", "think", '"content":', '"think": ', '"attachments": {', '{"content": "',
    '"a"', "x", '{"type": "code", "content": "', '"}', '"}}', "{{code:a}}", "{{", "}}", '""', '"""', "'''", "u'",
    "1", "-", ".5", "1e9", "1e999", "NaN", "True", "None", "true", "...", "…", "$", "｛", "｝", "´", "ObjectId(", ")",
]  # fmt: skip
requests = st.lists(st.sampled_from(REQUEST) | st.text(max_size=3), max_size=40).map("".join)
replies = st.lists(st.sampled_from(REPLY) | st.text(max_size=3), max_size=40).map("".join)
contents = st.lists(st.sampled_from(REPLY), min_size=1, max_size=12).map("".join)


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """A valid reply with a few of its characters lost, or others put in."""
    value = {"content": draw(contents), "think": draw(contents), "attachments": {"a": {"type": "code", "content": "1"}}}
    text = json.dumps(value, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 2])))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(text)))
        text = text[:at] + draw(st.sampled_from(["", *REPLY])) + text[at + draw(st.integers(0, 3)) :]
    return text


def pieces(text: str, cuts: list[int]) -> list[str]:
    places = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    return [text[begin:end] for begin, end in itertools.pairwise(places)]


def scan(chunks: list[str], nonce: str | None = None) -> tuple[str, list[Call | Malformed]]:
    scanner = Scanner(nonce=nonce)
    events = [event for chunk in chunks for event in scanner.feed(chunk)] + scanner.finish()
    return "".join(e.text for e in events if isinstance(e, Text)), [e for e in events if not isinstance(e, Text)]


@pytest.mark.requirement("request:chunking", "request:malformed", "s:S-25")
@given(requests, st.lists(st.integers(0, 1000), max_size=6))
def test_any_text_with_requests_is_read_alike_however_it_comes(text: str, cuts: list[int]) -> None:
    text_passed, events = complete = scan([text])
    assert scan(pieces(text, cuts)) == complete
    assert scan(list(text)) == complete
    assert len(text_passed) == len(text) - sum(event.span[1] - event.span[0] for event in events)
    for event in events:
        assert isinstance(event, Call) or 0 < len(event.problem) < 2000
        assert text.startswith(("<<[T", "<<<[T", "<<<<[T"), event.span[0])


@pytest.mark.requirement("s:S-20", "s:S-25")
@given(requests)
def test_without_the_nonce_no_text_is_a_request(text: str) -> None:
    assert scan([text], nonce="k7f3") == (text, [])


@pytest.mark.requirement("reply:parse", "reply:failure", "reply:repaired")
@given(replies | damaged(), st.lists(st.integers(0, 1000), max_size=4))
def test_any_reply_is_read_or_refused_alike_however_it_comes(text: str, cuts: list[int]) -> None:
    result = parse_reply(text)
    stream = ReplyStream()
    for piece in pieces(text, cuts):
        stream.feed(piece)
        assert len(stream.so_far.content) <= len(text)
    assert stream.result() == result
    if isinstance(result, Reply):
        written = json.dumps(result.to_dict(), ensure_ascii=False).encode()  # raises on half a surrogate pair
        assert len(result.content) + len(result.think or "") <= len(text) + 2
        assert len(written) <= 2000 + 40 * len(text)
    else:
        assert result.raw == text


@pytest.mark.requirement("reply:truncated", "reply:parse")
@given(damaged())
def test_any_beginning_of_any_reply_is_read_or_refused(text: str) -> None:
    for end in range(0, len(text), 1 + len(text) // 40):
        result = parse_reply(text[:end])
        assert isinstance(result, Reply) or result.raw == text[:end]


def work(parse: Callable[[str], object], text: str) -> float:
    """The least processor time of three readings."""
    least = float("inf")
    for _ in range(3):
        begin = time.process_time()
        parse(text)
        least = min(least, time.process_time() - begin)
    return least


@pytest.mark.requirement("s:S-25", "reply:parse")
@pytest.mark.skipif(not SOAK, reason="measures time: only in soak")
@settings(max_examples=300)
@given(
    st.lists(st.sampled_from([*REQUEST, *REPLY]), min_size=1, max_size=4).map("".join),
    st.sampled_from(["", "{", '{"content": "']),
)
def test_twice_the_text_takes_about_twice_the_time(unit: str, begin: str) -> None:
    short, long = (begin + unit * (size // len(unit)) for size in (40_000, 80_000))
    for parse in (parse_reply, lambda text: scan([text])):
        assert work(parse, long) < 3.5 * work(parse, short) + 0.02
