"""Tool requests in text: which blocks are calls, what they say, and that nothing depends on how the text arrives."""

import itertools
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolyard.protocol.requests.marks import Call, Malformed, Text
from toolyard.protocol.requests.scanner import MAX_CALLS, MAX_CHARS, MAX_REQUESTS, Scanner, parse_requests

START, END = "<<<[TOOL_REQUEST]>>>", "<<<[END_TOOL_REQUEST]>>>"
NAMED = "tool_name:「始」Shell「末」"
BLOCK = f"{START}\n{NAMED},\ncommand:「始」rm -rf /「末」\n{END}"
QUOTED = "\n".join("> " + line for line in BLOCK.split("\n"))
ONE_LINE = BLOCK.replace("\n", " ")
PIECES = [
    START, END, "「始」", "「末」", "「始ESCAPE」", "「末ESCAPE」", "{始}", "{末}", "tool_name:", "a：", "b:", ",",
    "// c", "\n", "\n\n", "\r\n", " ", "x", "```", "~~~", "`", "``", "> ", "- ", "<think>", "</think>", "<Thinking a>",
    "<think", "<", "「末日」", "\\`", NAMED, f"\n{START}\n{NAMED}\n{END}\n", "<<[TOOL_REQUEST]>>",
    "__proto__:「始」x「末」", "\u3000", "中",
]  # fmt: skip


def block(*fields: str) -> str:
    return "\n".join([START, *fields, END])


def scan(*chunks: str, **options: Any) -> tuple[str, list[Call | Malformed]]:
    """The text and the requests of a reply that comes in ``chunks``."""
    scanner = Scanner(**options)
    events = [event for chunk in chunks for event in scanner.feed(chunk)] + scanner.finish()
    return "".join(e.text for e in events if isinstance(e, Text)), [e for e in events if not isinstance(e, Text)]


def one(text: str) -> Call:
    requests = scan(text)[1]
    assert len(requests) == 1
    assert isinstance(requests[0], Call), requests
    return requests[0]


def refused(text: str) -> Malformed:
    requests = scan(text)[1]
    assert len(requests) == 1
    assert isinstance(requests[0], Malformed), requests
    return requests[0]


def calls(text: str) -> list[str]:
    return [event.tool for event in scan(text)[1] if isinstance(event, Call)]


# --- the founding document


@pytest.mark.requirement("request:seed-examples", "request:strings")
def test_the_first_example_of_the_manual() -> None:
    when = (
        "(可选) 设置一个未来时间点定时调用工具，格式为 YYYY-MM-DD-HH:mm (例如 2025-07-05-14:00)。"
        "如果提供此字段，工具调用将被安排在指定时间调用。"
    )
    text = (
        f"{START}\n"
        "maid:「始」Agent的署名「末」, // 重要字段，以进行任务追踪了解工具由谁发起\n"
        "tool_name:「始」工具名「末」, // 必要字段，以了解你要调用什么工具\n"
        "arg:「始」工具参数「末」, // 具体视不同工具需求而定\n"
        f"timely_contact:「始」{when}「末」\n"
        f"{END}"
    )
    assert parse_requests(text) == [
        {
            "tool": "工具名",
            "args": {"maid": "Agent的署名", "arg": "工具参数"},
            "maid": "Agent的署名",
            "timely_contact": when,
            "archery": None,
            "ok": True,
            "problem": None,
            "repaired": [],
            "span": [0, len(text)],
        }
    ]


@pytest.mark.requirement("request:seed-examples", "request:strings")
@pytest.mark.parametrize("margin", ["", "    "])
def test_the_numbered_example_of_the_manual(margin: str) -> None:
    lines = [
        START,
        "tool_name:「始」FileOperator「末」,",
        "command1:「始」ListDirectory「末」,",
        "directoryPath1:「始」/home/user/docs「末」,",
        "command2:「始」ReadFile「末」,",
        "filePath2:「始」/home/user/docs/report.txt「末」",
        END,
    ]
    call = one("".join(f"{margin}{line}\n" for line in lines))
    assert call.tool == "FileOperator"
    assert list(call.args.items()) == [
        ("command1", "ListDirectory"),
        ("directoryPath1", "/home/user/docs"),
        ("command2", "ReadFile"),
        ("filePath2", "/home/user/docs/report.txt"),
    ]


