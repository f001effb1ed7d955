"""Links in rendered HTML: where they may lead, and that they say where."""

import pytest

from tests.render.elements import Element, faults, root
from toolyard.protocol.replies.reply_values import Reply
from toolyard.render.html import to_html
from toolyard.render.html.sanitise import sanitise

pytestmark = pytest.mark.requirement("s:S-61")


def drawn(text: str) -> Element:
    html = to_html(Reply(text))
    assert faults(html) == []
    return root(html).one("div", "content")


@pytest.mark.parametrize(
    ("text", "href", "host"),
    [
        ("[x](https://example.com/a?b=c&d=e)", "https://example.com/a?b=c&d=e", "(example.com)"),
        ("[x](HTTP://Example.COM)", "http://example.com", "(example.com)"),
        ("[x](https://example.com:8080/)", "https://example.com:8080/", "(example.com:8080)"),
        ("[x](https://[::1]:80/)", "https://[::1]:80/", "([::1]:80)"),
        ("[x](mailto:a@example.com)", "mailto:a@example.com", "(a@example.com)"),
        ("[https://bank.example](https://evil.example/)", "https://evil.example/", "(evil.example)"),
        ("[x](https://bank.example@evil.example/)", "https://evil.example/", "(evil.example)"),
        ("[x](https://b\u0430nk.example/)", "https://xn--bnk-6cd.example/", "(xn--bnk-6cd.example)"),
        ("[a *b* `c`](https://example.com)", "https://example.com", "(example.com)"),
        ("[x][r]\n\n[r]: https://example.com 'title'", "https://example.com", "(example.com)"),
    ],
)
def test_a_link_shows_its_host(text: str, href: str, host: str) -> None:
    page = drawn(text)
    assert page.one("a").attributes == {
        "href": href, "target": "_blank", "rel": "noopener noreferrer nofollow"}  # fmt: skip
    assert page.one("bdi", "host").text == host


@pytest.mark.parametrize(
    "text", ["https://example.com/a", "<https://example.com/a>", "[https://example.com/a](https://example.com/a)",
             "[example.com/a](https://example.com/a)", "<a@example.com>"],
)  # fmt: skip
def test_an_address_that_is_its_own_text_is_shown_once(text: str) -> None:
    page = drawn(text)
    assert page.one("p").text.count("example.com") == 1
    assert len(page.all("a")) == 1


@pytest.mark.parametrize(
    "target",
    ["javascript:alert(1)", "JAVASCRIPT:alert(1)", "java&Tab;script:alert(1)", "vbscript:x", "data:text/html,x", "file:///x",
     "//evil.example/", "/admin", "README.md", "#top", "tel:1", "https:evil.example", "https://",
     "https://a.b\u202e/", "https://xn--a.b/", "https://ex ample.com", "https://a%2fb/", "https://a..b%00/", "mailto:", "blob:https://a.b/1"],
)  # fmt: skip
def test_every_other_target_is_shown_and_not_linked(target: str) -> None:
    page = drawn(f"[text](<{target}>)")
    assert page.all("a") == []
    assert page.one("span", "unlinked").text == "text"
    assert page.one("bdi", "host").text.startswith("(")


def test_an_address_in_the_text_of_a_link_does_not_hide_where_it_leads() -> None:
    page = drawn("[see <https://bank.example/>](https://evil.example/)")
    assert [host.text for host in page.all("bdi", "host")] == ["(evil.example)"]


@pytest.mark.parametrize(
    "text",
    ["See README.md, setup.py and a@b.c or example.com.", "https://b\u0430nk.example/", "xhttps://a.example", "https://",
     "https://\u4e2d.example/", "ftp://a.example", "`https://a.example`", "javascript://a.example/%0aalert(1)"],
)  # fmt: skip
def test_what_is_no_plain_address_becomes_no_link(text: str) -> None:
    assert drawn(text).all("a") == []


@pytest.mark.parametrize(
    ("text", "href"),
    [
        ("见https://a.example/x的文档", "https://a.example/x"),
        ("（https://a.example/x）。", "https://a.example/x"),
        ("(see https://a.example/x).", "https://a.example/x"),
        ("https://a.example/x_(y)!", "https://a.example/x_(y)"),
        ("**https://a.example/x**", "https://a.example/x"),
        ("HTTPS://A.example:80/?q=1&r=%20#f, and", "https://a.example:80/?q=1&r=%20#f"),
        ("<b>https://a.example/x</b>", "https://a.example/x"),
        ("| https://a.example/x |\n|---|", "https://a.example/x"),
    ],
)
def test_a_bare_address_ends_where_the_sentence_goes_on(text: str, href: str) -> None:
    assert drawn(text).one("a").attributes["href"] == href


@pytest.mark.requirement("reply:inert")
@pytest.mark.parametrize(
    ("html", "left"),
    [
        ("<p onclick=x style=y id=z class='a b'>t</p>", '<p class="a b">t</p>'),
        ("<script>x</script><style>y</style><svg><text>z</text></svg>t", "t"),
        ("<a href='javascript:x' name=y>t</a>", '<a rel="noopener noreferrer nofollow">t</a>'),
        ("<a href='data:text/html,x'>t</a>", '<a rel="noopener noreferrer nofollow">t</a>'),
        ("<a href='/x'>t</a>", '<a rel="noopener noreferrer nofollow">t</a>'),
        ("<img src='https://e.example/p' srcset=x onerror=y>", "<img>"),
        ("<img src='data:text/html;base64,eA=='>", "<img>"),
        ("<video src='data:image/svg+xml;base64,eA==' poster=x></video>", "<video></video>"),
        ("<button type=submit formaction=x data-src='javascript:x'>t</button>", "<button>t</button>"),
        (
            "<math><mi href='javascript:x' style=y mathcolor=red>t</mi></math>",
            '<math><mi mathcolor="red">t</mi></math>',
        ),
        ("<math><mtext><table><mglyph><style><!--</style><img title='--><img src=1 onerror=x>'>", None),
        ("<form><input name=x><select><option>t</select></form>", "t"),
        ("<!-- x --><base href=x><link rel=x><meta>t", "t"),
        ("<p class='x\"y'>t</p>", "<p>t</p>"),
    ],
)
def test_the_last_net_holds_even_when_what_comes_before_it_fails(html: str, left: str | None) -> None:
    cleaned = sanitise(html)
    assert faults(f"<article>{cleaned}</article>") == []
    assert left is None or cleaned == left
