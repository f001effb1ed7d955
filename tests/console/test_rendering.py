"""Replies as they are drawn: every part in its place, and what cannot be drawn shown for what it is."""

import asyncio
import itertools
import json
import re
from typing import Any

import pytest
from playwright.async_api import Browser, Locator, expect

from tests.console.looks import access_faults, layout_faults
from tests.console.talking import (
    Talking,
    assistant,
    becomes,
    copied,
    drawn,
    keep,
    look,
    reloaded,
    replies,
    say,
    script,
    user,
)
from tests.console.visit import DESKTOP, PHONE, Visit, visiting

pytestmark = pytest.mark.asyncio(loop_scope="session")
FLOW = "graph TD\n A[开始（全角）] --> B{好吗？}\n B -->|是| C[完成]\n B -->|否| D[再来]\n D --> B"
ORDER = "sequenceDiagram\n participant 甲\n participant 乙\n 甲->>乙: 请求（一）\n 乙-->>甲: 回答"
CODE = 'def hello(name: str) -> str:\n\treturn f"你好, {name}  "  # \\n stays\n'
TABLE = "| 名称 | 数量 | a column that is rather wide |\n|---|--:|---|\n| 苹果 | 12 | x |\n| pear | 7 | y |\n"
TEX = "\\int_0^1 x^2\\,dx = \\frac{1}{3}"
THINK = "First I look.\nThen I draw 两张图."
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
FEW = "() => document.querySelectorAll('main *').length < 5000"
IMAGE = f"data:image/png;base64,{DOT}"


def structured() -> str:
    content = (
        f"Look:\n\n{TABLE}\n{{{{mermaid:flow}}}}\n\nInline $a^2+b^2$ and\n\n{{{{latex:sum}}}}\n\n{{{{code:hello}}}}"
    )
    content += "\n\n{{mermaid:order}}\n\n{{image:dot}}\n\n{{code:nowhere}}\n\nThe end."
    attachments = {
        "flow": {"type": "mermaid", "content": FLOW, "title": "流程（一）"},
        "sum": {"type": "latex", "content": TEX},
        "hello": {"type": "code", "language": "python", "content": CODE},
        "order": {"type": "mermaid", "content": ORDER},
        "dot": {"type": "image", "content": IMAGE, "title": "a dot"},
        "extra": {"type": "table", "content": "left,right\n1,2"},
    }
    return json.dumps({"think": THINK, "content": content, "attachments": attachments}, ensure_ascii=False)


def markdown() -> str:
    fences = f"```mermaid\n{FLOW}\n```\n\n$$\n{TEX}\n$$\n\n```python\n{CODE}```\n\n```mermaid\n{ORDER}\n```\n\n"
    said = f"Look:\n\n{TABLE}\nInline $a^2+b^2$ and\n\n{fences}![a dot]({IMAGE})\n\nThe end."
    return f"<think>{THINK}</think>\n\n{said}"


FORMS = {"structured": structured, "markdown": markdown}


def are_whole(pictures: list[dict[str, Any]]) -> bool:
    """None is cut, none is over another."""
    return all(one["fits"] and one["inside"] and one["nodes"] >= 2 for one in pictures) and all(
        above["bottom"] <= below["top"] for above, below in itertools.pairwise(pictures)
    )


async def drawings(reply: Locator, count: int) -> list[dict[str, Any]]:
    """The diagrams of a reply, once they are as many and whole."""
    return await becomes(lambda: look(reply, "drawings.js"), lambda seen: len(seen) == count and are_whole(seen))


async def opened(visit: Visit, path: str) -> Locator:
    await visit.go(path)
    reply = replies(visit.page).last
    await drawn(reply)
    return reply


async def opens_downwards(reply: Locator) -> None:
    """The thinking is folded; opened, it takes its room below."""
    fold = reply.locator("details.chat-thinking")
    await expect(fold.get_by_text("Then I draw")).to_be_hidden()
    head = fold.locator("summary")
    await expect(head).to_contain_text("Reasoning, 9 words")
    await head.scroll_into_view_if_needed()
    before = await head.bounding_box()
    await head.click()
    await expect(fold.get_by_text("Then I draw 两张图")).to_be_visible()
    assert await becomes(head.bounding_box, lambda box: box == before) == before


