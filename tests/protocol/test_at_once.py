"""What is read at once, because it leaves no question, is what the exact readers make of it, however it comes."""

import itertools
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolyard.protocol import reply
from toolyard.protocol.replies.reply_values import Reply, ReplyError
from toolyard.protocol.reply import parse_reply
from toolyard.protocol.requests import block
from toolyard.protocol.requests.marks import Call, Malformed, Text
from toolyard.protocol.requests.scanner import Scanner

START, END = "<<<[TOOL_REQUEST]>>>", "<<<[END_TOOL_REQUEST]>>>"
NONCE = "k7f3"
NAMED = "tool_name:「始」T「末」"
INSIDES = [
    NAMED,
    f"{NAMED},\na:「始」 1\n2 「末」",
    f"maid:「始」n「末」{NAMED}",
    f"valet:「始」v「末」,,{NAMED}",
    f"{NAMED}\n\narchery:「始」true「末」",
    "tool_name:「始」 「末」",
    "a:「始」1「末」",
    f"{NAMED}\n__a:「始」1「末」",
    f"{NAMED}a:「始」b__c「末」",
    f"{NAMED}a:「始」1「末」a:「始」2「末」",
    f"{NAMED}{NAMED}",
    f"{NAMED}a:「始」{{末}}「末」",
    f"{NAMED}a:「始」x{{末}}\nb:「始」y「末」",
    f"{NAMED}a:「始」x{{末}}\ny「末」",
    f"{NAMED}a:「始」<b>「末」",
    f"{NAMED}a:「始」x\n{END}\n「末」",
    f"{NAMED}a：「始」1「末」",
    f"{NAMED} // note",
    f"{NAMED}\nb: 1",
    f"{NAMED}>",
    "",
]
BLOCKS = [f"{START}\n{inside}\n{END}\n" for inside in INSIDES]
BLOCKS += [text.replace("REQUEST]", f"REQUEST:{NONCE}]") for text in BLOCKS]
BLOCK = BLOCKS[0]
AMONG = [
    BLOCK.strip() + BLOCK,
    BLOCK.strip() + ">\n" + BLOCK,
    f"{START}\n{NAMED}a:「始」x\n{BLOCK}「末」\n{END}\n",
    f"an `open span\n{BLOCK}that ends`",
    f"an `open span\n{BLOCK}that does not\n",
    f"<think>\n{BLOCK}</think>{BLOCK}",
    f"```\n{BLOCK}```\n{BLOCK}",
    f"\ufeff{BLOCK} \t\n\u2028\n{BLOCK}  {BLOCK}",
    BLOCK * 40,
]
PIECES = [
    *BLOCKS,
    START,
    END,
    NAMED,
    "「始」",
    "「末」",
    "{末}",
    ">",
    "`",
    "```\n",
    "> ",
    "<think>",
    "</think>",
    "\n",
    " ",
    "x",
]


def scan(chunks: list[str], nonce: str | None) -> tuple[str, list[Call | Malformed]]:
    scanner = Scanner(nonce=nonce)
    events = [event for chunk in chunks for event in scanner.feed(chunk)] + scanner.finish()
    return "".join(e.text for e in events if isinstance(e, Text)), [e for e in events if not isinstance(e, Text)]