@pytest.mark.requirement("request:seed-examples", "request:strings")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        (
            f"调用格式:\n{START}\ntool_name:「始」EchoPlugin「末」,\ntext:「始」你好，世界！「末」\n{END}",
            "你好，世界！",
        ),
        (f"{START}\ntool_name:「始」EchoPlugin「末」,\ntext:「始」这是一个测试。「末」\n{END}", "这是一个测试。"),
    ],
)
def test_the_examples_in_the_manifest_of_the_manual(text: str, value: str) -> None:
    call = one(text)
    assert (call.tool, call.args, call.repaired) == ("EchoPlugin", {"text": value}, ())
    assert text[slice(*call.span)] == text[text.index(START) :]


# --- values


@pytest.mark.requirement("request:plain-value")
@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("「始」  a b\t「末」", "a b"),
        ("「始」\n  line one\n\n  line two  \n「末」", "line one\n\n  line two"),
        ("「始」「末」", ""),
        ("「始」the 「末日」 is near「末」", "the 「末日」 is near"),
        ("「始」「末 」 「末exp」 {末} here「末」", "「末 」 「末exp」 {末} here"),
        ("「始」a「末」b「末」", "a"),
        ("「始」a「始」b「末」", "a「始」b"),
        ("「始」a<think>b</think>c「末」", "a<think>b</think>c"),
        ("「始」a <think> b「末」", "a <think> b"),
        ("「始」```\ncode\n```「末」", "```\ncode\n```"),
        ("「始」> quoted `「末」", "> quoted `"),
        ("「始」see <<<[END_TOOL_REQUEST]>>> there「末」", "see <<<[END_TOOL_REQUEST]>>> there"),
        ("「始」a // b, c:d「末」", "a // b, c:d"),
        ("「始」a\r\nb「末」", "a\r\nb"),
        ("「始」true「末」", "true"),
    ],
)
def test_a_plain_value_is_trimmed_and_otherwise_as_written(written: str, value: str) -> None:
    assert one(block(NAMED, f"a:{written}")).args == {"a": value}


@pytest.mark.requirement("request:escape")
@pytest.mark.parametrize(
    ("inside", "value"),
    [
        ("  kept  ", "  kept  "),
        ("\n  kept\n\n", "  kept\n"),
        ("\r\nkept\r\n\r\n", "kept\r\n"),
        ("", ""),
        ("\n", ""),
        ("\n\n", ""),
        ("\n\n\n", "\n"),
        (f"\n{BLOCK}\n", BLOCK),
        ("「始」a「末」", "「始」a「末」"),
        ("「始ESCAPE」a「末」", "「始」a「末」"),
        ("<<<[TOOL_REQUEST_ESCAPE]>>> <<<[END_TOOL_REQUEST_ESCAPE]>>>", f"{START} {END}"),
        ("<<<[TOOL_REQUEST_ESCAPE_ESCAPE]>>>", "<<<[TOOL_REQUEST_ESCAPE]>>>"),
        ("「始ESCAPEESCAPE」a「末ESCAPEESCAPE」", "「始ESCAPE」a「末ESCAPE」"),
        ("「末escape」", "「末escape」"),
    ],
)
def test_an_escape_value_is_kept_but_for_one_newline_at_each_mark(inside: str, value: str) -> None:
    assert one(block(NAMED, f"a:「始ESCAPE」{inside}「末ESCAPE」")).args == {"a": value}


# --- leniency