@pytest.mark.requirement("console:chat:parts")
@pytest.mark.parametrize("form", FORMS)
async def test_a_reply_with_everything_shows_each_part_in_its_place(browser: Browser, chat: Talking, form: str) -> None:
    async with visiting(browser, chat.host) as visit:
        reply = await opened(visit, await chat.keep(FORMS[form]()))
        await opens_downwards(reply)
        pictures = await drawings(reply, 2)
        assert len(pictures) == 2
        for picture, label in zip(pictures, ("开始（全角）", "请求（一）"), strict=True):
            assert picture["nodes"] > 5
            assert picture["inside"], "cut by its own frame"
            assert picture["fits"], "wider than the column"
            assert label in picture["text"]
        await expect(reply.locator(".katex").nth(1)).to_be_visible()
        await expect(reply.locator(".katex-error")).to_have_count(0)
        await expect(reply.locator("td", has_text="苹果")).to_be_visible()
        image = reply.get_by_role("img", name="a dot")
        await expect(image).to_have_js_property("naturalWidth", 1)
        await expect(reply.get_by_text("The end.")).to_be_visible()
        missing = reply.locator(".card.warning", has_text="{{code:nowhere}}")
        await expect(missing).to_have_count(1 if form == "structured" else 0)
        await expect(reply.locator(".rest td")).to_have_count(2 if form == "structured" else 0)
        assert await copied(visit, reply.get_by_role("button", name="Copy code")) == CODE
        answer = await copied(visit, reply.get_by_role("button", name="Copy answer"))
        assert answer.startswith("Look:\n\n| 名称")
        assert "```mermaid\ngraph TD" in answer
        assert "First I look" not in answer
        assert await layout_faults(visit.page) == []
        assert await access_faults(visit.page) == []
        assert visit.wrong() == []


BROKEN = """Before.

```mermaid
graph TD
 A --> --> B
 C --> D
```

Between: $\\frac{1}{$ and

$$
\\begin{matrix} a & b
$$

```python
print("still code")
```

```mermaid
graph LR
 A --> B --> C
```

After."""


@pytest.mark.requirement("console:chat:faults", "s:S-63", "s:S-64")
async def test_a_broken_diagram_or_formula_shows_why_and_its_source_and_the_rest_stays(
    browser: Browser, chat: Talking
) -> None:
    async with visiting(browser, chat.host) as visit:
        reply = await opened(visit, await chat.keep(BROKEN))
        failed = reply.locator("figure.mermaid").first.locator(".failed")
        await expect(failed).to_contain_text("The diagram could not be rendered")
        await expect(failed).to_contain_text("line 2")
        await expect(failed.locator("pre")).to_have_text("graph TD\n A --> --> B\n C --> D\n")
        await failed.scroll_into_view_if_needed()
        await expect(failed.locator("pre")).to_be_in_viewport(ratio=1)
        formulas = reply.locator(".math")
        for number, source in enumerate(("\\frac{1}{", "\\begin{matrix} a & b")):
            await expect(formulas.nth(number)).to_contain_text("The formula could not be rendered")
            await expect(formulas.nth(number)).to_contain_text(source)
        assert len(await drawings(reply, 1)) == 1
        for text in ("Before.", 'print("still code")', "After."):
            await expect(reply).to_contain_text(text)
        assert await layout_faults(visit.page) == []
        await visit.page.set_viewport_size({"width": PHONE[0], "height": 2400})
        await expect(failed.locator("pre")).to_be_in_viewport(ratio=1)
        assert await layout_faults(visit.page, phone=True) == []
        assert visit.wrong() == []


