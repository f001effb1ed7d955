"""A reply in a terminal: readable, within its width, and nothing that a terminal would obey but colours."""

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from tests.render.test_markdown import HOSTILE, PIECES
from toolyard.protocol.replies.reply_prompt import Language
from toolyard.protocol.replies.reply_values import Attachment, Reply
from toolyard.protocol.reply import parse_reply
from toolyard.render.formulas import make_readable
from toolyard.render.terminal import to_terminal

SGR = re.compile(r"\x1b\[[0-9;]*m")
OBEYED = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
EXAMPLES = json.loads((Path(__file__).parents[1] / "vectors/reply_examples.json").read_text("utf-8"))
CONTROLS = "".join(map(chr, [*range(0x20), *range(0x7F, 0xA0), 0x061C, *range(0x2028, 0x202F), *range(0x2066, 0x206A)]))


def plain(content: str, width: int = 60, think: str | None = None, **attachments: Attachment) -> str:
    return to_terminal(Reply(content, think, attachments), width=width, colour=False)


def one(type_: str, content: Any, **named: str) -> Attachment:
    return Attachment("a", type_, content, **named)


@pytest.mark.requirement("reply:attachments", "reply:placeholders")
def test_a_diagram_is_drawn_and_code_formulas_and_pictures_are_shown() -> None:
    assert plain("{{mermaid:a}}", a=one("mermaid", "graph LR\nA[开始] --> B[End]")) == (
        "┌──────┐    ┌─────┐\n│ 开始 ├───►│ End │\n└──────┘    └─────┘\n"
    )
    assert plain("{{code:a}}", a=one("code", "if x:\n\ty()", language="python", title="T")) == (
        "T\n\n  if x:\n      y()\n"
    )
    assert plain("So {{latex:a}}.", a=one("latex", r"E = mc^2")) == "So E = mc².\n"
    assert plain("{{image:a}}", a=one("image", "https://e.com/a.png", title="示例")) == (
        "Image: 示例 (https://e.com/a.png)\n"
    )


@pytest.mark.requirement("reply:attachments")
@pytest.mark.parametrize(
    "source",
    [
        "this is no diagram",
        "flowchart TD\n" + "\n".join(f"A --> B{number}" for number in range(40)),  # too wide
        "flowchart TD\n" + "%% x\n" * 2_000,
        "gantt\n dateFormat YYYY-MM-DD\n a :a1, 0001-01-01, 99999999d",  # fails in the library
        "block-beta\n columns 9999999\n a b c",  # asks for more memory than there is
    ],
)
def test_a_diagram_that_cannot_be_drawn_shows_its_source(source: str) -> None:
    output = plain("{{mermaid:a}}\n\nafter", a=one("mermaid", source))
    assert [line.strip() for line in source.split("\n")[:3]] == [line.strip() for line in output.split("\n")[:3]][
        : source.count("\n") + 1
    ]
    assert "┌" not in output


@pytest.mark.requirement("reply:attachments:more")
def test_a_cell_without_blanks_is_folded_and_not_cut_off() -> None:
    sentence = "".join(chr(0x4E00 + number) for number in range(100))
    output = plain("{{table:a}}", a=one("table", {"columns": ["a", "b"], "rows": [["c", sentence]]}))
    assert all(cell_len(line) <= 60 for line in output.split("\n"))
    assert "".join(re.findall(r"[^\s─]", output)) == "abc" + sentence


@pytest.mark.requirement("reply:attachments:more")
def test_tables_charts_sound_and_film_are_shown() -> None:
    output = plain("{{table:a}}", a=one("table", {"columns": ["名称", "n"], "rows": [["苹果", 1], ["b", 22]]}))
    assert [line.split() for line in output.strip().split("\n") if "─" not in line] == [
        ["名称", "n"],
        ["苹果", "1"],
        ["b", "22"],
    ]
    wide = {"columns": [f"c{number}" for number in range(30)], "rows": [[f"v{number}" for number in range(30)]]}
    assert [f"c{number}: v{number}" for number in range(30)] == plain("{{table:a}}", a=one("table", wide)).split("\n")[
        :30
    ]
    config = {"type": "bar", "data": {"labels": ["x"], "datasets": [{"label": "s", "data": [5]}]}}
    chart = plain("{{chart:a}}", a=one("chart", config))
    assert re.search(r"s\n.*\n\s*x\s+5\n", chart)
    assert "datasets" not in chart
    assert plain("{{audio:a}}", a=one("audio", "data:audio/mpeg;base64,AAAA", title="Beep")) == (
        "Audio: Beep (audio/mpeg, 3 bytes, in the reply)\n"
    )
    assert plain("{{video:a}}", a=one("video", "https://e.com/v.mp4")) == "Video: https://e.com/v.mp4\n"


@pytest.mark.requirement("reply:shown")
def test_content_is_markdown_with_addresses_that_can_be_seen() -> None:
    output = plain("# Title\n\n- **a**\n- `b<c>`\n\n[x](https://e.com) <b> ![p](http://evil)")
    assert output == "Title\n\n • a\n • b<c>\n\nx (https://e.com) <b> p (http://evil)\n"
    assert "\x1b[" in to_terminal(Reply("# Title"), width=60, colour=True)


@pytest.mark.requirement("reply:shown")
def test_the_thinking_is_folded_to_four_lines_and_tells_how_long_it_is() -> None:
    think = "\n".join(f"line {number}" for number in range(12))
    assert plain("Done.", think=think) == (
        "│ Thinking\n│ line 0\n│ line 1\n│ line 2\n│ line 3\n│ … 85 characters in all\n\nDone.\n"
    )
    folded = to_terminal(Reply("好", "想" * 1_000), Language.CHINESE, width=40, colour=False).split("\n")
    assert (folded[0], len(folded[1:5]), folded[5]) == ("│ 思考过程", 4, "│ … 共 1000 个字符")
    assert "\x1b[2m│ Thinking" in to_terminal(Reply("Done.", think), width=60, colour=True)


