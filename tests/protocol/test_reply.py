"""Structured replies: found in what a model really writes, mended, checked, and never an exception."""

import html
import json
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import toolyard
from toolyard.protocol.json import MAX_DEPTH, Json, JsonObject
from toolyard.protocol.replies.reply_values import (
    MAX_ATTACHMENT_BYTES,
    MAX_ATTACHMENTS,
    MAX_BYTES,
    Attachment,
    AttachmentType,
    Repair,
    Reply,
    ReplyError,
)
from toolyard.protocol.reply import ReplyStream, find_syntax_error, parse_reply

VECTORS = Path(__file__).parents[1] / "vectors"
CASES: list[dict[str, Any]] = json.loads((VECTORS / "reply_parsing.json").read_text("utf-8"))
EXAMPLES: list[dict[str, Any]] = json.loads((VECTORS / "reply_examples.json").read_text("utf-8"))
CODE = {"type": "code", "language": "py", "content": "1"}
FLOW = '{"content": "见 {{mermaid:f}}", "attachments": {"f": {"type": "mermaid", "content": "graph TD\\nA-->B"}}}'


def reply(text: str) -> Reply:
    result = parse_reply(text)
    assert isinstance(result, Reply), result
    return result


def error(text: str) -> ReplyError:
    result = parse_reply(text)
    assert isinstance(result, ReplyError), result
    return result


def problems(text: str) -> list[tuple[str, str | None]]:
    return [(problem.code.value, problem.id) for problem in reply(text).problems]


def with_content(content: str, **attachments: object) -> str:
    return json.dumps({"content": content, "attachments": attachments}, ensure_ascii=False)


@pytest.mark.requirement("reply:parse", "reply:fences", "reply:lenient", "reply:repaired", "reply:truncated")
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['id']}-{case['category']}")
def test_replies_of_real_models_are_read(case: dict[str, Any]) -> None:
    result = parse_reply(case["raw"])
    if "expected" in case:
        expected = {"think": None, "attachments": {}, **case["expected"]}
        assert {key: result.to_dict()[key] for key in expected} == expected
    elif case["expected_error"] in ("MISSING_CONTENT", "NOT_JSON"):
        assert isinstance(result, ReplyError)
    elif case["category"] == "truncated" and isinstance(result, Reply):
        assert result.is_truncated


@pytest.mark.requirement("reply:parse")
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["expected"]["content"][:20])
def test_every_example_of_the_guide_is_read_with_nothing_to_mend_or_to_complain_about(example: dict[str, Any]) -> None:
    result: dict[str, Any] = reply(example["raw"]).to_dict()
    unused = ["UNUSED_ATTACHMENT"] * 2 if "id1" in example["expected"]["attachments"] else []  # it shows the form only
    assert [problem["code"] for problem in result.pop("problems")] == unused
    assert result == {"ok": True, **example["expected"], "repairs": []}
    assert reply(f"```json\n{example['raw']}```").content == example["expected"]["content"]


@pytest.mark.requirement("reply:parse", "reply:failure")
def test_the_form_and_the_failure_that_the_guide_shows_are_read() -> None:
    form = reply(
        """你是一个智能助手。请严格按照以下 JSON 格式返回你的回复：

{
  "think": "你的思考过程（可选）",
  "content": "你的回复内容，使用 Markdown 格式。如果需要插入图表或代码，使用占位符：{{mermaid:id}} 或 {{code:id}}",
  "attachments": {
    "id": {
      "type": "mermaid" 或 "code",
      "content": "实际内容",
      "language": "代码语言（仅 code 类型需要）"
    }
  }
}"""
    )
    assert (form.think, form.content[:6]) == ("你的思考过程（可选）", "你的回复内容")
    assert form.attachments["id"].to_dict() == {
        "type": 'mermaid" 或 "code',
        "content": "实际内容",
        "language": "代码语言（仅 code 类型需要）",
    }
    assert error("{这里显示原始内容}").message == "Invalid JSON: Unexpected character at position 1"
    assert error(" {} ").message == 'The reply has no "content".'


