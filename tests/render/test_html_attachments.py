"""Each type of attachment as HTML, and what of it is refused."""

import base64
import json
import struct

import pytest

from tests.fakes import bounded_work
from tests.render.elements import Element, faults, root
from toolyard.protocol.json import Json
from toolyard.protocol.replies.reply_values import Attachment, Reply
from toolyard.render.html import to_html

PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + struct.pack(">II", 3, 2) + b"\x08\x06\x00\x00\x00"
GIF = b"GIF89a" + struct.pack("<HH", 3, 2) + b"\x00\x00\x00"
JPEG = b"\xff\xd8\xff\xe0\x00\x04xx\xff\xff\xc0\x00\x0b\x08" + struct.pack(">HH", 2, 3) + b"\x01\x01\x11\x00"
WEBP = b"RIFF\x1e\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00" + b"\x02\x00\x00" + b"\x01\x00\x00"
WEBP_LOSSY = b"RIFF\x1e\x00\x00\x00WEBPVP8 \x0a\x00\x00\x00\x00\x00\x00\x9d\x01\x2a" + struct.pack("<HH", 3, 2)
WEBP_LOSSLESS = b"RIFF\x1e\x00\x00\x00WEBPVP8L\x0a\x00\x00\x00\x2f" + struct.pack("<I", 2 | 1 << 14) + b"\x00" * 5
PICTURES = {"png": PNG, "gif": GIF, "jpeg": JPEG, "webp": WEBP}
WAV = b"RIFF\x24\x00\x00\x00WAVEfmt "
MP4 = b"\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00"
WEBM = b"\x1aE\xdf\xa3\x9f\x42\x82\x84webm"


def uri(mime: str, data: bytes) -> str:
    return f"data:{mime};base64,{base64.b64encode(data).decode()}"


def drawn(kind: str, content: Json, **named: str) -> Element:
    html = to_html(Reply(f"{{{{{kind}:x}}}}", attachments={"x": Attachment("x", kind, content, **named)}))
    assert faults(html) == []
    return root(html).one("div", "content")


@pytest.mark.requirement("reply:attachments")
def test_a_diagram_is_its_source_for_the_console_to_draw() -> None:
    page = drawn("mermaid", 'sequenceDiagram\n  A->>B: <hi> & "you"', title="The <flow>")
    assert page.one("figcaption").text == "The <flow>"
    source = page.one("pre", "mermaid-source")
    assert (source.attributes["data-kind"], source.text) == (
        "sequencediagram",
        'sequenceDiagram\n  A->>B: <hi> & "you"',
    )


@pytest.mark.requirement("s:S-63:rendered")
@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('%%{init:{"securityLevel":"loose"}}%%\ngraph TD\nA-->B', "\ngraph TD\nA-->B"),
        ('graph TD\nA-->B\nclick A href "javascript:x"\nB-->C', "graph TD\nA-->B\nB-->C"),
        ("graph TD; A-->B; click A call f(); B-->C", "graph TD; A-->B; B-->C"),
        ("---\nconfig:\n  securityLevel: loose\n---\ngraph TD", "graph TD"),
        ('classDiagram\nlink A "https://e.example"\nA <|-- B', "classDiagram\nA <|-- B"),
        ("%%{in%%{init:{}}%%it:{}}%%\ngraph TD", "it:{}}%%\ngraph TD"),
        ("%%%%{x}%%{init:{}}%%\ngraph TD", "%% {init:{}}%%\ngraph TD"),
    ],
)
def test_settings_and_actions_are_not_in_the_diagram_that_is_drawn(source: str, expected: str) -> None:
    page = drawn("mermaid", source)
    assert page.one("pre", "mermaid-source").text.strip() == expected.strip()
    assert page.one("div", "note").text.startswith("Not drawn, because they are settings or actions: ")


@pytest.mark.requirement("s:S-63:rendered")
@pytest.mark.parametrize("source", ["graph TD\n" + "A-->B;" * 10_000, "graph TD\n" + "A-->B\n" * 2_001])
def test_a_huge_diagram_is_shown_and_not_drawn(source: str) -> None:
    page = drawn("mermaid", source)
    assert page.all("pre", "mermaid-source") == []
    assert (page.one("div", "note").text, page.one("pre", "source").text) == (
        "The diagram is too large to be drawn.", source)  # fmt: skip


