"""WebFetch: a URL as text, HTML as Markdown."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import FakeClock, ListJournal
from tests.tools.media import pdf
from tests.workspace.web import Reply, Web, here, loopback_too, serving
from toolyard.engine.registry import Registry
from toolyard.engine.runner import Runner
from toolyard.protocol.envelope import Envelope, Status
from toolyard.protocol.mask import Mask
from toolyard.protocol.tool import Risk, ToolCall
from toolyard.tools.readers.html_markdown import MAX_DEPTH, convert_page
from toolyard.tools.web_fetch import SPEC, WebFetch
from toolyard.workspace.safe_fetch import SafeFetch

PAGE = """<!doctype html><html><head><title>The  garden &amp; more</title><style>p { color: red }</style></head>
<body><nav><a href="/">Home</a></nav><script>alert("no")</script>
<h1>Plants <em>of</em> the year</h1>
<p>See <a href="/roses?x=1">the roses</a>, <b>now</b> and <code>a`b</code>.
<p>Two<br>lines <img src="i.png" alt="A rose">
<ul><li>tulips<li>lilies<ul><li>white</ul></ul><ol start=3><li>third<li>fourth</ol>
<pre><code class="language-py">def grow():
    pass
</code></pre><blockquote>Quiet.<p>Please.</blockquote>
<table><tr><th>Name<th>Height<tr><td>rose | dog<td>2 m</table><a href="https://other.example/"><div>A card</div></a>
<p hidden>secret</p><a href="javascript:alert(1)">click</a></body></html>"""
MARKDOWN = """# Plants *of* the year

See [the roses](http://files.example:{port}/roses?x=1), **now** and ``a`b``.