@pytest.mark.requirement("reply:parse")
def test_the_fast_reader_changes_nothing() -> None:
    """What it reads differently, or not at all, is read by the other one."""
    assert reply('{"content": "a", "content": "b"}') == Reply("b")
    assert reply('\ufeff \n{"content": "c"}\n\ufeff') == Reply("c")
    unseen = '{\u200b"content"\u2060:\u200b"c\u200b"\u200b,\ufeff"think":"t"\u200c}'
    assert reply(unseen) == Reply("c\u200b", "t")
    huge = 12345678901234567890123
    chart = reply(with_content("{{chart:c}}", c={"type": "chart", "content": [huge, 2**63, 0.5, None]}))
    assert (chart.attachments["c"].content, chart.repairs) == ([huge, 2**63, 0.5, None], ())
    assert reply('{"content": "c", "n": [NaN, Infinity]}').repairs == (Repair.LITERALS,)
    for brackets in ("[]", '{"a":}'):
        inside = brackets[:-1] * (MAX_DEPTH - 1) + "0" + brackets[-1] * (MAX_DEPTH - 1)
        assert reply(f'{{"content": "c", "deep": {inside}}}').repairs == ()
        assert "deeper" in error(f'{{"content": "c", "deep": {brackets[:-1]}{inside}{brackets[-1]}}}').message


@pytest.mark.requirement("reply:repaired")
@pytest.mark.parametrize("around", ["", "A sentence of the reply.\n" * 1000])
def test_latex_that_is_valid_json_keeps_its_backslashes(around: str) -> None:
    formula = r"$a \neq b \times \theta \frac12 \rho$"
    result = reply('{"content": "' + around.replace("\n", "\\n") + formula + '"}')
    assert (result.content, result.repairs) == (around + formula, (Repair.LATEX,))
    assert reply(json.dumps({"content": around + formula})).content == around + formula


@pytest.mark.requirement("reply:parse")
def test_the_result_has_a_fixed_form() -> None:
    result = reply(FLOW)
    assert isinstance(result, Reply)
    assert result.attachments["f"].kind is AttachmentType.MERMAID
    assert toolyard.parse_reply(FLOW) == result.to_dict()
    assert list(result.to_dict()) == ["ok", "think", "content", "attachments", "problems", "repairs"]
    assert toolyard.parse_reply("no reply") == {
        "ok": False,
        "error": {"message": "There is no JSON object in the text.", "line": 1, "column": 1},
        "raw": "no reply",
    }


@pytest.mark.requirement("reply:fields")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"think": "x"}', "has no"),
        ('{"content": null}', "has no"),
        ('{"content": ""}', "is empty"),
        ('{"content": 5}', "is a number"),
        ('{"content": ["a"]}', "is a list"),
        ('{"content": null}{"content": ""}', "has no"),
        ('{"x": 1, "attachments": {"a": {"content": "1", "type": "code"}}}', "has no"),
        ('{"reply": {"think": "x", "attachments": {"a": {"content": "1", "type": "code"}}}}', "has no"),
    ],
)
def test_a_reply_needs_a_content(text: str, message: str) -> None:
    assert message in error(text).message


@pytest.mark.requirement("reply:failure")
def test_an_error_has_its_place_in_code_points_and_the_original_text() -> None:
    text = '😀😀\n文 {"think": "x"}'
    assert error(text) == ReplyError('The reply has no "content".', 2, 3, text)
    deep = '{"content": "x",\n "e": ' + "[" * 300
    assert (error(deep).line, error(deep).column) == (2, 7 + MAX_DEPTH - 1)
    assert error("[" * 100_000).message
    assert error(json.dumps({"content": "x" * MAX_BYTES})).message == f"The reply is larger than {MAX_BYTES} bytes."


# A reply that lost its content to the syntax around it, and where.
BROKEN = {
    '{"content": }': 12,
    '{"think": "用户" "content" 今天}': 15,
    '{"think": "用户询问天气，我需要提供简洁而且完整的回答，再附上一段说明。", "content" 今天}': 54,
    '{"think": "x", "content" }': 25,
    '{"think": "he said "hi" there"}': 20,
    '{"a": 1 "b": 2}': 8,
    '{"a": 1}, "b": 2}': 8,
    "{content}": 1,
    "{1: 2}": 1,
    '```json\n{"content": }\n```': 20,
    'Here it is:\n{"think": "x" "y"}': 26,
    '{"think": "x", // why\n "content": /* what */ ,}': 46,
}