@pytest.mark.requirement("reply:attachments", "s:S-65")
@pytest.mark.parametrize(
    ("language", "class_"),
    [("Python", "python"), ("js", "javascript"), ("C++", "cpp"), ("sh", "bash"), ("HTML", "html")],
)
def test_code_has_the_class_of_its_language_and_colours_by_class(language: str, class_: str) -> None:
    page = drawn("code", "if x: <b>1</b> # 'y'\n", language=language, title="a.py")
    listing = page.one("code")
    assert (listing.classes, listing.text) == ({f"language-{class_}"}, "if x: <b>1</b> # 'y'\n")
    assert listing.all("span")
    assert (page.one("span", "title").text, page.one("span", "language").text) == ("a.py", language)


@pytest.mark.requirement("s:S-65")
@pytest.mark.parametrize("language", ['"><script>', "klingon", "python x", "", "../x", "p" * 9000])
def test_a_language_that_is_not_on_the_list_gives_no_class(language: str) -> None:
    page = drawn("code", "if x: <b>\n", language=language)
    assert (page.one("code").attributes, page.one("code").all(), page.one("code").text) == ({}, [], "if x: <b>\n")


@pytest.mark.requirement("s:S-65")
def test_long_code_is_cut_with_a_note_and_very_long_code_is_not_coloured() -> None:
    page = drawn("code", "x = 1\n" * 100_000, language="python")
    assert len(page.one("code").text) == 200_000
    assert page.one("code").all() == []
    assert page.one("div", "note").text == "Only the first 200000 of 600000 characters are shown."


@pytest.mark.requirement("s:S-65")
@pytest.mark.parametrize(
    ("sign", "name"),
    [("\u202e", "⟨U+202E⟩"), ("\u2066", "⟨U+2066⟩"), ("\u200b", "⟨U+200B⟩"), ("\ufeff", "⟨U+FEFF⟩"), ("\x1b", "␛"),
     ("\x7f", "␡"), ("\x85", "⟨U+0085⟩"), ("\U000e0041", "⟨U+E0041⟩"), ("\xad", "⟨U+00AD⟩")],
)  # fmt: skip
@pytest.mark.parametrize("language", ["python", "klingon"])
def test_what_cannot_be_seen_in_code_is_named(sign: str, name: str, language: str) -> None:
    listing = drawn("code", f"a = 'x{sign}y'", language=language).one("code")
    assert sign not in listing.text
    assert listing.one("span", "control").text == name


@pytest.mark.requirement("s:S-65")
def test_marks_that_turn_text_around_are_named_in_prose_and_titles_too() -> None:
    html = to_html(
        Reply("a \u202eb\u202c ‎c", attachments={"\u202ei": Attachment("\u202ei", "code", "x", "\u202el", "\u202et")})
    )
    assert not set("\u202e\u202c") & set(html)
    assert "\u200e" in html  # a direction mark belongs to the writing of some languages


@pytest.mark.requirement("reply:attachments")
@pytest.mark.parametrize("tex", ["E = mc^2", "$E = mc^2$", "$$E = mc^2$$", "\\[E = mc^2\\]", "\\(E = mc^2\\)"])
def test_a_formula_is_mathml_with_its_tex_beside_it(tex: str) -> None:
    page = drawn("latex", tex)
    formula = page.one("div", "math")
    assert formula.attributes["data-tex"] == "E = mc^2"
    assert formula.one("math").attributes == {"display": "block"}
    assert formula.one("msup").text == "c2"


@pytest.mark.requirement("reply:attachments")
def test_formulas_in_the_text_are_mathml() -> None:
    page = root(
        to_html(
            Reply("It costs $5 and $6. But $a<b$ and $$x$$ and:\n\n$$\n\\begin{aligned}a&=b\\\\c&=d\\end{aligned}\n$$")
        )
    )
    assert [(one.tag, one.attributes["data-tex"]) for one in page.all(class_="math")] == [
        ("span", "a<b"), ("span", "x"), ("div", "\\begin{aligned}a&=b\\\\c&=d\\end{aligned}")]  # fmt: skip
    assert len(page.one("div", "math").all("mtr")) == 2
    assert "$5 and $6." in page.text


@pytest.mark.requirement("reply:attachments")
@pytest.mark.parametrize(
    ("text", "formulas"),
    [
        ("$E=mc^2$ was found in 1905", ["E=mc^2"]),
        ("$$y$$ is 3", ["y"]),
        ("It costs $10; use `$HOME`.", []),
        ("x $a `b` c$ y", []),
        ("From $5 to $10, US$3", []),
        ("5$x$ or $x$5", []),
        ("$ x $ and $x $ and \\$a$", []),
        ("$a\\$b$ and $$a$b$$", ["a\\$b", "a$b"]),
        ("*$a*b$* [one $x$](https://a.example/$y$)", ["a*b", "x"]),
    ],
)
def test_formulas_stand_between_dollars_and_prices_and_code_stay_what_they_are(text: str, formulas: list[str]) -> None:
    page = root(to_html(Reply(text)))
    assert [one.attributes["data-tex"] for one in page.all("span", "math")] == formulas
    assert "`" not in page.text