@pytest.mark.requirement("request:lenient")
@pytest.mark.parametrize(
    ("text", "repairs"),
    [
        (block(f"{NAMED},,", ",a:「始」1「末」, // a comment, b:「始」2「末」"), 0),
        (block(f"{NAMED} a:「始」1「末」"), 0),
        (block(NAMED, "a :「始」1「末」"), 0),
        (block(NAMED, "a:", "「始」1「末」"), 0),
        (f"{START}{NAMED}a:「始」1「末」{END}", 0),
        (f"{START}{NAMED}a:「始」1「末」// done {END} and on", 0),
        (block(NAMED, "some words", "a:「始」1「末」"), 0),
        (block(NAMED, "a：「始」1「末」"), 1),
        (block(NAMED, "a:{始}1{末}"), 2),
        (block(NAMED, "a:「始}1{末」"), 2),
        (block(NAMED, "a:「始」1{末},", "b:「始」2「末」").replace(",\nb:「始」2「末」", ","), 1),
        (block(NAMED, "a:「始escape」1「末escape」"), 2),
        (block(NAMED, "a:{始ESCAPE}1「末ESCAPE」"), 1),
        (block(NAMED, "a:「始」1「末」").replace("<<<", "<<").replace(">>>", ">>"), 2),
        (block(NAMED, "a:「始」1「末」").replace("<<<", "<<<<").replace(">>>", ">>>>"), 2),
        (block(NAMED, "a:「始」1「末」").replace("\n", "\r\n"), 0),
    ],
)
def test_slips_that_leave_no_doubt_are_taken_and_named(text: str, repairs: int) -> None:
    call = one(text)
    assert (call.tool, call.args, len(call.repaired)) == ("Shell", {"a": "1"}, repairs)


@pytest.mark.requirement("request:lenient")
def test_a_mistyped_end_does_not_swallow_the_next_field() -> None:
    assert one(block("tool_name:「始」T{末},", "a:「始」1「末」")).args == {"a": "1"}


# --- what is no request


WRAPPERS = {
    "fence": f"```\n{BLOCK}\n```",
    "fence with info": f"```text title\n{BLOCK}\n```",
    "long fence": f"`````\n```\n{BLOCK}\n```\n`````",
    "waves": f"~~~\n{BLOCK}\n~~~",
    "waves with info": f"~~~ md `x`\n{BLOCK}\n~~~",
    "waves around ticks": f"~~~\n```\n{BLOCK}\n~~~",
    "ticks around waves": f"```\n~~~\n{BLOCK}\n~~~\n```",
    "unclosed fence": f"```\n{BLOCK}",
    "fence not closed by a shorter one": f"````\n```\n{BLOCK}\n````",
    "fence not closed by one with info": f"```\n``` x\n{BLOCK}\n```",
    "indented fence": f"   ```\n{BLOCK}\n   ```",
    "fence in a list": f"- ```\n  {BLOCK}\n  ```",
    "fence in a numbered list": f"12. ~~~\n    {BLOCK}\n    ~~~",
    "fence below a list": f"* like so:\n\n    ```\n    {BLOCK}\n    ```",
    "fence with CRLF": f"```\n{BLOCK}\n```".replace("\n", "\r\n"),
    "inline code": f"`{ONE_LINE}`",
    "inline code over lines": f"`\n{BLOCK}\n`",
    "two ticks over lines": f"Write ``\n{BLOCK}\n`` to run it.",
    "code span from a word": f"Write `this:\n{BLOCK}` please.",
    "backticks in a sentence that end like a fence": f"Write it so: ```\n{BLOCK}\n```",
    "the same, and a block after it": f"Write it so: ```\n{BLOCK}\n```\n{BLOCK}\n```",
    "the same with words after it": f"Write ```\n{BLOCK}\n``` to run it.",
    "malformed in a code span": f"`\n{START}\n{END}\n`",
    "quote": QUOTED,
    "quote without blanks": QUOTED.replace("> ", ">"),
    "quote in a quote": QUOTED.replace("> ", "> > "),
    "indented quote": QUOTED.replace("> ", "   > "),
    "fence in a quote": f"> ```\n{QUOTED}\n> ```",
    "think": f"<think>\n{BLOCK}\n</think>",
    "thinking": f"<thinking>\n{BLOCK}\n</thinking>",
    "THINK": f"<THINK>\n{BLOCK}\n</Think>",
    "think with attributes": f'<think budget="3">\n{BLOCK}\n</think>',
    "think with blanks": f"< think >\n{BLOCK}\n</ think >",
    "think over two lines": f"<think\n>\n{BLOCK}\n</think\n>",
    "think with attributes over two lines": f'<thinking budget="3"\n  level="2">\n{BLOCK}\n</thinking>',
    "nested think": f"<think><thinking></thinking>\n{BLOCK}\n</think>",
    "unclosed think": f"<think>\n{BLOCK}",
    "unclosed nested think": f"<think><think></think>\n{BLOCK}",
    "fence in think": f"<think>```\n{BLOCK}\n</think>",
    "think after words": f"well <think>\n{BLOCK}\n</think>",
    "JSON string": f'{{"text": "{BLOCK}"}}'.replace("\n", "\\n"),
    "words before": f"Run {BLOCK}",
    "list item": f"- {BLOCK}",
    "numbered item": f"1. {BLOCK}",
    "heading": f"# {BLOCK}",
    "table": f"| {ONE_LINE} |",
    "link": f"[text]({ONE_LINE})",
    "alt text": f"![{ONE_LINE}](a.png)",
    "file name": f"- notes {ONE_LINE}.txt",
    "comment on one line": f"<!-- {ONE_LINE} -->",
    "tag on one line": f"<pre>{ONE_LINE}</pre>",
    "quotation marks": f'"{BLOCK}"',
    "Chinese quotation marks": f"“{BLOCK}”",
    "bold": f"**{BLOCK}**",
    "diff": "\n".join("+" + line for line in BLOCK.split("\n")),
    "shell prompt": f"$ echo {ONE_LINE}",
    "line separator": f"words\u2028{BLOCK}",
    "form feed": f"words\f{BLOCK}",
    "carriage return alone": f"words\r{BLOCK}",
    "zero-width": f"\u200b{BLOCK}",
    "five brackets": BLOCK.replace("<<<", "<<<<<"),
    "one bracket": BLOCK.replace("<<<", "<"),
    "lower case": BLOCK.replace("TOOL_REQUEST", "tool_request"),
    "full-width brackets": BLOCK.replace("<<<", "＜＜＜"),
    "escaped marker": BLOCK.replace("TOOL_REQUEST", "TOOL_REQUEST_ESCAPE"),
}