@pytest.mark.requirement("console:chat:faults")
async def test_json_that_cannot_be_read_is_shown_whole_and_can_be_copied_read_as_markdown_or_asked_again(
    browser: Browser, chat: Talking
) -> None:
    wrong = '{"answer": "**bold** words",\n "more": [1, 2}'
    chat.answers("Structured, please.", wrong, "**Now** it is right.")
    async with visiting(browser, chat.host) as visit:
        await visit.go("/chat")
        reply = await say(visit, "Structured, please.")
        card = reply.get_by_role("group", name="Invalid JSON")
        await expect(card).to_contain_text("Line ")
        await expect(card.locator("pre")).to_have_text(wrong)
        assert await copied(visit, card.get_by_role("button", name="Copy").last) == wrong
        assert await layout_faults(visit.page) == []
        await card.get_by_role("button", name="Show as Markdown").click()
        await expect(reply.locator(".rendered strong")).to_have_text("bold")
        await reloaded(visit)
        await replies(visit.page).last.get_by_role("button", name="Ask again").click()
        await expect(replies(visit.page).last.locator(".rendered strong")).to_have_text("Now")
        await expect(card).to_have_count(0)
        assert visit.wrong() == []


@pytest.mark.requirement("console:chat:parts")
async def test_five_diagrams_stay_whole_and_apart_when_the_window_changes_and_the_page_is_left(
    browser: Browser, chat: Talking
) -> None:
    kinds = (FLOW, ORDER, 'pie\n "甲" : 3\n "乙" : 5', "graph LR\n a-->b-->c-->d-->e", "classDiagram\n 甲 <|-- 乙")
    text = "\n\n".join(f"```mermaid\n{kind}\n```" for kind in kinds)
    async with visiting(browser, chat.host) as visit:
        path = await chat.keep(text)
        reply = await opened(visit, path)

        async def check() -> None:
            await drawn(reply)
            pictures = await drawings(reply, 5)
            assert len(pictures) == 5
            assert are_whole(pictures), pictures

        await check()
        for width, height in (PHONE, DESKTOP):
            await visit.page.set_viewport_size({"width": width, "height": height})
            await check()
        await visit.page.get_by_role("link", name="Status").click()
        await visit.page.wait_for_url("**/status")
        await visit.page.go_back()
        await expect(reply.locator("figure.mermaid")).to_have_count(5)
        await check()
        assert visit.wrong() == []


@pytest.mark.requirement("console:chat:parts", "s:S-66")
async def test_a_diagram_can_be_read_as_source_opened_large_and_saved_as_a_drawing_that_does_nothing(
    browser: Browser, chat: Talking
) -> None:
    async with visiting(browser, chat.host) as visit:
        reply = await opened(visit, await chat.keep(f"```mermaid\n{FLOW}\n```"))

        async def tall() -> Any:
            return await reply.locator("figure.mermaid").evaluate("(figure) => figure.offsetHeight")

        height = await tall()
        await reply.get_by_role("tab", name="Source").click()
        await expect(reply.locator(".stage pre")).to_have_text(FLOW + "\n")
        assert await copied(visit, reply.get_by_role("button", name="Copy source")) == FLOW + "\n"
        await reply.get_by_role("tab", name="Diagram").click()
        await expect(reply.locator("svg[role=img]")).to_be_visible()
        assert await becomes(tall, lambda now: now == height) == height
        async with visit.page.expect_download() as saving:
            await reply.get_by_role("button", name="Download SVG").click()
        saved = (await (await saving.value).path()).read_text("utf-8")
        assert re.search("^<svg[^>]*viewBox", saved)
        assert "开始（全角）" in saved
        assert not re.search(
            "<script|<foreignObject|<style|<image| on[a-z]+=|javascript:|https?://(?!www.w3.org)", saved
        )
        await reply.get_by_role("button", name="Open full size").click()
        await expect(visit.page.get_by_role("dialog").locator("svg[role=img]")).to_be_visible()
        await visit.page.keyboard.press("Escape")
        await expect(visit.page.get_by_role("dialog")).to_have_count(0)
        assert visit.wrong() == []


