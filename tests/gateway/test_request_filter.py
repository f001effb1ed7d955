"""A model's text on its way to the client."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.gateway.serving import request
from toolyard.gateway.reply.request_filter import RequestFilter
from toolyard.protocol.requests.marks import Call, Malformed
from toolyard.protocol.requests.scanner import parse_requests

BLOCK = request(text="hello", more="two\nlines")
TEXTS = [
    f"Before.\n{BLOCK}\nAfter.",
    f"{BLOCK}",
    f"{BLOCK}\n{BLOCK}\n",
    f"a `tick\n{BLOCK}\nand ` another",
    f"<think>\n{BLOCK}\n</think>\nDone <b>x</b>.\n",
    f"```\n{BLOCK}\n```\n> {BLOCK}\n",
    f"   {BLOCK} tail\nmore",
    "<<<[TOOL_REQUEST]>>>\ntool_name:「始」Say「末」,\n",
    "<<< not a marker\n<<<[TOOL\n<\n<<<<<[TOOL_REQUEST]>>>\n",
    f"一行中文\n\n{BLOCK}\n\n完。",
    f"an open tag <a href=\n{BLOCK}\nx> and so on\n",
    f"<think>why</think>{BLOCK}\nAfter.",
    f"<thinking>\nlong\n</THINKING> \t{BLOCK} tail</b> <<< x\nmore",
    f"<think>why</think\n>{BLOCK}<think>\nagain</think>{BLOCK}\nAfter.",
    "<think>why</think><<<[TOOL_REQUEST]>>>\ntool_name:「始」Say「末」,\n",
]


def filter_text(text: str, size: int, *, hides: bool) -> tuple[str, list[Call | Malformed]]:
    request_filter = RequestFilter(hides=hides)
    visible = [request_filter.feed(text[at : at + size]) for at in range(0, len(text), size)]
    return "".join([*visible, request_filter.finish()]), request_filter.requests


@pytest.mark.requirement("r:R73")
@pytest.mark.parametrize("text", TEXTS)
def test_any_cut_gives_the_same_requests_and_the_same_text(text: str) -> None:
    expected = parse_requests(text)
    complete, _ = filter_text(text, len(text), hides=True)
    for size in (1, 2, 3, 5, 7, 16, len(text)):
        visible, requests = filter_text(text, size, hides=True)
        assert visible == complete
        assert [one.to_dict() for one in requests] == expected
        assert filter_text(text, size, hides=False)[0] == text


@pytest.mark.requirement("chat:loop")
def test_hidden_text_is_the_text_without_its_requests() -> None:
    assert filter_text(TEXTS[0], 3, hides=True)[0] == "Before.\nAfter."
    assert filter_text(TEXTS[5], 3, hides=True)[0] == TEXTS[5]
    assert filter_text(TEXTS[11], 3, hides=True)[0] == "<think>why</think>After."


@pytest.mark.requirement("chat:completions")
def test_prose_is_passed_on_at_once() -> None:
    request_filter = RequestFilter(hides=True)
    assert request_filter.feed("A word") == "A word"
    assert (
        request_filter.feed(" and another <<<[TOOL_REQUEST]>>> in the line")
        == " and another <<<[TOOL_REQUEST]>>> in the line"
    )
    assert request_filter.feed("\n<b>") == "\n<b>"
    assert request_filter.feed("\n<<<[TOOL") == "\n"
    assert request_filter.feed(" and so on") == "<<<[TOOL and so on"
    assert request_filter.feed(" -> ") == " ->"
    assert request_filter.feed("x <b> y") == " x <b> y"


@pytest.mark.requirement("r:R73")
@given(
    st.lists(st.sampled_from([*TEXTS, "x", "\n", "`", "<", "<<<[", "<think>", "</think>", "「末」"]), max_size=6),
    st.integers(1, 9),
)
def test_random_texts_lose_nothing_in_any_cut(pieces: list[str], size: int) -> None:
    text = "\n".join(pieces)
    visible, requests = filter_text(text, size, hides=True)
    complete, expected = filter_text(text, max(1, len(text)), hides=True)
    assert visible == complete
    assert requests == expected