@pytest.mark.requirement("reply:syntax-error")
@pytest.mark.parametrize(("text", "position"), BROKEN.items())
def test_a_syntax_error_is_named_with_its_position_and_not_as_a_missing_field(text: str, position: int) -> None:
    """003: "Unexpected character at position 45"."""
    before = text[:position]
    place = (before.count("\n") + 1, position - before.rfind("\n"))
    failure = error(text)
    assert failure == ReplyError(f"Invalid JSON: Unexpected character at position {position}", *place, text)


@pytest.mark.requirement("reply:syntax-error")
@pytest.mark.parametrize("text", ["{", '{"think": "a', '{"think": "a"', '{"think": "a", "content":  ', '{"think": ["a'])
def test_a_text_that_ends_too_soon_for_a_content_says_so(text: str) -> None:
    assert error(text).message.startswith("Invalid JSON: Unexpected end of text at position ")


@pytest.mark.requirement("reply:syntax-error")
@pytest.mark.parametrize(
    "text",
    [
        '{"think": "x", // no content\n}',
        "{'think': 'x'}",
        '```json\n{"Think": "x",}\n```',
        '{think: "x"}',
        '{"content": null}',
    ],
)
def test_what_is_forgiven_elsewhere_is_no_syntax_error_of_a_reply_without_content(text: str) -> None:
    assert error(text).message == 'The reply has no "content".'


@pytest.mark.requirement("reply:syntax-error")
def test_the_position_is_the_one_that_node_gives() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    script = "for (const t of JSON.parse(process.argv[1])) try { JSON.parse(t) } catch (e) { console.log(e.message) }"
    cut = ['{"think": "a"', '{"think": ["a"']
    texts = ['{"think": "用户" "content" 今天}', '{"a": 1 "b": 2}', "{1: 2}", '{"think" "x"}', *cut]
    output = subprocess.run([node, "-e", script, json.dumps(texts)], capture_output=True, check=True, text=True).stdout
    theirs = [int(line.rpartition("position ")[2].split()[0]) for line in output.splitlines()]
    assert [find_syntax_error(text, 0) for text in texts] == theirs


# --- HTML entities in place of quotes ---


@pytest.mark.requirement("reply:entities")
@pytest.mark.parametrize(
    "text",
    [
        "{&quot;content&quot;: &quot;今天 &lt;b&gt; &amp; &amp;lt; \\&quot;好\\&quot;&quot;}",
        "{&#34;content&#34;: &#34;今天 &#60;b&#62; &#38; &amp;lt; \\&#34;好\\&#34;&#34;}",
        "{&#x22;content&#x22;: &#x22;今天 &#x3C;b&#x3e; &amp; &amp;lt; \\&#x22;好\\&#x22;&#x22;}",
        'Sure: {"content": &quot;今天 <b> & &amp;lt; \\&quot;好\\&quot;&quot;}',
    ],
    ids=["names", "numbers", "hex", "only the value"],
)
def test_quotes_that_are_html_entities_are_read(text: str) -> None:
    result = reply(text)
    assert (result.content, result.repairs[0]) == ('今天 <b> & &lt; "好"', Repair.HTML_ENTITIES)


@pytest.mark.requirement("reply:entities")
@settings(max_examples=100)
@given(value=st.text(), think=st.text())
def test_any_reply_that_was_escaped_for_a_page_is_read_as_it_was(value: str, think: str) -> None:
    text = json.dumps({"think": think, "content": f"c{value}"}, ensure_ascii=False)
    escaped = reply(html.escape(text))
    assert (escaped.think, escaped.content) == (reply(text).think, reply(text).content)


@pytest.mark.requirement("reply:entities")
@pytest.mark.parametrize(
    ("text", "content"),
    [
        ('{"content": "a &quot;b&quot; &lt;"}', "a &quot;b&quot; &lt;"),
        ('{"content": "like this: &quot;b&quot;",}', "like this: &quot;b&quot;"),
        ('Write {&quot;a&quot;: 1} as {"content": "&lt;",}', "&lt;"),
    ],
)
def test_entities_in_a_reply_that_can_be_read_stay(text: str, content: str) -> None:
    result = reply(text)
    assert (result.content, Repair.HTML_ENTITIES in result.repairs) == (content, False)