@pytest.mark.requirement("reply:attachments")
@pytest.mark.parametrize(
    ("text", "formulas"),
    [
        (r"The energy \(E=mc^2\), and \( a \\ b \).", [("span", "E=mc^2"), ("span", r"a \\ b")]),
        ("So\n\\[\nx\n- y\n\\]\nthen", [("div", "x\n- y")]),
        ("- one \\(x\\)\n  \\[ y \\]", [("span", "x"), ("div", "y")]),
        ("> \\[\n> q\n> \\]", [("div", "q")]),
        (r"see \[1\] here, \\(no\\), \(\), \(open", []),
        (r"`\(code\)` \(a `b\)", []),
        ("\\[ a\n\nb \\]", []),
        ("\\[ a\n\\[ b \\]", [("div", "b")]),
    ],
)
def test_formulas_stand_between_backslashes_and_brackets_too(text: str, formulas: list[tuple[str, str]]) -> None:
    page = root(to_html(Reply(text)))
    assert [(one.tag, one.attributes["data-tex"]) for one in page.all(class_="math")] == formulas


@pytest.mark.requirement("reply:attachments")
def test_brackets_of_formulas_without_end_take_time_in_proportion() -> None:
    for text in ("\\[\n" * 20_000, "\\(" * 30_000, "\\(\\a" * 15_000, "\\[ x \\] y\n" * 7_000):
        with bounded_work():  # of a second or two
            to_html(Reply(text))


@pytest.mark.requirement("s:S-64:rendered")
@pytest.mark.parametrize(
    "tex",
    ["\\href{javascript:alert(1)}{x}", "\\includegraphics{https://e.example}", "\\htmlData{onclick=x}{y}",
     "\\unknown x", "\\def\\a{\\a\\a}\\a", "\\newcommand{\\a}{b}\\a", "x^{", "\\begin{foo}a&b\\end{foo}",
     "{" * 60 + "}" * 60, "\\frac", "x" * 10_001, "\\left(" * 300, "\\sqrt" * 1500],
    ids=range(13),
)  # fmt: skip
def test_a_formula_that_is_not_drawn_shows_its_source(tex: str) -> None:
    page = drawn("latex", tex)
    assert page.all("math") == []
    assert page.one("div", "unread").one("code").text == tex


@pytest.mark.requirement("s:S-64:rendered")
def test_sizes_styles_and_markup_in_a_formula_come_to_nothing() -> None:
    page = drawn(
        "latex", "\\rule{999999em}{99999em} \\hspace{1e9em} \\hspace{2em} \\text{<img src=x onerror=y>} \\color{red}x"
    )
    assert [one.attributes for one in page.all("mspace")][-1:] == [{"width": "2em"}]
    assert not any("9" in value for one in page.all() for name, value in one.attributes.items() if name != "data-tex")
    assert page.one("mtext").text == "<img\xa0src=x\xa0onerror=y>"
    assert page.one("mstyle").attributes == {"mathcolor": "red"}


@pytest.mark.requirement("reply:attachments", "s:S-62")
def test_a_picture_elsewhere_is_a_card_with_its_address_and_a_button() -> None:
    address = "https://example.com/image.png?q=1&r=2"
    page = drawn("image", address, title="示例图片")
    assert page.all("img") == []
    card = page.one("span", "remote")
    assert (card.one("bdi", "host").text, card.one("bdi", "address").text) == ("example.com", address)
    assert card.one("button").attributes == {
        "type": "button", "class": "load", "data-kind": "image", "data-src": address}  # fmt: skip
    assert page.one("figcaption").text == "示例图片"


@pytest.mark.requirement("s:S-62")
@pytest.mark.parametrize(
    "text", ["![a](https://e.example/p.png)", "![a](//e.example/p.png)", "![a][r]\n\n[r]: https://e.example/p.png",
             "[![a](https://e.example/p.png)](https://example.com)"],
)  # fmt: skip
def test_pictures_elsewhere_in_markdown_are_cards_too(text: str) -> None:
    page = root(to_html(Reply(text)))
    assert page.all("img") == []
    assert page.one("button").attributes["data-src"] == "https://e.example/p.png"
    assert page.one("span", "remote").one("bdi", "host").text == "e.example"