@pytest.mark.requirement("s:S-20", "s:S-24:text", "request:not-requests", "request:line-start")
@pytest.mark.parametrize("name", WRAPPERS)
def test_a_block_from_elsewhere_is_no_call(name: str) -> None:
    text = f"Look at this:\n\n{WRAPPERS[name]}\n"
    assert scan(text) == (text, [])


@pytest.mark.requirement("request:not-requests", "request:line-start")
@pytest.mark.parametrize(
    "text",
    [
        f"{BLOCK}",
        f"\ufeff{BLOCK}",
        f"words\n{BLOCK}\nwords",
        f"\t  {BLOCK}",
        f"```\ncode\n```\n{BLOCK}",
        f"```\n<think>\n```\n{BLOCK}",
        f"the `<think>` tag\n{BLOCK}",
        f"the ``a ` <think>`` tag\n{BLOCK}",
        f"a lone ` here\n{BLOCK}\nand no more\n\n`",
        f"a lone ` here\n{BLOCK}",
        f"a lone \\` here\n{BLOCK}\nand `",
        f"`a` and `b`\n{BLOCK}\n`c`",
        f"> quoted ```\n{BLOCK}",
        f"> <think>\n\n{BLOCK}",
        f"``` not a fence ```\n{BLOCK}",
        f"<think>quoted: ```\n{START}</think>\n{BLOCK}",
        f"<think>a</think>{BLOCK}",
        f"<think>a</think> <think>b</think> {BLOCK}",
        f"x <think>a\nb</think>{BLOCK}",
        f"</think>\n{BLOCK}",
        f"<think/>\n{BLOCK}",
        f"<thinker>\n{BLOCK}",
        f"<think\n{BLOCK}",
        f"<think\n\n>\n{BLOCK}",
        f"<think\n>a</think\n>\n{BLOCK}",
        f"a < b and << c\n{BLOCK}",
    ],
)
def test_the_models_own_block_is_a_call(text: str) -> None:
    assert calls(text) == ["Shell"]


@pytest.mark.requirement("s:S-20")
def test_in_nonce_mode_only_the_marker_with_the_nonce_counts() -> None:
    keyed = BLOCK.replace("[TOOL_REQUEST]", "[TOOL_REQUEST:k7f3]")
    assert calls(keyed) == []
    requests = scan(f"{BLOCK}\n{keyed}\n{keyed.replace('k7f3', 'xxxx')}", nonce="k7f3")[1]
    assert [(event.tool, event.span[0]) for event in requests] == [("Shell", len(BLOCK) + 1)]


# --- malformed blocks