@pytest.mark.requirement("reply:code-language")
@pytest.mark.parametrize("language", [{}, {"language": ""}, {"language": " "}, {"language": None}, {"language": 5}])
def test_code_without_a_language_is_a_problem(language: JsonObject) -> None:
    """003: "code 类型务必指定 language"."""
    code: JsonObject = {"type": "code", "content": "1", **language}
    assert problems(with_content("{{code:a}}", a=code)) == [("MISSING_LANGUAGE", "a")]
    assert problems(with_content("{{code:a}}", a=CODE)) == []
    assert problems(with_content("{{latex:a}}", a={"type": "latex", "content": "x"})) == []


@pytest.mark.requirement("reply:fences")
@pytest.mark.parametrize(
    "text",
    [
        '```json\n{"content": "a ```py\\nx\\n``` b"}\n```',
        '```JSON\n{"content": "a ```py\\nx\\n``` b"}\n```',
        '````\n{"content": "a ```py\\nx\\n``` b"}\n````',
        '~~~json\n{"content": "a ```py\\nx\\n``` b"}\n~~~',
        '```json\n{"content": "a ```py\\nx\\n``` b"}',
        'Look:\n```py\nd = {x: 1}\n```\nso\n```json\n{"content": "a ```py\\nx\\n``` b"}\n```\nBye {name}',
        '```json\n{"content": "a ```py\nx\n``` b"}\n```',
    ],
)
def test_fences_are_passed_over_and_those_inside_strings_are_kept(text: str) -> None:
    assert reply(text).content == "a ```py\nx\n``` b"


@pytest.mark.requirement("reply:repaired")
@pytest.mark.parametrize(
    ("text", "content", "think", "repair"),
    [
        ('Sure! {"content": "c"} Bye', "c", None, Repair.TEXT_AROUND),
        ('\ufeff{"content": "c",}', "c", None, Repair.TRAILING_COMMA),
        ('<think>is {"content": "no"}?</think>{"content": "c"}', "c", 'is {"content": "no"}?', Repair.THINK_TAGS),
        ('so {"content": "no"}</think>{"content": "c"}', "c", 'so {"content": "no"}', Repair.THINK_TAGS),
        ('<think>a</think>{"content": "c", "think": "b"}', "c", "b", Repair.THINK_TAGS),
        ('{"content": "a <think>b</think> c",}', "a <think>b</think> c", None, Repair.TRAILING_COMMA),
        ('<think>{"content": "c"}</think>', "c", None, Repair.TEXT_AROUND),
        ('{"think": "t"}\n{"content": "c"}', "c", "t", Repair.SEVERAL_OBJECTS),
        (json.dumps('{"content": "c"}'), "c", None, Repair.DOUBLE_ENCODED),
        (json.dumps(json.dumps('{"content": "c"}')), "c", None, Repair.DOUBLE_ENCODED),
        ('{\\"content\\": \\"c\\", \\"think\\": \\"t\\"}', "c", "t", Repair.DOUBLE_ENCODED),
        ('"content": "c", "think": "t"}', "c", "t", Repair.MISSING_BRACE),
        ('{"response": {"content": "c"}}', "c", None, Repair.TEXT_AROUND),
        ('{"content": "c"}, "think": "t"}', "c", "t", Repair.MISMATCHED_BRACKET),
        ('in {x: y we have\n{"content": "c"}', "c", None, Repair.TEXT_AROUND),
        ('{"content": "c\nd"}', "c\nd", None, Repair.RAW_CONTROL),
        ("{'content': 'c'}", "c", None, Repair.QUOTES),
        ('{"content": "c", think: "t"}', "c", "t", Repair.UNQUOTED),
        ('{"content": "$\\frac12 \\times \\nabla$\\nnext"}', "$\\frac12 \\times \\nabla$\nnext", None, Repair.LATEX),
        ('{"content": "\\alpha"}', "\\alpha", None, Repair.ESCAPES),
        ('{"content": "\\ud83d"}', "\ufffd", None, Repair.SURROGATES),
        ('{"content": "\ud83d"}', "\ufffd", None, Repair.SURROGATES),
        ('{"content": "c", "n": NaN}', "c", None, Repair.LITERALS),
    ],
)  # fmt: skip
def test_the_object_is_found_and_mended_and_the_repair_is_named(
    text: str, content: str, think: str | None, repair: Repair
) -> None:
    result = reply(text)
    assert (result.content, result.think) == (content, think)
    assert repair in result.repairs


