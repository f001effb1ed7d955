"""However large or deep a reply is, its HTML has bounds: in time, in size, in depth."""

from importlib import import_module

import pytest

from tests.fakes import bounded_work
from tests.render.elements import Element, faults, root
from toolyard.protocol.replies.reply_values import MAX_BYTES, Attachment, Reply, ReplyError
from toolyard.render.html import to_html
from toolyard.render.html.links import FEW, find_openings

pytestmark = pytest.mark.requirement("reply:inert")

MAX_TEXT = 200_000


def drawn(reply: Reply | ReplyError, most: int = 20_000_000) -> Element:
    with bounded_work():  # of about one second; what takes time with a square would take hours
        html = to_html(reply)
    assert len(html) < most
    assert faults(html) == []
    return root(html)


def filled(text: str) -> str:
    return (text * (MAX_BYTES // len(text) + 1))[:MAX_BYTES]


@pytest.mark.parametrize(
    "text", ["[", "*", "$", "`", ">", "- $$a\n", "- [ ] a\n", "![[a](b)", "{{code:x}} ", "(https://a.b/("]
)
def test_two_megabytes_of_one_sign_are_drawn(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # As much as this takes minutes if the time grows with the square of it.
    monkeypatch.setattr(import_module("toolyard.render.html.from_markdown"), "_MAX_TEXT", 40_000)
    drawn(Reply(filled(text)))


@pytest.mark.parametrize("text", ["[", "![", "[a ", "[" * 2000 + "]" * 2000, "![[["])
def test_brackets_that_are_no_links_are_known_without_looking_ahead(text: str) -> None:
    signs = text * (MAX_TEXT // len(text))
    assert len(find_openings(signs) or ()) <= len(signs) // 500
    assert drawn(Reply(signs)).text.count("[") == signs.count("[")


def test_links_among_many_brackets_are_still_links() -> None:
    page = drawn(Reply("[ [a](https://a.b) ![c](https://d.e) [[x](https://x.y)] " * 500))
    assert len(page.all("a")) == 1000
    assert find_openings("[" * FEW) is None


@pytest.mark.parametrize(
    "text",
    [">" * 10_000 + " deep", "> " * 500 + "deep", "- " * 400 + "deep"],
    ids=["quotes", "spaced quotes", "lists"],
)
def test_deep_nesting_is_shown_as_it_was_written(text: str) -> None:
    page = drawn(Reply(f"start\n\n{text}"))
    assert "deep" in page.text
    assert page.one("div", "note").text == "The text is shown as it was written: it is nested too deeply."


@pytest.mark.parametrize("opening", ["![", "["])
def test_deep_pictures_and_links_keep_their_text(opening: str) -> None:
    assert "deep" in drawn(Reply(opening * 3000 + "deep" + "](x)" * 3000)).text


def test_ten_lists_in_each_other_are_drawn_as_lists() -> None:
    page = drawn(Reply("".join("  " * depth + f"- {depth}\n" for depth in range(10))))
    assert len(page.all("ul")) == 10


def test_a_long_text_is_drawn_at_first_and_then_shown_as_it_was_written() -> None:
    page = drawn(Reply("**bold** text\n\n" * 20_000 + "last words"))
    assert 10_000 < len(page.all("strong")) < 20_000
    assert page.one("div", "note").text == "What follows is shown as it was written: the text is too long."
    assert page.text.count("bold") == 20_000
    assert "last words" in page.text


def test_an_attachment_that_is_named_again_and_again_does_not_fill_the_page() -> None:
    picture = Attachment("x", "image", "<svg>" + "x" * 500_000 + "</svg>")
    page = drawn(Reply("{{image:x}}\n\n" * 2000, attachments={"x": picture}), most=3_000_000)
    assert 1 <= len(page.all("img")) <= 3
    assert len(page.all("img")) + len(page.all(class_="reference")) == 2000


@pytest.mark.requirement("s:S-64:rendered")
def test_formulas_have_a_share_of_the_whole_reply() -> None:
    page = drawn(Reply(f"${'x' * 50}$ " * 3_000))
    assert 500 < len(page.all("math")) < 2_000


@pytest.mark.requirement("s:S-65")
@pytest.mark.parametrize("language", ["c", "csharp", "make", "markdown", "java", "python", "go"])
@pytest.mark.parametrize("text", ["\n", "a\n", " ", "--", "a(", "\t", "x = 1;\n"])
def test_no_code_takes_long_to_colour(language: str, text: str) -> None:
    drawn(Reply("{{code:x}}", attachments={"x": Attachment("x", "code", (text * 200_000)[:200_000], language)}))


@pytest.mark.requirement("s:S-65")
def test_colouring_has_a_share_of_the_whole_reply() -> None:
    piece = 'x = """' + ("a long text that is coloured as one. " * 20 + "!\n") * 12 + '"""\n'
    many = {str(n): Attachment(str(n), "code", piece, "python") for n in range(60)}
    page = drawn(Reply("x", attachments=many))
    assert [bool(one.all("span")) for one in page.all("code")].count(True) in range(5, 40)
    assert {one.text for one in page.all("code")} == {piece}


@pytest.mark.requirement("reply:failure-shown")
def test_a_huge_text_that_is_no_reply_is_cut() -> None:
    page = drawn(ReplyError("too large", 1, 1, "<" * (MAX_BYTES + 1)))
    assert len(page.one("pre").text) == 200_000
    assert page.one("div", "note").text.startswith("Only the first 200000 of ")