@pytest.mark.requirement("reply:placeholder-faults", "s:S-68")
def test_placeholder_faults_show_and_attachments_are_not_read_again() -> None:
    output = plain("{{code:nope}} {{code:a}}", a=one("code", "{{code:b}}"), b=Attachment("b", "code", "SECRET"))
    assert "⚠️ {{code:nope}}: there is no such attachment" in output
    assert output.count("{{code:b}}") == 1
    assert output.index("does not use") < output.index("SECRET")


@pytest.mark.requirement("s:S-65", "reply:inert")
@pytest.mark.parametrize("colour", [True, False])
@pytest.mark.parametrize(
    "evil",
    [
        CONTROLS,
        "\x1b]0;owned\x07",
        "\x1b]8;;http://evil\x1b\\click\x1b]8;;\x1b\\",
        "\x1b[2J\x1b[31mred\x1b[0m",
        "\x9b31m\x9d0;x\x9c",
        "if admin\u202e \u2066// check\u2069 \u2066:",
        "&#27;[31m &#x9b;31m &#x202e; &rlm; &Tab; &NewLine;",
    ],
)
def test_no_control_of_the_model_reaches_the_terminal(evil: str, colour: bool) -> None:
    data: dict[str, Any] = {
        "table": {"columns": [evil], "rows": [[evil]]},
        "chart": {"data": {"labels": [evil], "datasets": [{"label": evil, "data": [1]}]}},
        "image": f"https://e.com/{evil}",
    }
    attachments = {
        f"{type_}{evil}": Attachment(f"{type_}{evil}", type_, data.get(type_, evil), evil, evil)
        for type_ in ("code", "latex", "table", "chart", "image", "audio", evil)
    }
    attachments["m"] = Attachment("m", "mermaid", f"graph TD\nA[{evil.replace(chr(10), ' ')}]")
    output = to_terminal(Reply(f"{evil}\n\n[{evil}](x) {{{{mermaid:m}}}} {{{{code:no{evil}}}}}", evil, attachments),
                        width=60, colour=colour)  # fmt: skip
    assert bool(SGR.search(output)) == colour
    assert OBEYED.findall(SGR.sub("", output) if colour else output) == []


@pytest.mark.requirement("s:S-65", "reply:inert")
@pytest.mark.parametrize("seed", range(60))
def test_no_mixture_of_markup_breaks_the_width_or_lets_a_control_through(seed: int) -> None:
    mix = random.Random(seed)
    content = "".join(mix.choices([*PIECES, "中文字符" * 9, "x" * 70, "🙂👨‍👩‍👧"], k=mix.randint(1, 30)))
    drawn = {id_: item for id_, item in HOSTILE.items() if id_ != "m"}
    for colour in (True, False):
        output = to_terminal(Reply(content, content, drawn), width=40, colour=colour)
        text = SGR.sub("", output) if colour else output
        assert OBEYED.findall(text) == []
        assert max(map(cell_len, text.split("\n"))) <= 40


@pytest.mark.requirement("s:S-65")
def test_long_code_and_long_content_are_cut_and_say_so() -> None:
    output = plain("{{code:a}}", a=one("code", "x = 1\n" * 1_000, language="python"))
    assert (output.count("x = 1"), "… 600 more lines" in output) == (400, True)
    output = plain("word " * 40_000)
    assert len(output) < 110_000
    assert re.search(r"… \d+ more characters: --to markdown\s+shows them", output)


@pytest.mark.requirement("reply:render")
@pytest.mark.parametrize("example", EXAMPLES)
def test_the_examples_of_the_format_are_shown_whole(example: dict[str, Any]) -> None:
    reply = parse_reply(example["raw"])
    assert isinstance(reply, Reply)
    output = to_terminal(reply, Language.CHINESE, width=100, colour=False)
    words = re.findall(r"\w+", re.sub(r"\{\{.*?\}\}", "", reply.content))
    assert [word for word in words if word not in output] == []
    assert max(map(cell_len, output.split("\n"))) <= 100
    drawn = [item for item in reply.attachments.values() if str(item.content).startswith("flowchart")]
    assert ("┌" in output) == bool(drawn)


@pytest.mark.requirement("reply:attachments")
@pytest.mark.parametrize(
    ("tex", "text"),
    [
        (r"\frac{a+b}{2} \times x^2", "(a+b)/2 × x²"),
        (r"\sum_{i=1}^{n} \alpha_i \leq \sqrt{x_1}", "∑ᵢ₌₁ⁿ αᵢ ≤ √(x₁)"),
        (r"\left( \text{if } x \right)", "( if x )"),
        (r"\unknown{x}^{ab}", r"\unknown{x}^(ab)"),
        (r"\frac{" * 500, r"\frac{" * 500),
    ],
)
def test_formulas_become_signs_and_what_is_not_known_stays(tex: str, text: str) -> None:
    assert make_readable(tex) == text


@pytest.mark.requirement("reply:shown")
def test_formulas_in_the_text_keep_every_sign() -> None:
    assert plain(r"So $a*b*c$, $\{x\} \\ y<z$ and $$p_1*q*r_1$$, for $5.") == (
        "So $a*b*c$, $\\{x\\} \\\\ y<z$ and $$p_1*q*r_1$$, for $5.\n"
    )
    assert plain("$$\n\\begin{cases}a*b&<*c*\\\\d\\end{cases}\n$$") == "  \\begin{cases}a*b&<*c*\\\\d\\end{cases}\n"