@pytest.mark.requirement("reply:repaired")
def test_valid_escapes_are_no_repair() -> None:
    assert reply('{"content": "\\\\frac \\n \\ud83d\\ude00"}') == Reply("\\frac \n 😀")


@pytest.mark.requirement("reply:truncated")
def test_the_best_prefix_of_a_cut_reply_is_kept_and_marked() -> None:
    result = reply(FLOW[:-8])
    assert result.attachments == {"f": Attachment("f", "mermaid", "graph TD\nA")}
    assert result.is_truncated
    assert not reply(FLOW).is_truncated
    assert reply('```json\n{"content": "a\nb\n```').content == "a\nb"
    assert problems(FLOW[:60]) == [("INVALID_ATTACHMENT", "f"), ("MISSING_ATTACHMENT", "f")]


@pytest.mark.requirement("reply:lenient")
def test_keys_are_read_in_any_case_and_ids_as_they_are() -> None:
    text = (
        '{"Content": "{{CODE: A }}", "CONTENT": "{{Code:A}}", '
        '"ATTACHMENTS": {"A": {"TYPE": "Code", "Content": "1", "LANGUAGE": "py"}}}'
    )
    result = reply(text)
    assert (result.content, result.attachments["A"]) == ("{{Code:A}}", Attachment("A", "code", "1", "py"))
    assert problems(text) == [("DUPLICATE_KEY", None)]


@pytest.mark.requirement("reply:parse")
def test_placeholders_and_attachments_that_do_not_fit_are_reported() -> None:
    code = {"type": "code", "content": "1", "language": "py"}
    assert problems(with_content("{{code:a}} {{ Code : a }}", a=code)) == []
    assert problems(with_content("{{code:b}} {{code:b}}")) == [("MISSING_ATTACHMENT", "b")]
    assert problems(with_content("{{latex:a}}", a=code)) == [("MISMATCHED_TYPE", "a")]
    assert problems(with_content("text", a=code)) == [("UNUSED_ATTACHMENT", "a")]
    assert problems(with_content("{{user:name}}")) == [("UNKNOWN_TYPE", "name")]
    assert problems(with_content("{{poem:a}}", a={"type": "poem", "content": "x"})) == [("UNKNOWN_TYPE", "a")]
    assert problems(with_content("{{code:a}}", a={**code, "content": "{{code:b}}"})) == []


@pytest.mark.requirement("reply:parse")
@pytest.mark.parametrize(
    "content",
    [
        "`{{code:a}}`",
        "``x ` {{code:a}}``",
        "```\n{{code:a}}\n```",
        "~~~\n```\n{{code:a}}\n~~~",
        "````\n```\n{{code:a}}",
        "- ```\n  {{code:a}}\n  ```",
        "10. ~~~\n    {{code:a}}\n    ~~~",
        "> - ```py\n>   {{code:a}}\n>   ```",
        "- x\n\n    ```\n    {{code:a}}\n    ```",
    ],
)
def test_a_placeholder_inside_code_is_text(content: str) -> None:
    assert problems(with_content(content)) == []


@pytest.mark.requirement("reply:parse")
@pytest.mark.parametrize(
    "content",
    [
        "`a` {{code:a}} `b`",
        "` {{code:a}}",
        "`\n\n{{code:a}}`",
        "```\n```\n{{code:a}}",
        "- ```\n  x\n  ```\n\n{{code:a}}",
        "1. ```\n   x\n   ```\n2. {{code:a}}",
        "> ```\n> x\n> ```\n\n{{code:a}}",
    ],
)
def test_a_placeholder_beside_code_is_one(content: str) -> None:
    assert problems(with_content(content)) == [("MISSING_ATTACHMENT", "a")]


@pytest.mark.requirement("reply:placeholder-faults")
@pytest.mark.parametrize("braces", ["", "{ " * 99, "{ " * 100, "{ " * 5000, "{{code: }} {{code:\u3000}}" * 200])
def test_a_placeholder_is_found_after_any_number_of_braces(braces: str) -> None:
    problems = reply(json.dumps({"content": braces + "{{code:a}}" + braces + "{{code:b}}"})).problems
    assert [problem.id for problem in problems] == ["a", "b"]


