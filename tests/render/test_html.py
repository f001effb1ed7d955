"""Structured replies as HTML: thinking folded, content as Markdown, attachments in their places, faults in sight."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.render.elements import Element, faults, root
from toolyard.protocol.json import Json
from toolyard.protocol.replies.reply_prompt import Language
from toolyard.protocol.replies.reply_values import ProblemCode, Reply, ReplyError
from toolyard.protocol.reply import parse_reply
from toolyard.render.html import to_html

EXAMPLES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "vectors" / "reply_examples.json").read_text("utf-8")
)


def drawn(content: str, think: str | None = None, **attachments: Json) -> Element:
    written = {"think": think, "content": content, "attachments": attachments}
    reply = parse_reply(json.dumps(written, ensure_ascii=False))
    assert isinstance(reply, Reply), reply
    html = to_html(reply)
    assert faults(html) == []
    return root(html)


def tags(element: Element) -> list[str]:
    return [child.tag for child in element.children]


def mermaid(source: str = "graph TD\nA-->B") -> dict[str, Json]:
    return {"type": "mermaid", "content": source}


def code(source: str, language: str = "python") -> dict[str, Json]:
    return {"type": "code", "language": language, "content": source}


@pytest.mark.requirement("reply:seed-examples")
@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
@pytest.mark.parametrize("language", Language)
def test_every_example_is_drawn_with_nothing_missing(example: dict[str, Any], language: Language) -> None:
    html = to_html(parse_reply(example["raw"]), language)
    page, expected = root(html), example["expected"]
    assert faults(html) == []
    assert page.all(class_="warning") == []
    assert [one.text for one in page.all("details")] == (
        [_folded(expected["think"], language)] if expected["think"] else []
    )
    for attachment in expected["attachments"].values():
        assert attachment["content"].strip() in page.text or attachment["content"] in html
    assert "{{" not in page.text


def _folded(think: str, language: Language) -> str:
    return ("Thinking" if language is Language.ENGLISH else "思考过程") + think + "\n"


@pytest.mark.requirement("reply:seed-examples")
def test_the_examples_of_plain_text_and_of_thinking_have_one_paragraph() -> None:
    plain, thinking = (root(to_html(parse_reply(EXAMPLES[number]["raw"]))) for number in (5, 6))
    assert (tags(plain), plain.one("p").text) == (["div"], "这是一个简单的回复，不需要图表或代码。")
    assert tags(thinking) == ["details", "div"]
    assert thinking.one("div", "content").one("p").text == "今天天气晴朗，温度 25°C。"


@pytest.mark.requirement("reply:seed-examples", "reply:placeholders")
def test_the_example_with_a_flowchart_has_it_between_its_sentences() -> None:
    content = root(to_html(parse_reply(EXAMPLES[7]["raw"]))).one("div", "content")
    assert tags(content) == ["p", "figure", "p"]
    source = content.one("pre", "mermaid-source")
    assert source.attributes["data-kind"] == "flowchart"
    assert source.text == EXAMPLES[7]["expected"]["attachments"]["login_flow"]["content"]


@pytest.mark.requirement("reply:seed-examples", "reply:attachments")
def test_the_example_with_chart_and_code_has_both_in_order() -> None:
    content = root(to_html(parse_reply(EXAMPLES[8]["raw"]))).one("div", "content")
    assert tags(content) == ["p", "figure", "p", "figure", "p"]
    assert [one.classes for one in content.all("figure")] == [{"mermaid"}, {"code"}]
    listing = content.one("code")
    assert (listing.classes, listing.text) == (
        {"language-python"}, EXAMPLES[8]["expected"]["attachments"]["bubble_impl"]["content"])  # fmt: skip
    assert listing.one("span", "nf").text == "bubble_sort"


@pytest.mark.requirement("reply:shown")
def test_thinking_is_folded_markdown_apart_from_the_content() -> None:
    page = drawn("content", think="**first** {{code:x}}\n\n- a\n- b")
    assert tags(page) == ["details", "div"]
    details = page.children[0]
    assert "open" not in details.attributes
    assert (details.classes, tags(details)) == ({"think"}, ["summary", "p", "ul"])
    assert details.one("strong").text == "first"
    assert details.one("p").text == "first {{code:x}}"  # placeholders are those of the content
    assert page.all(class_="warning") == []


@pytest.mark.requirement("reply:shown")
@pytest.mark.parametrize("think", [None, "", " \n"])
def test_no_thinking_makes_no_section(think: str | None) -> None:
    assert tags(drawn("x", think=think)) == ["div"]


@pytest.mark.requirement("reply:shown")
def test_content_is_markdown() -> None:
    page = drawn(
        "# Title\n\n*a* **b** ~~c~~ `d`[^1]\n\n1. x\n2. y\n\n| l | r |\n|:--|--:|\n| 1 | 2 |\n\n- [ ] to do\n"
        "- [x] done\n\n> quote\n\n---\n\n```python\nprint(1)\n```\n\n[^1]: note"
    )
    assert [page.one(tag).text for tag in ("h1", "em", "strong", "s")] == ["Title", "a", "b", "c"]
    assert [cell.classes for cell in page.all("td")] == [{"align-left"}, {"align-right"}]
    assert [(box.text, box.attributes["aria-checked"]) for box in page.all(class_="task")] == [
        ("☐", "false"), ("☑", "true")]  # fmt: skip
    assert page.one("figure").one("code").classes == {"language-python"}
    assert (
        page.one("section", "footnotes").one("li").attributes["id"] == page.one("sup").one("a").attributes["href"][1:]
    )
    assert page.one("blockquote").text.strip() == "quote"


@pytest.mark.requirement("reply:shown")
def test_the_footnotes_of_different_texts_have_different_ids() -> None:
    page = drawn("a[^1]\n\n[^1]: x", think="b[^1]\n\n[^1]: y")
    other = drawn("c[^1]\n\n[^1]: z")
    ids = [one.attributes["id"] for one in (*page.all(), *other.all()) if "id" in one.attributes]
    assert len(ids) == len(set(ids)) == 6


@pytest.mark.requirement("reply:placeholders")
def test_a_placeholder_in_code_stays_text() -> None:
    page = drawn(
        "`{{code:x}}`\n\n```\n{{code:x}}\n```\n\n~~~\n{{code:x}}\n~~~\n\n{{code:x}}", x=code("one = 1\ntwo = 2")
    )
    assert [one.text for one in page.all("code")] == ["{{code:x}}", "{{code:x}}\n", "{{code:x}}\n", "one = 1\ntwo = 2"]


@pytest.mark.requirement("reply:placeholders", "s:S-68")
def test_what_is_inserted_is_not_searched_again() -> None:
    page = drawn("{{code:a}}\n\n{{table:t}}", a=code("{{code:b}} {{table:t}}"), b=code("secret"),
                 t={"type": "table", "content": "x,y\n{{code:b}},<b>{{code:a}}</b>"})  # fmt: skip
    assert page.one("figure", "table").all("figure") == []
    assert [one.text for one in page.one("div", "content").all("code")] == ["{{code:b}} {{table:t}}"]
    assert page.one("section", "rest").one("code").text == "secret"


@pytest.mark.requirement("reply:placeholders")
def test_in_a_sentence_formula_picture_and_short_code_stand_in_the_line() -> None:
    page = drawn(
        "See {{latex:f}} and {{code:c}} and {{image:i}} here.",
        f={"type": "latex", "content": "E = mc^2"},
        c=code("x = 1\n"),
        i={"type": "image", "content": "https://example.com/i.png"},
    )
    assert tags(page.one("div", "content")) == ["p"]
    assert tags(page.one("p")) == ["span", "code", "span"]
    assert page.one("code").text == "x = 1"


@pytest.mark.requirement("reply:placeholders")
@pytest.mark.parametrize(
    ("content", "shape"),
    [
        ("before {{mermaid:m}} after", ["p", "figure", "p"]),
        ("before\n{{mermaid:m}}\nafter", ["p", "figure", "p"]),
        ("before:\n{{mermaid:m}}", ["p", "figure"]),
        ("{{mermaid:m}}", ["figure"]),
        ("**{{mermaid:m}}**", ["figure"]),
        ("    {{mermaid:m}}", ["figure"]),
        ("{{ Mermaid ： m }}", ["figure"]),
        ("{{mermaid:m}}\n{{latex:f}}\n{{mermaid:m}}", ["figure", "div", "figure"]),
        ("a\n\n{{latex:f}}\n\nb", ["p", "div", "p"]),
    ],
)
def test_a_block_in_a_sentence_stands_between_its_halves(content: str, shape: list[str]) -> None:
    page = drawn(content, m=mermaid(), f={"type": "latex", "content": "x"})
    assert tags(page.one("div", "content")) == shape


@pytest.mark.requirement("reply:placeholders")
def test_a_block_in_a_list_stands_in_its_item() -> None:
    page = drawn("- first\n  {{mermaid:m}}\n- second", m=mermaid())
    first, second = page.all("li")
    assert len(first.all("figure")) == 1
    assert second.text.strip() == "second"


@pytest.mark.requirement("reply:placeholders")
@pytest.mark.parametrize("content", ["# {{mermaid:m}}", "|a|\n|-|\n|{{mermaid:m}}|", "*x {{mermaid:m}} y*"])
def test_where_no_block_can_stand_a_reference_is_left_and_the_attachment_follows(content: str) -> None:
    page = drawn(content, m=mermaid() | {"title": "The flow"})
    assert page.one(class_="reference").text == "see The flow"
    assert len(page.one("section", "rest").all("pre", "mermaid-source")) == 1


@pytest.mark.requirement("reply:placeholders")
def test_a_picture_may_be_named_in_markdown_of_a_picture() -> None:
    page = drawn("![alt]({{image:i}})", i={"type": "image", "content": "<svg></svg>"})
    assert page.one("img").attributes["src"].startswith("data:image/svg+xml;base64,")
    assert page.all("section", "rest") == []


@pytest.mark.requirement("reply:placeholder-faults", "s:S-68")
@pytest.mark.parametrize("content", ["a {{code:none}} b", "{{code:none}}", "# {{code:none}}", "- {{code:none}}"])
def test_a_missing_attachment_is_a_warning_in_its_place(content: str) -> None:
    page = drawn(content)
    assert page.one(class_="warning").text == '⚠️ There is no attachment "none" for {{code:none}}.'


@pytest.mark.requirement("reply:placeholder-faults")
def test_a_mismatched_type_is_a_warning_and_what_it_names_is_shown() -> None:
    content = drawn("a\n\n{{code:m}}", m=mermaid()).one("div", "content")
    assert [sorted(one.classes) for one in content.children[1:]] == [["card", "warning"], ["mermaid"]]
    assert content.one(class_="warning").text == '⚠️ {{code:m}} names an attachment of the type "mermaid".'


@pytest.mark.requirement("reply:placeholder-faults")
def test_an_unused_attachment_comes_at_the_end_under_a_note() -> None:
    page = drawn("text", first=code("one()"), second=mermaid())
    rest = page.children[-1]
    assert (rest.tag, rest.classes) == ("section", {"rest"})
    assert rest.children[0].text == "Attachments that are not in the text"
    assert [one.text for one in rest.all(class_="attachment-id")] == ["first", "second"]
    assert len(rest.all("figure")) == 2


@pytest.mark.requirement("reply:placeholder-faults")
def test_an_unknown_type_is_a_warning_with_the_content_as_text() -> None:
    page = drawn("{{model:m}} and {{name:value}}", m={"type": "model", "content": "<b>3D</b>"})
    assert [one.text for one in page.all(class_="warning")] == [
        '⚠️ The type "model" is not known.', '⚠️ {{name:value}} has the type "name", which is not known.']  # fmt: skip
    assert page.one("pre", "source").text == "<b>3D</b>"


@pytest.mark.requirement("reply:placeholder-faults")
def test_other_problems_and_a_broken_end_are_said() -> None:
    page = drawn("x", a={"type": "code"})
    assert "has no content" in page.one("aside", "problems").text
    cut = root(to_html(parse_reply('{"content": "half of a sent')))
    assert cut.one("aside", "problems").text == "The reply is incomplete: its text broke off."


@pytest.mark.requirement("reply:placeholder-faults", "reply:placeholders")
@pytest.mark.parametrize(
    "content",
    [
        "{{code:a}} {{code:none}} `{{code:b}}`",
        "```\n{{code:none}}\n```\n\n{{code:b}} {{mermaid:a}}",
        "``{{code:none}}` {{code:a}}``\n\n{{code:b}}",
        "`open {{code:a}}\n\n{{code:b}}`",
        "{{{code:a}}} {{code:b}}}} {{code:}} {{code: }} {{code:a\nb}}",
        "~~~\n{{code:a}}\n```\n{{code:b}}",
        "* {{code:a}}\n* **{{table:b}}**\n\n> {{chart:none}}",
        "| x |\n|---|\n| {{code:a}} |\n\n# {{code:b}}\n\n[{{code:none}}](https://example.com)",
        "$a$ {{code:a}} <b>{{code:b}}</b> &amp; {{code:none}}",
    ],
)
def test_what_is_reported_and_what_is_shown_agree(content: str) -> None:
    page = drawn(content, a=code("first()"), b=code("second()"))
    reply = parse_reply(json.dumps({"content": content, "attachments": {"a": code("first()"), "b": code("second()")}}))
    assert isinstance(reply, Reply)
    warned = {problem.message for problem in reply.problems if problem.code is not ProblemCode.UNUSED_ATTACHMENT}
    unused = [problem.id for problem in reply.problems if problem.code is ProblemCode.UNUSED_ATTACHMENT]
    assert {one.text.removeprefix("⚠️ ") for one in page.all(class_="warning")} == warned
    assert [one.text for one in page.all(class_="attachment-id")] == unused


@pytest.mark.requirement("reply:failure-shown", "s:S-69:rendered")
@pytest.mark.parametrize(
    ("language", "title", "place"),
    [(Language.ENGLISH, "⚠️", "line 2, column 1"), (Language.CHINESE, "⚠️ JSON 解析失败", "第 2 行第 1 列")],
)
def test_a_reply_that_cannot_be_read_shows_the_error_its_place_and_the_raw_text(
    language: Language, title: str, place: str
) -> None:
    raw = '\n{"think": "</pre><script>alert(1)</script>"}'
    error = parse_reply(raw)
    assert isinstance(error, ReplyError)
    html = to_html(error, language)
    page = root(html)
    assert faults(html) == []
    assert page.attributes["lang"] == language
    assert title in page.one("strong").text
    assert place in page.one("p", "error").text
    assert page.one("pre").text == raw


@pytest.mark.requirement("reply:shown")
def test_what_the_page_says_itself_is_in_the_language_asked_for() -> None:
    html = to_html(Reply("{{code:x}}", think="t"), Language.CHINESE)
    assert root(html).one("summary").text == "思考过程"
    assert "没有对应的附件" in root(html).one(class_="warning").text


@pytest.mark.requirement("reply:shown")
def test_replies_drawn_at_the_same_time_do_not_disturb_each_other() -> None:
    replies = [parse_reply(example["raw"]) for example in EXAMPLES] + [
        Reply(f"https://example.com/{number} ```x``` [^1]\n\n```python\nx = {number}\n```\n\n[^1]: {number}")
        for number in range(40)
    ]
    alone = [to_html(reply) for reply in replies]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(to_html, replies * 3)) == alone * 3