@pytest.mark.requirement("request:malformed", "s:S-22:text")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (block("a:「始」1「末」"), "no tool_name: write tool_name:「始」"),
        (block(), "no tool_name"),
        (block("tool_name:「始」 「末」"), "no tool_name"),
        (block("Tool_Name:「始」T「末」"), "'Tool_Name' is not tool_name"),
        (block(NAMED, "a:「始」1「末」", "a:「始」2「末」"), "'a' is given twice"),
        (block(NAMED, "c:「始」Read「末」", "x:「始」y「末」, c:「始」DeleteFile「末」「末」"), "'c' is given twice"),
        (block(NAMED, NAMED), "'tool_name' is given twice"),
        (block(NAMED, "a:「始」1"), "'a' is not closed: end it with 「末」"),
        (block(NAMED, "a:「始」1", "b:「始」2「末」"), "'a' is not closed before 'b'"),
        (block(NAMED, "a:「始ESCAPE」1「末」"), "'a' is not closed: end it with 「末ESCAPE」"),
        (block(NAMED, "a: 1"), "The value of 'a' has no marks: write a:「始」value「末」"),
        (block("tool_name: T"), "'tool_name' has no marks"),
        (block(NAMED, "a:「始exp」1「末」"), "'a' has no marks"),
        (block(NAMED, '"a":「始」1「末」'), "no name before it"),
        (f"{START}\n{NAMED}\n", "close it with <<<[END_TOOL_REQUEST]>>>"),
        (START, "no end marker"),
    ],
)
def test_a_malformed_block_says_how_to_write_it_right(text: str, words: str) -> None:
    assert words in refused(text).problem


@pytest.mark.requirement("request:malformed")
@pytest.mark.parametrize("broken", ["rm:「始」yes「末」", "rm:「始」yes", "rm: ", "", "// <think>", "```", "> "])
def test_an_unterminated_block_does_not_swallow_the_next(broken: str) -> None:
    first, second = scan(f"{START}\ntool_name:「始」A「末」,\n{broken}\n{block('tool_name:「始」B「末」')}\nwords")[1]
    assert isinstance(first, Malformed)
    assert isinstance(second, Call)
    assert (first.tool, second.tool, second.args, first.span[1]) == ("A", "B", {}, second.span[0])


@pytest.mark.requirement("s:S-22:text", "request:malformed")
@pytest.mark.parametrize("after", ["「末」", f"\n{END}", "\nmore words\n「末」\n" + END])
def test_a_block_inside_a_value_that_forgot_to_escape_is_not_run(after: str) -> None:
    text = f"{START}\ntool_name:「始」Write「末」\ncontent:「始」Like so:\n{BLOCK}\n{BLOCK}{after}"
    requests = [event.to_dict() for event in scan(text)[1]]
    assert [(event["tool"], event["ok"]) for event in requests] == [
        ("Write", False),
        ("Shell", False),
        ("Shell", False),
    ]
    assert "inside the value" in str(requests[1]["problem"])


@pytest.mark.requirement("s:S-26", "request:malformed")
def test_a_block_cut_anywhere_is_not_run() -> None:
    text = block(NAMED, "a:「始ESCAPE」\n" + BLOCK + "\n「末ESCAPE」", "b:「始」2「末」")
    for cut in range(len(text) - 1):  # an end marker with two brackets is one
        assert calls(text[:cut]) == []
    assert calls(text) == ["Shell"]


@pytest.mark.requirement("s:S-30")
def test_of_500_blocks_32_are_taken_32_refused_and_the_rest_reported_as_one() -> None:
    text = f"{BLOCK}\n" * 500
    passed, requests = scan(text)
    assert [isinstance(event, Call) for event in requests] == [True] * MAX_CALLS + [False] * (MAX_CALLS + 1)
    *_, beyond, rest = [event.problem for event in requests if isinstance(event, Malformed)]
    assert "first 32 requests of a reply are run" in beyond
    assert "first 64 requests of a reply are read" in rest
    assert passed.endswith(text[64 * len(f"{BLOCK}\n") :])