Two
lines ![A rose](http://files.example:{port}/garden/i.png)

- tulips
- lilies
  - white

3. third
4. fourth

```py
def grow():
    pass
```

> Quiet.
>
> Please.

| Name | Height |
|---|---|
| rose \\| dog | 2 m |

[A card](https://other.example/)

click"""


class Fetcher:
    """Calls of WebFetch; its fetches may go to this machine, where the tests have their server."""

    def __init__(self, **limits: Any) -> None:
        fetch = SafeFetch(resolve=here, allowed=loopback_too, **limits)
        tool = WebFetch(fetch, fallback_encodings=("gb18030",))
        self.runner = Runner(Registry([tool]), root="/", clock=FakeClock(), journal=ListJournal(), mask=Mask([]))

    async def __call__(self, url: str, **arguments: Any) -> Envelope:
        call = ToolCall(id="c1", tool="WebFetch", arguments={"url": url, **arguments})
        return (await self.runner.settle(call)).envelope


@pytest.fixture
def web() -> Iterator[Web]:
    with serving() as running:
        yield running


def html(body: str | bytes, charset: str = "") -> Reply:
    kind = f"text/html; charset={charset}" if charset else "text/html"
    return Reply(body if isinstance(body, bytes) else body.encode(), headers={"Content-Type": kind})


@pytest.mark.requirement("webfetch:markdown")
async def test_a_page_is_markdown_with_its_title_and_absolute_links(web: Web) -> None:
    web.replies["/garden/page"] = html(PAGE)
    envelope = await Fetcher()(web.url("/garden/page#part"))
    data = envelope.data
    assert envelope.status is Status.SUCCESS
    assert data["content"] == MARKDOWN.format(port=web.port)
    assert (data["title"], data["format"], data["mime"]) == ("The garden & more", "markdown", "text/html")
    assert (data["truncated"], data["next_offset"]) == (False, None)
    assert envelope.text.startswith(f"Fetched \"The garden & more\" from '{web.url('/garden/page')}'")
    assert "redirected" not in envelope.text


@pytest.mark.requirement("webfetch:markdown")
async def test_a_redirect_is_followed_and_the_final_url_is_named(web: Web) -> None:
    web.replies["/old"] = Reply(status=302, headers={"Location": "/new"})
    web.replies["/new"] = html("<p>here <a href=x>it</a></p>")
    envelope = await Fetcher()(web.url("/old"))
    assert envelope.data["final_url"] == web.url("/new")
    assert envelope.data["content"] == f"here [it]({web.url('/x')})"
    assert f"redirected there from '{web.url('/old')}'" in envelope.text


@pytest.mark.requirement("webfetch:types")
async def test_json_and_other_text_stay_as_they_are(web: Web) -> None:
    fetch = Fetcher()
    for kind, body in [
        ("application/json", '{"a": [1,\n 2]}'),
        ("application/ld+json", '{"a": 1}'),
        ("text/plain", "<b>not bold</b>"),
        ("text/markdown; charset=utf-8", "# Ü"),
        ("application/rss+xml", "<rss/>"),
    ]:
        web.replies["/x"] = Reply(body.encode(), headers={"Content-Type": kind})
        envelope = await fetch(web.url("/x"))
        assert (envelope.data["content"], envelope.data["format"]) == (body, "text"), kind


@pytest.mark.requirement("webfetch:types")
async def test_a_pdf_is_the_text_of_its_pages(web: Web) -> None:
    web.replies["/a.pdf"] = Reply(pdf("First page", "Second page"), headers={"Content-Type": "application/pdf"})
    web.replies["/b"] = Reply(pdf("Unnamed"))
    fetch = Fetcher()
    content = (await fetch(web.url("/a.pdf"))).data["content"]
    assert " ".join(str(content).split()) == "--- page 1 of 2 --- First page --- page 2 of 2 --- Second page"
    assert "Unnamed" in str((await fetch(web.url("/b"))).data["content"])


@pytest.mark.requirement("webfetch:types")
async def test_what_has_no_type_is_told_by_its_content_and_what_is_no_text_is_refused(web: Web) -> None:
    fetch = Fetcher()
    web.replies["/page"] = Reply(b"  <!DOCTYPE html><title>T</title><p>x")
    assert (await fetch(web.url("/page"))).data["title"] == "T"
    web.replies["/text"] = Reply(b"plain <b>")
    assert (await fetch(web.url("/text"))).data["content"] == "plain <b>"
    for reply in (Reply(b"\0\1\2"), Reply(b"GIF89a", headers={"Content-Type": "image/gif"})):
        web.replies["/binary"] = reply
        envelope = await fetch(web.url("/binary"))
        assert envelope.error is not None
        assert envelope.error.code == "INVALID_PARAM"
        assert "DownloadFile" in envelope.text


@pytest.mark.requirement("webfetch:charset")
@pytest.mark.parametrize(
    ("body", "charset", "encoding"),
    [
        ("<p>Grüße", "iso-8859-1", "cp1252"),
        ("<meta charset=gb2312><p>你好，世界", "", "gb18030"),
        ('<meta http-equiv="Content-Type" content="text/html; charset=Shift_JIS"><p>日本語の文章です', "", "shift_jis"),
        ("<p>Привет, мир", "utf-8", "utf-8"),
        ("<p>Привет, мир", "no-such-charset", "utf-8"),
    ],
)
async def test_the_charset_of_the_server_or_of_the_page_is_used(
    web: Web, body: str, charset: str, encoding: str
) -> None:
    web.replies["/"] = html(body.encode(encoding), charset)
    assert (await Fetcher()(web.url("/"))).data["content"] == body.rpartition(">")[2]


@pytest.mark.requirement("webfetch:charset")
async def test_a_wrong_charset_does_not_spoil_a_page_in_utf_8(web: Web) -> None:
    web.replies["/"] = html("<p>日本語".encode(), "us-ascii")
    web.replies["/mark"] = html("<p>日本語".encode("utf-16"), "utf-8")
    assert "日本語" in str((await Fetcher()(web.url("/mark"))).data["content"])
    web.replies["/damaged"] = html("<p>日本語 ok".encode(), "shift_jis")
    assert "ok" in str((await Fetcher()(web.url("/damaged"))).data["content"])


@pytest.mark.requirement("webfetch:pages")
async def test_a_long_page_is_read_in_parts_that_join_to_the_whole(web: Web) -> None:
    text = "\n".join(f"line {number} " + "x" * (number % 90) for number in range(2000))
    web.replies["/long"] = Reply(text.encode(), headers={"Content-Type": "text/plain"})
    fetch, parts, offset = Fetcher(), [], 0
    while True:
        envelope = await fetch(web.url("/long"), offset=offset, limit=9000)
        parts.append(str(envelope.data["content"]))
        assert len(parts[-1]) <= 9000
        assert envelope.data["total_characters"] == len(text)
        following = envelope.data["next_offset"]
        if following is None:
            break
        assert f"Use offset={following} to read on." in envelope.text
        assert parts[-1].endswith("\n")
        assert isinstance(following, int)
        offset = following
    assert "".join(parts) == text
    beyond = await fetch(web.url("/long"), offset=len(text))
    assert beyond.error is not None
    assert "beyond its end" in beyond.error.message


@pytest.mark.requirement("webfetch:errors")
async def test_what_cannot_be_fetched_says_why(web: Web) -> None:
    web.replies["/large"] = html("x" * 2000)
    web.replies["/slow"] = Reply(hangs="headers")
    web.replies["/broken"] = Reply(status=500)
    fetch = Fetcher(max_bytes=1000, max_s=0.3)
    for path, code, words in [
        ("/none", "NOT_FOUND", "answered 404"),
        ("/large", "INVALID_PARAM", "more than 1000 bytes"),
        ("/slow", "TIMEOUT", "did not answer in full in time"),
        ("/broken", "EXECUTION_ERROR", "answered 500"),
    ]:
        envelope = await fetch(web.url(path))
        assert envelope.error is not None
        assert envelope.error.code == code
        assert words in envelope.error.message
    tool = WebFetch(SafeFetch(), fallback_encodings=())
    runner = Runner(Registry([tool]), root="/", clock=FakeClock(), journal=ListJournal(), mask=Mask([]))
    for url, code in [(web.url("/", host="127.0.0.1"), "ACCESS_DENIED"), ("file:///etc/passwd", "INVALID_PARAM")]:
        outcome = await runner.settle(ToolCall(id="c", tool="WebFetch", arguments={"url": url}))
        assert outcome.envelope.error is not None
        assert outcome.envelope.error.code == code


@pytest.mark.requirement("webfetch:errors")
async def test_a_page_without_text_says_so(web: Web) -> None:
    web.replies["/app"] = html("<div id=app></div><script>start()</script>")
    envelope = await Fetcher()(web.url("/app"))
    assert envelope.data["content"] == ""
    assert "It has no text" in envelope.text


@pytest.mark.requirement("webfetch:approval")
def test_it_reaches_the_network_and_so_needs_an_approval() -> None:
    assert SPEC.risk is Risk.NETWORK


@pytest.mark.requirement("webfetch:markdown")
@given(st.lists(st.sampled_from([*"<>/ab \n=\"'&;!-", "<p>", "<li>", "</ul>", "<td>", "<a href=x>", "<pre>", "<!--"])))
def test_no_page_is_too_broken(pieces: list[str]) -> None:
    convert_page("".join(pieces), "https://example.com/", lambda: None)


@pytest.mark.requirement("webfetch:markdown")
def test_the_text_of_a_deeply_nested_page_is_there() -> None:
    page = convert_page(
        "<div><b>" * 20 * MAX_DEPTH + "deep" + "</b></div>" * 20 * MAX_DEPTH + "after", "", lambda: None
    )
    assert "deep" in page.markdown
    assert page.markdown.endswith("after")
