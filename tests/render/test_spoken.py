"""What a model said, drawn while and after it is written, whatever it turns out to be."""

import json

import pytest

from tests.render.elements import faults, root
from toolyard.render.draft import Kind, detect_kind, draw, split_thinking

REPLY = json.dumps(
    {
        "think": "I draw it.",
        "content": "The flow:\n\n{{mermaid:flow}}\n\nand {{code:run}}.",
        "attachments": {
            "flow": {"type": "mermaid", "content": "graph TD\nA-->B"},
            "run": {"type": "code", "language": "sh", "content": "ls"},
        },
    }
)


@pytest.mark.requirement("http:reply-render")
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (REPLY, Kind.REPLY),
        (f"\ufeff\n <think>hm</think>\n{REPLY}", Kind.REPLY),
        (f"```json\n{REPLY}\n```", Kind.REPLY),
        ("{broken", Kind.REPLY),
        ('```json\n{"name": "a sample"}\n```', Kind.MARKDOWN),
        ("{{VCPName}} says hello", Kind.MARKDOWN),
        (f"Sure, an example: {REPLY}", Kind.MARKDOWN),
        ("", Kind.MARKDOWN),
    ],
)
def test_a_text_is_a_reply_by_how_it_begins(text: str, kind: Kind) -> None:
    assert detect_kind(text) is kind


@pytest.mark.requirement("http:reply-render")
def test_a_fence_that_may_still_become_a_reply_shows_no_code_before_it_is_known() -> None:
    fenced = f"```json\n{REPLY}\n```"
    assert {detect_kind(fenced[:end], partial=True) for end in range(1, len(fenced) + 1)} == {Kind.REPLY}
    assert detect_kind('```json\n{"name"', partial=True) is Kind.MARKDOWN
    assert detect_kind("```python\nx", partial=True) is Kind.MARKDOWN


@pytest.mark.requirement("http:reply-render")
def test_a_reply_that_is_being_written_never_shows_a_fault() -> None:
    for end in range(len(REPLY) + 1):
        drawn = draw(REPLY[:end], partial=True)
        page = root(drawn.html)
        assert drawn.error is None
        assert faults(drawn.html) == []
        assert [*page.all(class_="warning"), *page.all(class_="failure"), *page.all(class_="problems")] == []
        assert "{{" not in page.text
        assert "I draw it.".startswith(drawn.think)
    assert draw(REPLY, partial=True) == draw(REPLY)


@pytest.mark.requirement("http:reply-render")
def test_a_diagram_is_pending_until_all_of_it_has_come() -> None:
    begun = REPLY[: REPLY.index("A-->")]
    pending = root(draw(begun, partial=True).html).all(class_="pending")
    assert [(one.tag, one.attributes["data-kind"]) for one in pending] == [("div", "mermaid"), ("span", "code")]
    open_fence = "See\n\n- a\n\n  ```mermaid\n  graph TD\n  A-->B\n"
    assert root(draw(open_fence, partial=True).html).all(class_="mermaid-source") == []
    assert len(root(draw(open_fence + "  ```\n", partial=True).html).all(class_="mermaid-source")) == 1
    assert len(root(draw(open_fence).html).all(class_="mermaid-source")) == 1


@pytest.mark.requirement("http:reply-render")
def test_what_breaks_off_for_good_is_told() -> None:
    assert "incomplete" in draw(REPLY[:60]).html
    failed = draw('{"answer": 1}')
    assert failed.error is not None
    assert len(root(failed.html).all(class_="failure")) == 1


@pytest.mark.requirement("http:reply-render")
def test_thinking_is_apart_when_the_kind_is_found_out_and_folded_when_it_is_given() -> None:
    apart = draw("<think>First.</think>\nHello\n\n<think>Then.</think>\nBye")
    assert (apart.kind, apart.think) == (Kind.MARKDOWN, "First.\n\nThen.")
    assert root(apart.html).all("details") == []
    assert root(apart.html).text.split() == ["Hello", "Bye"]
    folded = root(draw("<think>First.</think>Hello", Kind.MARKDOWN).html).all(class_="think")
    assert [one.text for one in folded] == ["ThinkingFirst.\n"]
    assert draw(REPLY).think == "I draw it."
    assert len(root(draw(REPLY, Kind.REPLY).html).all(class_="think")) == 1