def scan_exactly(text: str, nonce: str | None) -> tuple[str, list[Call | Malformed]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(block, "FIELD", re.compile("(?!)"))
        patch.setattr(Scanner, "_take_plain", lambda _, text, at: at)
        return scan([text], nonce)


@pytest.mark.requirement("request:chunking", "request:output")
@pytest.mark.parametrize("nonce", [None, NONCE])
@pytest.mark.parametrize("text", [*BLOCKS, *AMONG])
def test_a_block_that_is_read_at_once_is_read_as_mark_by_mark(text: str, nonce: str | None) -> None:
    assert scan([text], nonce) == scan_exactly(text, nonce)


@pytest.mark.requirement("request:chunking", "request:output")
@given(
    st.lists(st.sampled_from(PIECES), max_size=20).map("".join),
    st.lists(st.integers(0, 1000), max_size=4),
    st.sampled_from([None, NONCE]),
)
def test_any_blocks_in_any_pieces_are_read_as_mark_by_mark(text: str, cuts: list[int], nonce: str | None) -> None:
    places = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    exactly = scan_exactly(text, nonce)
    assert scan([text], nonce) == exactly
    assert scan([text[begin:end] for begin, end in itertools.pairwise(places)], nonce) == exactly


# --- replies

MIB = 1 << 20
REPLIES = [
    '{"content": "c"}',
    ' {"think": "t", "content": "a\\nb"}\n',
    '{"content": "c", "think": 1}',
    '{"content": 1}',
    '{"content": ""}',
    '{"content": "c", "Think": "t"}',
    '{"content": "c", "attachments": null}',
    '{"content": "c", "attachments": []}',
    '{"content": "c", "attachments": {"a": 1}}',
    "[]",
    '{"content": "$\\\\frac$"}',
    '{"content": "$\\frac$"}',
    '{"content": "a\\neq b"}',
    '{"content": "c", "think": "a\\neq b"}',
    '{"content": "{{code:a}} {{odd:a}}"}',
    '{"content": "`{{code:a}}` {{code:b}} {{code: }}", "attachments": {"b": {"type": "code", "content": ""}}}',
    '{"content": "{ {{code:a}} ' + "{" * 300 + '{{code:b}}"}',
    *(
        json.dumps({"content": "c", "attachments": {str(n): {"type": "code", "content": "1"} for n in range(size)}})
        for size in (64, 65)
    ),
]
ATTACHMENTS = [
    '{"type": "chart", "content": "1", "language": "py", "title": "t"}',
    '{"type": "code", "content": "1"}',
    '{"type": "Chart", "content": "1"}',
    '{"type": "odd", "content": "1"}',
    '{"type": ["chart"], "content": "1"}',
    '{"type": "code", "content": {"a": 1}}',
    '{"type": "code", "content": null}',
    '{"type": "chart", "content": 1}',
    '{"type": "code", "content": "1", "title": 1}',
    '{"type": "code", "content": "1", "title": "\\beta"}',
    '{"type": "chart", "content": [1], "title": 1}',
    '{"type": "chart", "content": {"a": [true]}, "more": 1}',
    '{"type": "chart", "content": "1", "Content": "2"}',
    '{"type": "table", "rows": [[1]]}',
    '{"type": "chart", "content": [1.5, null, "\\n"]}',
    '{"type": "chart", "content": [1.5, "\\frac"]}',
    '{"type": "chart", "content": [1e15, -0, 1E400]}',
    '{"type": "chart", "content": [18446744073709551617]}',
    *(f'{{"type": "chart", "content": {"[" * depth}{"]" * depth}}}' for depth in (197, 198)),
    *(f'{{"type": "chart", "content": [{"1e15," * size}1]}}' for size in (50_000, 60_000)),  # written it is longer
    *(f'{{"type": "chart", "content": [{"1.5," * size}1]}}' for size in (80_000, 300_000)),
    *(f'{{"type": "code", "content": "{"x" * size}"}}' for size in (MIB, MIB + 1)),
    *(f'{{"type": "code", "content": "{"中" * size}"}}' for size in (MIB // 3, MIB // 3 + 1)),
]
REPLIES += [f'{{"content": "{{{{chart:a}}}}", "attachments": {{"a": {attachment}}}}}' for attachment in ATTACHMENTS]
WORDS = ["x", "{{code:a}}", "{{chart:b}}", "`", "\n", "\n\n", "\\", "\\frac", "neq", "\neq", "$", '"', "😀", "{", "\t"]

texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map("".join)
data = st.recursive(
    st.sampled_from([0, -1, 1.5, 1e15, 1e300, 2**63, 2**64 + 1, 10**30, True, None]) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["rows", "data"]), inner, max_size=2),
    max_leaves=6,
)
attachments = st.fixed_dictionaries(
    {"type": st.sampled_from(["code", "chart", "table", "Chart", "odd"]), "content": texts | data},
    optional={"title": texts, "language": st.sampled_from(["py", None])},
)
replies = st.fixed_dictionaries(
    {"content": texts},
    optional={"think": texts, "attachments": st.dictionaries(st.sampled_from("abc"), attachments, max_size=3)},
)


def parse_with_care(text: str) -> Reply | ReplyError:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reply, "parse_plain_reply", lambda _: None)
        return parse_reply(text)


@pytest.mark.requirement("reply:parse", "reply:fields")
@pytest.mark.parametrize("number", range(len(REPLIES)))
def test_a_reply_that_is_read_at_once_is_read_as_with_care(number: int) -> None:
    assert parse_reply(REPLIES[number]) == parse_with_care(REPLIES[number])


@pytest.mark.requirement("reply:parse", "reply:fields")
@given(replies, st.booleans(), st.booleans())
def test_any_reply_is_read_as_with_care(value: object, ascii_only: bool, bare: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    text = text.replace("\\\\", "\\") if bare else text  # as models write LaTeX
    assert parse_reply(text) == parse_with_care(text)