@pytest.mark.requirement("reply:attachments:more", "s:S-62")
@pytest.mark.parametrize("kind", ["audio", "video"])
def test_sound_and_film_elsewhere_are_cards_too(kind: str) -> None:
    button = drawn(kind, "https://example.com/x.mp4", title="T").one("button")
    assert (button.attributes["data-kind"], button.attributes["data-src"]) == (kind, "https://example.com/x.mp4")


@pytest.mark.requirement("reply:attachments", "s:S-67")
@pytest.mark.parametrize("mime", sorted(PICTURES))
def test_a_picture_in_the_reply_is_shown_with_its_size(mime: str) -> None:
    image = drawn("image", uri(f"image/{mime}", PICTURES[mime]), title='A "b"').one("img")
    assert image.attributes == {
        "src": uri(f"image/{mime}", PICTURES[mime]), "alt": 'A "b"', "width": "3", "height": "2"}  # fmt: skip


@pytest.mark.requirement("s:S-67")
@pytest.mark.parametrize("data", [WEBP_LOSSY, WEBP_LOSSLESS])
def test_every_kind_of_webp_tells_its_size(data: bytes) -> None:
    image = drawn("image", uri("image/webp", data)).one("img")
    assert (image.attributes["width"], image.attributes["height"]) == ("3", "2")


@pytest.mark.requirement("reply:attachments:more", "s:S-67")
@pytest.mark.parametrize(
    ("kind", "mime", "data"),
    [("audio", "audio/wav", WAV), ("audio", "audio/mpeg", b"ID3\x03"), ("audio", "audio/ogg", b"OggS"),
     ("video", "video/mp4", MP4), ("video", "video/webm", WEBM)],
)  # fmt: skip
def test_sound_and_film_in_the_reply_are_shown(kind: str, mime: str, data: bytes) -> None:
    element = drawn(kind, uri(mime, data)).one(kind)
    assert element.attributes == {"src": uri(mime, data), "controls": "", "preload": "metadata"}


@pytest.mark.requirement("s:S-67")
@pytest.mark.parametrize(
    ("kind", "source", "why"),
    [
        ("image", uri("text/html", b"<script>"), "Data of this type is not shown:"),
        ("image", uri("image/png", b"<script>"), "The data is not what its type says:"),
        ("image", uri("image/gif", PNG), "The data is not what its type says:"),
        ("image", uri("image/bmp", b"BM"), "Data of this type is not shown:"),
        ("audio", uri("video/mp4", MP4), "Data of this type is not shown:"),
        ("video", uri("video/mp4", WEBM), "The data is not what its type says:"),
        ("image", uri("image/png", PNG[:16] + struct.pack(">II", 50_000, 50_000)), "The picture has too many pixels"),
        ("image", uri("image/png", PNG[:16] + struct.pack(">II", 20_000, 1)), "The picture has too many pixels"),
        ("image", uri("image/gif", GIF[:6] + struct.pack("<HH", 65_535, 65_535)), "The picture has too many pixels"),
        ("image", uri("image/png", PNG[:12]), "The picture does not tell its size:"),
        ("image", uri("image/jpeg", b"\xff\xd8\xff\xd9"), "The picture does not tell its size:"),
        ("image", "data:image/png;base64,%%%", "The base64 of this data is broken:"),
        ("image", uri("image/png", PNG + b"\x00" * 1_600_000), "The data is too large to be shown:"),
        ("image", "images/local.png", "This is neither data nor an address on the web:"),
        ("image", "file:///etc/passwd", "This is neither data nor an address on the web:"),
    ],
    ids=range(15),
)
def test_media_that_is_not_what_it_says_or_too_large_is_refused_with_the_reason(
    kind: str, source: str, why: str
) -> None:
    page = drawn(kind, source)
    assert page.all("img") + page.all("audio") + page.all("video") + page.all("button") == []
    assert why in page.one("span", "warning").text


@pytest.mark.requirement("s:S-66:rendered")
@pytest.mark.parametrize(
    "source", ["<svg onload='alert(1)'><script>1</script></svg>", "data:image/svg+xml,%3Csvg onload=x%3E"]
)
def test_svg_is_shown_through_an_image_only(source: str) -> None:
    page = drawn("image", source)
    assert page.all("svg") + page.all("script") == []
    assert page.one("img").attributes["src"].startswith("data:image/svg+xml;base64,")