@pytest.mark.requirement("http:reply-render")
@pytest.mark.parametrize(
    ("text", "content", "think"),
    [
        ("what the prompt opened\n</think>\nHello", "\nHello", "what the prompt opened"),
        ("```\n<think>code</think>\n```\n", "```\n<think>code</think>\n```\n", ""),
        ("The tag `<think>` opens, `</think>` closes.", "The tag `<think>` opens, `</think>` closes.", ""),
        ("~~~\n```\n<think>\n~~~\n<think>a</think>b", "~~~\n```\n<think>\n~~~\nb", "a"),
        ("<THINKING>a</THINKING>b", "b", "a"),
        ("<think>never closed", "", "never closed"),
    ],
)
def test_thinking_is_what_stands_in_tags_outside_code(text: str, content: str, think: str) -> None:
    assert split_thinking(text) == (content, think)


@pytest.mark.requirement("http:reply-render")
def test_a_tag_that_is_being_written_does_not_flash() -> None:
    text = "<think>hm</think>Hello"
    seen = [split_thinking(text[:end], partial=True) for end in range(1, len(text) + 1)]
    assert all("hm".startswith(think) and "Hello".startswith(content) for content, think in seen)


@pytest.mark.requirement("http:reply-render")
def test_markdown_is_inert_and_its_placeholders_are_text() -> None:
    html = draw('<img src=x onerror=alert(1)> {{code:a}} <pre data-kind="x">').html
    assert faults(html) == []
    assert "{{code:a}}" in root(html).text
    assert root(html).all("img") == []


@pytest.mark.requirement("http:reply-render")
def test_a_chart_that_has_come_is_drawn_while_more_is_written_and_never_called_unreadable() -> None:
    chart = {"type": "bar", "data": {"labels": ["a"], "datasets": [{"label": "n", "data": [1]}]}}
    attachments = {"sales": {"type": "chart", "content": chart}, "last": {"type": "code", "content": "ls -la"}}
    text = json.dumps({"content": "{{chart:sales}}\n\n{{code:last}}", "attachments": attachments})
    seen = []
    for end in range(text.index('"chart"'), len(text) + 1):
        page = root(draw(text[:end], partial=True).html)
        assert page.all(class_="warning") == []
        seen.append("chart" if page.all("figure", class_="chart") else "pending")
    assert seen == sorted(seen, reverse=True)
    begun = root(draw(text[: text.index("ls -la")], partial=True).html)
    assert len(begun.all("figure", class_="chart")) == 1


@pytest.mark.requirement("http:reply-render")
@pytest.mark.parametrize("before", ["Look:\n\n", "- one\n  ", "1. ", "```\nx\n```\n\n"])
@pytest.mark.parametrize("fence", ["```mermaid\ngraph TD\nA-->B", "~~~python\nx = 1"])
def test_a_fence_whose_first_line_is_being_written_shows_nothing_of_it(before: str, fence: str) -> None:
    text = before + fence
    line_end = len(before) + fence.index("\n")
    without = draw(before, partial=True).html.count("<figure")
    for end in range(len(before), line_end + 1):
        drawn = draw(text[:end], partial=True).html
        assert (drawn.count("<figure"), drawn.count("`"), drawn.count("~")) == (without, 0, 0), text[:end]
    assert "x = 1" in draw("```\nx = 1\n```", partial=True).html


@pytest.mark.requirement("http:reply-render")
def test_a_closing_fence_at_the_end_closes_and_code_in_a_line_is_no_fence() -> None:
    assert len(root(draw("```mermaid\ngraph TD\nA-->B\n```", partial=True).html).all(class_="mermaid-source")) == 1
    assert "``x`" in root(draw("``x`", partial=True).html).text
    assert "`run it" in root(draw("`run it", partial=True).html).text