@pytest.mark.requirement("reply:parse")
@pytest.mark.parametrize("type_", list(AttachmentType))
def test_every_type_is_known_with_its_fields(type_: AttachmentType) -> None:
    entry = {"type": type_.value, "content": "x", "language": "l", "title": "t"}
    result = reply(with_content(f"{{{{{type_}:a}}}}", a=entry))
    assert result.attachments == {"a": Attachment("a", type_.value, "x", "l", "t")}
    assert (result.attachments["a"].to_dict(), result.problems) == (entry, ())


@pytest.mark.requirement("reply:parse")
def test_tables_and_charts_may_be_data() -> None:
    table: dict[str, Json] = {"columns": ["a"], "rows": [[1]]}
    text = with_content("{{table:t}}{{table:u}}", t={"type": "table", "content": table}, u={"type": "table", **table})
    assert [item.content for item in reply(text).attachments.values()] == [table, table]
    assert reply(with_content("{{chart:c}}", c={"type": "chart", "content": {"type": "bar"}})).problems == ()


@pytest.mark.requirement("reply:fields")
@pytest.mark.parametrize(
    ("attachments", "expected", "ids"),
    [
        ("null", [("WRONG_TYPE", None)], []),
        ("[]", [("WRONG_TYPE", None)], []),
        (json.dumps([{"id": "a", **CODE}]), [("WRONG_TYPE", None)], ["a"]),
        (json.dumps(json.dumps({"a": CODE})), [("WRONG_TYPE", None)], ["a"]),
        ('"{{code:a}}"', [("WRONG_TYPE", None)], []),
        (
            json.dumps({"a": {**CODE, "a": CODE, "b": CODE}}),
            [("WRONG_TYPE", "b"), ("UNUSED_ATTACHMENT", "b")],
            ["a", "b"],
        ),
        ('{"a": null}', [("INVALID_ATTACHMENT", "a"), ("MISSING_ATTACHMENT", "a")], []),
        ('{"a": {"content": "1"}}', [("INVALID_ATTACHMENT", "a"), ("MISSING_ATTACHMENT", "a")], []),
        (json.dumps({"a": {**CODE, "content": 5}}), [("WRONG_TYPE", "a")], ["a"]),
        ('{"a": {"type": "chart", "content": 1e999}}', [("INVALID_ATTACHMENT", "a"), ("MISSING_ATTACHMENT", "a")], []),
    ],
)  # fmt: skip
def test_attachments_of_the_wrong_form_are_a_problem_and_no_error(
    attachments: str, expected: list[tuple[str, str | None]], ids: list[str]
) -> None:
    used = "{{code:a}}" if "a" in ids or '"a"' in attachments else "x"
    text = f'{{"content": "{used}", "attachments": {attachments}}}'
    assert (problems(text), list(reply(text).attachments)) == (expected, ids)


@pytest.mark.requirement("reply:parse")
def test_attachments_are_bounded_in_number_and_size() -> None:
    many = {f"a{number}": {"type": "code", "content": "x"} for number in range(MAX_ATTACHMENTS + 1)}
    result = reply(json.dumps({"content": "x", "attachments": many}))
    assert len(result.attachments) == MAX_ATTACHMENTS
    assert result.problems[0].code == "TOO_MANY"
    large = {"type": "code", "content": "x" * (MAX_ATTACHMENT_BYTES + 1)}
    assert problems(with_content("x", a=large)) == [("TOO_LARGE", "a")]


@pytest.mark.requirement("reply:parse")
def test_a_stream_shows_what_has_come() -> None:
    stream = ReplyStream()
    text = "<think>hm</think>Sure: ```json\n" + FLOW.replace("见", "one\\ntwo \\frac ")
    seen = set()
    for char in text:
        stream.feed(char)
        seen.add(stream.so_far.content)
    assert {"", "one", "one\ntwo ", "one\ntwo \\frac "} <= seen
    assert stream.so_far.think == "hm"
    assert stream.so_far.attachments == {"f": Attachment("f", "mermaid", "graph TD\nA-->B")}
    assert stream.result() == parse_reply(text)