@pytest.mark.requirement("console:no-errors", "console:chat:faults")
async def test_a_diagram_with_numbers_that_are_none_is_drawn_without_an_error_on_the_console(
    browser: Browser, chat: Talking
) -> None:
    empty = (
        "gantt\n title nothing",
        "xychart-beta\n bar [-1, -2]\n y-axis 5 --> 1",
        "journey\n title x\n section s\n a: 99: b",
    )
    async with visiting(browser, chat.host) as visit:
        reply = await opened(visit, await chat.keep("\n\n".join(f"```mermaid\n{one}\n```" for one in empty)))
        await expect(reply.locator("figure.mermaid").locator("svg[role=img], .failed")).to_have_count(3)
        assert visit.wrong() == []


@pytest.mark.requirement("s:S-63", "console:chat:faults")
async def test_a_diagram_that_takes_too_long_or_is_too_large_shows_its_source_and_the_next_is_drawn(
    browser: Browser, chat: Talking
) -> None:
    path = await chat.keep("\n\n".join(f"```mermaid\ngraph TD\n {one}\n```" for one in ("endless", "huge", "quick")))

    async def check(way: str) -> None:
        async with visiting(browser, chat.host, hurried=True) as visit:
            body = script("endless_frame.js").replace("WAY", way)
            await visit.page.route("**/console/draw/frame.js", lambda route: route.fulfill(body=body))
            await visit.page.goto(chat.host.url + path)
            reply = replies(visit.page).last
            first, second, third = (reply.locator("figure.mermaid").nth(number) for number in range(3))
            await expect(first.locator(".failed")).to_contain_text("longer than 3 seconds")
            await expect(first.locator(".failed pre")).to_contain_text("endless")
            await expect(second.locator(".failed")).to_contain_text("Too large")
            await expect(second.locator(".failed pre")).to_contain_text("huge")
            await expect(third.locator("svg[role=img]")).to_contain_text("quick")
            await expect(visit.page.locator("iframe")).to_have_count(1)
            assert visit.wrong() == []

    await asyncio.gather(check("silent"), check("busy"))


@pytest.mark.requirement("console:chat:parts", "console:settings")
async def test_diagrams_and_pictures_elsewhere_are_shown_as_this_browser_wants(browser: Browser, chat: Talking) -> None:
    path = await chat.keep("```mermaid\ngraph TD\n one --> two\n```\n\n![p](https://pictures.example/p.png)")
    async with visiting(browser, chat.host) as visit:
        await visit.go("/settings?tab=looks")
        await visit.page.get_by_label("Diagrams").select_option("Source only")
        await visit.page.get_by_label("Images from other servers").select_option("Never load")
        assert await layout_faults(visit.page) == []
        await visit.go(path)
        figure, card = visit.page.locator("figure.mermaid"), visit.page.locator(".card.remote")
        await expect(figure.locator("pre")).to_contain_text("one --> two")
        await expect(card.get_by_role("button", name="Open pictures.example in a new tab")).to_be_visible()
        await expect(card.get_by_role("button", name="Load once")).to_have_count(0)
        await expect(visit.page.locator("iframe")).to_have_count(0)
        await figure.get_by_role("tab", name="Diagram").click()
        await expect(figure.locator("svg[role=img]")).to_contain_text("two")
        assert visit.wrong() == []


@pytest.mark.requirement("console:chat:parts")
async def test_two_thousand_messages_and_one_of_a_megabyte_open_and_can_be_read_from_the_first(
    browser: Browser, chat: Talking
) -> None:
    messages: list[dict[str, Any]] = []
    for number in range(1000):
        text = "word " * 200_000 if number == 990 else f"Answer **{number}** with `code`.\n\n- one\n- two"
        messages += [user(f"question {number}"), assistant({"kind": "text", "text": text})]
    path = await keep(chat.host, messages)
    async with visiting(browser, chat.host) as visit:
        await visit.go(path)
        await expect(visit.page.locator("strong", has_text=re.compile("^999$"))).to_be_in_viewport()
        await visit.page.wait_for_function(FEW)
        log = visit.page.get_by_role("log")
        first = visit.page.get_by_text("question 0", exact=True)
        await log.evaluate("(view) => { view.scrollTop = 0; }")
        await expect(first).to_be_in_viewport()
        await expect(visit.page.locator("strong", has_text=re.compile("^0$"))).to_be_in_viewport()
        await visit.page.wait_for_function(FEW)
        assert visit.wrong() == []