@pytest.mark.requirement("s:S-25", "s:S-30")
def test_of_60000_empty_blocks_64_are_reported_and_the_rest_as_one() -> None:
    text = f"{START}\n{END}\n" * 60_000
    passed, requests = scan(text)
    assert [isinstance(event, Malformed) for event in requests] == [True] * (MAX_REQUESTS + 1)
    assert len(passed) + sum(event.span[1] - event.span[0] for event in requests) == len(text)
    assert scan(f"{START}\n{END}\n" * MAX_REQUESTS + "The end.")[1] == requests[:MAX_REQUESTS]


@pytest.mark.requirement("s:S-30")
def test_blocks_that_turn_out_to_be_code_do_not_count() -> None:
    quoted = f"see ` this\n{BLOCK}\n` and\n\n"
    assert calls(quoted * 100 + BLOCK) == ["Shell"]


@pytest.mark.requirement("s:S-25")
def test_text_beyond_the_limit_is_a_problem_and_no_exception() -> None:
    text = f"{BLOCK}\n" + "x" * MAX_CHARS + f"\n{BLOCK}"
    passed, requests = scan(text)
    assert [isinstance(event, Call) for event in requests] == [True, False]
    assert len(passed) == len(text) - len(BLOCK)
    assert scan("x" * MAX_CHARS)[1] == []


# --- keys


@pytest.mark.requirement("request:special-keys", "request:strings", "s:S-28")
def test_special_and_reserved_keys_never_reach_the_tool() -> None:
    special = {"archery": "no_reply", "ink": "mark_history", "river": "last:3", "timely_contact": "2025-07-05-14:00"}
    written = {"b": "1", **special, "tool_password": "hush", "__proto__": "x", "__vcp_timed_call": "1",
               "constructor": "c", "valet": "Nova", "image-url": "u", "参数": "v", "mark_history": "m"}  # fmt: skip
    call = one(block(NAMED, *(f"{name}:「始」{value}「末」" for name, value in written.items())))
    assert list(call.args) == ["b", "constructor", "valet", "image-url", "参数", "mark_history"]
    assert (call.archery, call.ink, call.river, call.timely_contact) == tuple(special.values())
    assert (call.password, call.maid, call.fire_and_forget) == ("hush", "Nova", True)
    assert "hush" not in repr(call) + str(call.to_dict())
    assert sorted(call.repaired) == [f"left out the reserved key {name}" for name in ("__proto__", "__vcp_timed_call")]


@pytest.mark.requirement("request:strings", "s:S-28")
def test_maid_is_a_label_and_wins_over_valet() -> None:
    call = one(block(NAMED, "valet:「始」V「末」", "maid:「始」admin「末」"))
    assert (call.maid, call.args) == ("admin", {"valet": "V", "maid": "admin"})


# --- output, chunks and time


@pytest.mark.requirement("request:output")
def test_spans_count_code_points_and_the_text_is_all_the_rest() -> None:
    text = f"😀 中文\n  {BLOCK} tail\n{START}\n{END}\nend"
    passed, requests = scan(text)
    assert [text[slice(*event.span)] for event in requests] == [BLOCK, f"{START}\n{END}"]
    assert passed == "😀 中文\n   tail\n\nend"
    keys = ["tool", "args", "maid", "timely_contact", "archery", "ok", "problem", "repaired", "span"]
    assert [list(record) for record in parse_requests(text)] == [keys, keys]
    assert parse_requests(text)[1]["args"] is None


SAMPLES = [
    f"say\n{BLOCK}\n```\n{BLOCK}\n```\n<think>{BLOCK}</think>{BLOCK}\n> {BLOCK}",
    f"a `\n{BLOCK}\n` b\n\n` c\n{BLOCK}\n",
    f"{START}\na:「始」x\n{BLOCK}\n「末」\n{END}",
    f"<think\n>\n{BLOCK}</think\n>{BLOCK}\n<think\n<think\n>{BLOCK}\n</think a\n>\n{BLOCK}",
    block(NAMED, "a：{始ESCAPE}\r\n「始ESCAPEESCAPE」\r\n{末ESCAPE}", "b:", "「始」2{末}").replace("\n", "\r\n"),
]


@pytest.mark.requirement("request:chunking")
@pytest.mark.parametrize("text", SAMPLES)
def test_a_split_at_every_place_changes_nothing(text: str) -> None:
    complete = scan(text)
    assert scan(*text) == complete
    for at in range(len(text)):
        assert scan(text[:at], text[at:]) == complete