@pytest.mark.requirement("reply:parse")
@pytest.mark.parametrize(
    "text",
    [
        'One: {"content": "first"} or {"content": "other", "think": "t"}',
        '{"content": ""} {"content": "first"} {"Content": ""}',
        '{"think": "a"} {"think": "t", "content": "first"} {"think": "b"}',
        '{"content": "first"}\n{"attachments": {"f": {"type": "code", "content": "1"}}}',
    ],
)
def test_a_stream_of_several_objects_shows_the_one_that_is_the_reply_and_takes_nothing_back(text: str) -> None:
    stream, seen = ReplyStream(), [""]
    for char in text:
        stream.feed(char)
        assert stream.so_far.content.startswith(seen[-1])
        seen.append(stream.so_far.content)
    complete = reply(text)
    assert (
        (stream.so_far.content, stream.so_far.think) == (complete.content, complete.think) == ("first", complete.think)
    )
    assert stream.so_far.attachments == complete.attachments


@pytest.mark.requirement("reply:parse")
def test_a_stream_drops_what_was_drafted_before_a_lone_closing_tag_of_thinking_when_the_reply_begins() -> None:
    stream = ReplyStream()
    stream.feed('Say {"content": "draft"}?</think>')
    assert stream.so_far.content == "draft"
    stream.feed('{"content": "fin')
    assert stream.so_far.content == "fin"


@pytest.mark.requirement("reply:parse")
@pytest.mark.parametrize(
    "unit", ['{"a":', '{"a": 1}", "', '"', "{", "\\", '",', '{"content":"', "{/*", "<think>", "```\n", "{{a:", " ", "`"]
)
def test_time_is_linear_on_hostile_text(unit: str) -> None:
    def seconds(count: int) -> float:
        text, times = '{"content": "x' + unit * (count // len(unit)), []
        for _ in range(3):  # the least is that of the work alone
            begin = time.process_time()
            parse_reply(text)
            times.append(time.process_time() - begin)
        return min(times)

    assert seconds(160_000) < 40 * max(
        seconds(20_000), 0.005
    )  # 8 times the text; 64 times the time if it were quadratic


keys = st.sampled_from(["think", "title", "x"])
words = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("\n{}\"'\\:,` "))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | words,
    lambda inner: st.lists(inner) | st.dictionaries(words, inner),
    max_leaves=8,
)
objects = st.builds(
    lambda more, content: {**more, "content": content}, st.dictionaries(keys, values), words.filter(bool)
)
pieces = st.sampled_from([*"ab\"'\\{}[]:：,，/*`~<>tn \n", "content", '"content":', "<think>", "{{code:a}}", '{"'])
texts = st.lists(pieces).map("".join)


@pytest.mark.requirement("reply:parse")
@given(objects, st.booleans())
def test_any_object_with_a_content_survives(value: dict[str, Json], escaped: bool) -> None:
    result = reply(json.dumps(value, ensure_ascii=escaped))
    think = value.get("think")
    assert (result.content, result.think) == (value["content"], think if isinstance(think, str) else None)
    assert result.repairs == ()


@pytest.mark.requirement("reply:truncated", "reply:parse")
@given(objects, st.data())
def test_any_prefix_is_read_or_refused(value: dict[str, Json], data: st.DataObject) -> None:
    text = json.dumps(value)
    result = parse_reply(text[: data.draw(st.integers(0, len(text)))])
    assert json.loads(json.dumps(result.to_dict())) == result.to_dict()


@pytest.mark.requirement("reply:parse", "reply:failure")
@given(st.one_of(texts, st.text()))
def test_any_text_is_read_or_refused(text: str) -> None:
    result = parse_reply(text)
    assert isinstance(result, Reply) or result.raw == text
    assert json.loads(json.dumps(result.to_dict())) == result.to_dict()


@pytest.mark.requirement("reply:parse")
@given(st.one_of(texts, objects.map(json.dumps)), st.data())
def test_any_chunking_of_a_stream_gives_the_same_result(text: str, data: st.DataObject) -> None:
    stream = ReplyStream()
    rest = text
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        stream.feed(rest[:size])
        rest = rest[size:]
        assert stream.so_far.repairs == (Repair.TRUNCATED,)
    assert stream.result() == parse_reply(text)