@pytest.mark.requirement("s:S-66:rendered")
@pytest.mark.parametrize(
    "source",
    ["<?xml version='1.0'?>\n<!DOCTYPE svg [<!ENTITY a 'b'>]><svg/>", "<svg>" + "<use href='#a'/>" * 31 + "</svg>"],
)
def test_svg_that_could_grow_without_bound_is_refused(source: str) -> None:
    assert drawn("image", source).all("img") == []


@pytest.mark.requirement("reply:attachments:more")
@pytest.mark.parametrize(
    "content",
    [
        {"columns": ["Name", "Age"], "rows": [["<A>", 1], ["B", None]]},
        {"columns": [{"key": "n", "title": "Name"}, {"key": "a", "title": "Age"}],
         "rows": [{"n": "<A>", "a": 1}, {"n": "B"}]},
        [{"Name": "<A>", "Age": 1}, {"Name": "B", "Age": None}],
        json.dumps({"columns": ["Name", "Age"], "rows": [["<A>", 1], ["B", ""]]}),
        "Name,Age\n<A>,1\nB,",
        "Name;Age\n\"<A>\";1\nB;",
        "Name\tAge\n<A>\t1\nB\t",
        "| Name | Age |\n|:-----|----:|\n| <A> | 1 |\n| B | |",
        "| Name | Age |\n|:-----|----:|\n| <A> | 1 |\n\n| B | |",
    ],
    ids=range(9),
)  # fmt: skip
def test_a_table_is_shown_in_every_form_it_may_have(content: Json) -> None:
    page = drawn("table", content, title="People")
    table = page.one("table")
    assert [cell.text for cell in table.all("th")] == ["Name", "Age"]
    assert [cell.text for cell in table.all("td")] == ["<A>", "1", "B", ""]
    assert page.all(class_="note") == []


@pytest.mark.requirement("reply:attachments:more")
@pytest.mark.parametrize("content", ["just a sentence", {"x": 1}, "", 'a,"b\n' + "x" * 200_000])
def test_what_is_no_table_is_shown_as_text(content: Json) -> None:
    page = drawn("table", content)
    assert page.all("table") == []
    assert len(page.all("pre", "source")) == 1


@pytest.mark.requirement("reply:attachments:more")
def test_a_long_table_is_cut_with_a_note() -> None:
    page = drawn("table", {"columns": ["n"], "rows": [[n] for n in range(1500)]})
    assert len(page.all("td")) == 1000
    assert page.one("div", "note").text == "Only a part of the data is shown: 1000 of 1500."


CHART: Json = {
    "type": "line",
    "data": {
        "labels": ["Jan", "<Feb>"],
        "datasets": [{"label": "Sales", "data": [1, 2.5], "backgroundColor": "url(https://e.example)"},
                     {"label": "Loss", "type": "bar", "data": [None, {"x": 1, "y": 2}]}],
    },
    "options": {"indexAxis": "y", "onClick": "alert(1)", "scales": {"x": {"stacked": True}},
                "plugins": {"title": {"text": "Year"}}},
}  # fmt: skip


@pytest.mark.requirement("reply:attachments:more")
@pytest.mark.parametrize("content", [CHART, json.dumps(CHART)], ids=["data", "text"])
def test_a_chart_is_a_table_and_the_plain_data_to_draw(content: Json) -> None:
    figure = drawn("chart", content).one("figure", "chart")
    assert [cell.text for cell in figure.all("th")] == ["", "Sales", "Loss"]
    assert [cell.text for cell in figure.all("td")] == ["Jan", "1", "", "<Feb>", "2.5", "x = 1, y = 2"]
    assert figure.one("figcaption").text == "Year"
    assert json.loads(figure.attributes["data-chart"]) == {
        "type": "line",
        "labels": ["Jan", "<Feb>"],
        "datasets": [{"label": "Sales", "data": [1, 2.5]},
                     {"label": "Loss", "data": [None, {"x": 1, "y": 2}], "type": "bar"}],
        "title": "Year",
        "stacked": True,
        "horizontal": True,
    }  # fmt: skip


@pytest.mark.requirement("reply:attachments:more")
@pytest.mark.parametrize("content", ["not json", "[1]", "{}", {"data": {"datasets": []}}, "[" * 100_000])
def test_a_chart_that_cannot_be_read_shows_its_source(content: Json) -> None:
    page = drawn("chart", content)
    assert page.all("table") == []
    assert page.one("div", "warning").text == "⚠️ The data of the chart cannot be read."
    assert page.one("pre", "source").text == (content if isinstance(content, str) else json.dumps(content))