@pytest.mark.requirement("request:chunking")
@given(st.lists(st.sampled_from(PIECES), max_size=40), st.lists(st.integers(0, 400)), st.integers(0, 300))
def test_no_chunking_of_any_text_changes_anything(pieces: list[str], cuts: list[int], limit: int) -> None:
    text = "".join(pieces)
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    for most in (limit, MAX_CHARS):
        complete = scan(text, max_chars=most)
        assert scan(*(text[a:b] for a, b in itertools.pairwise(places)), max_chars=most) == complete
        passed, requests = complete
        assert len(passed) == len(text) - sum(e.span[1] - e.span[0] for e in requests)


@pytest.mark.requirement("request:malformed")
@given(st.text())
def test_no_text_raises(text: str) -> None:
    assert scan(text) == (text, [])
    assert len(scan(f"{START}\n{text}")[1]) >= 1


HOSTILE: dict[str, Callable[[int], str]] = {
    "a bracket and blanks": lambda n: "<" + " " * n,
    "open tags": lambda n: "<think " * (n // 7),
    "tags": lambda n: "<think></think>" * (n // 15),
    "tags in a code span": lambda n: "`" + "<think>" * (n // 7) + "`",
    "tags after a lone backtick": lambda n: "`" + "<think></think>" * (n // 15),
    "open markers": lambda n: f"{START}\n" * (n // 21),
    "open values": lambda n: f"{START}\na:「始」" * (n // 26),
    "open escapes": lambda n: f"{START}\na:「始ESCAPE」\n" * (n // 33),
    "fields": lambda n: START + "".join(f"\nk{i}:「始」1「末」" for i in range(n // 16)),
    "one field again": lambda n: START + "\na:「始」1「末」" * (n // 12),
    "one long word": lambda n: START + "\n" + "a" * n,
    "words and blanks": lambda n: START + "\na" + " " * n,
    "mistyped ends": lambda n: START + "\na:「始」" + "{末} " * (n // 4),
    "comments": lambda n: START + "\n" + "//" * (n // 2),
    "brackets": lambda n: "<" * n,
    "blanks and brackets": lambda n: " " * (n // 2) + "<< " * (n // 6),
    "backticks of many lengths": lambda n: " ".join("`" * i for i in range(1, int((2 * n) ** 0.5))),
    "backticks and blocks": lambda n: f"`\n{BLOCK}\n" * (n // 70),
    "backticks without end": lambda n: "``\n" + f"`a\n{BLOCK}\n" * (n // 70),
    "fences": lambda n: "```\n" * (n // 4),
    "fences in a fence": lambda n: "````\n" + "```\n" * (n // 4),
    "list marks": lambda n: "- " * (n // 2) + "```",
    "blocks": lambda n: f"{BLOCK}\n" * (n // 66),
    "code spans after an open value": lambda n: f"{START}\na:「始」x\n{BLOCK}\n" + f"` a\n{BLOCK}\n` b\n\n" * (n // 75),
}


@pytest.mark.requirement("s:S-25", "request:chunking")
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_ends_and_loses_nothing(name: str) -> None:
    """Two hundred thousand characters: anything quadratic would take minutes here."""
    text = HOSTILE[name](200_000)
    passed, requests = scan(text)
    assert len(passed) + sum(e.span[1] - e.span[0] for e in requests) == len(text)


@pytest.mark.requirement("s:S-25")
@pytest.mark.skipif(os.environ.get("HYPOTHESIS_PROFILE") != "soak", reason="measures time: only in soak")
@pytest.mark.parametrize("name", HOSTILE)
def test_twice_the_text_takes_twice_the_time(name: str) -> None:
    def least(size: int) -> float:
        text, times = HOSTILE[name](size), []
        for _ in range(5):
            started = time.process_time()
            scan(text)
            times.append(time.process_time() - started)
        return min(times)

    assert least(1_600_000) < 2 * 2.5 * least(800_000) + 0.05


@pytest.mark.requirement("s:S-20", "request:seed-examples")
def test_this_very_documentation_calls_nothing() -> None:
    page = (Path(__file__).parents[2] / "docs/requests.md").read_text("utf-8")
    assert START in page
    assert calls(page) == []
    assert re.search("ESCAPE", page)
