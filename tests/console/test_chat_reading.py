"""A conversation for every reader: on a small screen, from right to left, at a large zoom, on paper."""

import re
from typing import Any, cast

import pytest
from playwright.async_api import Browser, Locator, Page, expect

from tests.console.hosting import Host
from tests.console.looks import layout_faults
from tests.console.talking import Talking, assistant, called, drawn, keep, say, user
from tests.console.visit import PHONE, Visit, visiting
from toolyard.protocol.requests.scanner import format_request

pytestmark = pytest.mark.asyncio(loop_scope="session")
TINY = (320, 568)
ZOOMED = (320, 256)  # what 1280 by 1024 is at 400 %
GIVEN = "pattern: TODO, path: src/toolyard/gateway/providers, output_mode: content, head_limit: 50, glob: **/*.py"
MIXED = """مرحبا، هذا نص مع كلمة English في الوسط.

- عنصر أول

> اقتباس

| اسم | قيمة |
|---|---|
| واحد | two |

An English paragraph with שלום inside.

```python
print("سلام")
```
"""
WIDE = "x = " + " + ".join(f"'value number {n}'" for n in range(40))
RICH = f"```python\n{WIDE}\n```\n\n```mermaid\nflowchart LR\n  A[Begin] --> B[End]\n```\n"
# Every control that cannot be reached: brought into view, it is covered by something else or is not there.
COVERED = """() => {
  const faults = [], place = document.querySelector('dialog[open]') ?? document;
  for (const node of place.querySelectorAll('a[href], button, input, textarea, select')) {
    if (!node.checkVisibility({opacityProperty: true}) || node.disabled || node.closest('.skip, .hush')) continue;
    node.scrollIntoView({block: 'center', inline: 'center'});
    const box = node.getBoundingClientRect();
    if (box.width < 2 || box.height < 2) continue;
    const top = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
    if (!top || !(node.contains(top) || top.contains(node) || node.closest('label')?.contains(top)))
      faults.push(`${node.outerHTML.slice(0, 120)} under ${top?.outerHTML.slice(0, 80)}`);
  }
  return faults;
}"""
PRINT = """() => { window.print = () => { window.printed = {
  undrawn: document.querySelectorAll('.chat-plain, .chat-chapter:empty').length,
  messages: document.querySelectorAll('.chat-message').length,
  text: document.querySelector('.chat-inner').textContent,
}; }; }"""
ON_PAPER = """() => ({
  controls: [...document.querySelectorAll('button, nav, .top, textarea')]
    .filter((node) => node.checkVisibility() && !node.matches('.chat-call-open, [data-row]'))
    .map((node) => node.outerHTML.slice(0, 99)),
  wide: [...document.querySelectorAll('main *')].filter((node) => node.checkVisibility() &&
    !node.closest('.katex, svg, .hush') && node.getBoundingClientRect().right > innerWidth + 1).length,
  height: document.documentElement.scrollHeight,
  ink: getComputedStyle(document.querySelector('main')).color,
})"""


async def direction(place: Locator) -> str:
    return cast("str", await place.evaluate("(node) => getComputedStyle(node).direction"))


@pytest.mark.requirement("console:chat:rows")
async def test_a_tool_row_keeps_its_arguments_on_a_phone(browser: Browser, chat: Talking) -> None:
    place = await chat.keep(called("Grep", "12 found", summary=GIVEN), called("Read", "x", summary="path: a.md"))
    for size in (PHONE, TINY):
        chat.answers("Slow row.", format_request("Slow", {"command": "Go", "scene": "a long way to go"}), "Done.")
        async with visiting(browser, chat.host, size=size) as visit:
            await visit.go(place)
            rows = visit.page.locator(".chat-call-line")
            for row, text in ((rows.nth(0), GIVEN), (rows.nth(1), "path: a.md")):
                await expect(row.locator(".chat-summary")).to_be_in_viewport(ratio=1)
                await expect(row.locator(".chat-summary")).to_have_text(text)
                for part in (row.locator("strong"), row.locator(".chip"), row.locator(".chat-time")):
                    await expect(part).to_be_visible()
            assert await layout_faults(visit.page, phone=True) == []
            await rows.nth(1).locator(".chat-summary").click(force=True)  # the whole row opens
            await expect(visit.page.locator(".chat-call-body")).to_be_visible()
            await visit.go("/chat")
            reply = await say(visit, "Slow row.")
            await expect(reply.locator(".chat-summary")).to_contain_text("scene: a long way to go")
            await expect(reply.locator(".chat-call-line .chip")).to_have_text("running")
            assert await layout_faults(visit.page, phone=True) == []
            await reply.locator(".chat-call-line").get_by_role("button", name="Stop").click()
            await expect(reply.locator(".chat-call-line .chip")).to_have_text("cancelled")
            assert visit.wrong() == []


@pytest.mark.requirement("console:right-to-left")
async def test_text_from_right_to_left_stands_so_beside_text_that_is_not(browser: Browser, chat: Talking) -> None:
    place = await chat.keep(MIXED, title="محادثة بالعربية", asked="شغّل البحث\nplease")
    async with visiting(browser, chat.host) as visit:
        await visit.go(place)
        page, reply = visit.page, visit.page.locator(".chat-message.assistant")
        await drawn(reply)
        box = page.get_by_label("Message", exact=True)
        await box.fill("مرحبا")
        for part in (
            page.locator(".chat-head h1"),
            page.locator(".chat-list li.on a .cut"),
            page.locator(".chat-bubble"),
            reply.locator(".rendered p").first,
            *(reply.locator(f".rendered {name}").first for name in ("ul", "blockquote", "table")),
            box,
        ):
            assert await direction(part) == "rtl", part
        for part in (reply.locator(".rendered p", has_text="An English"), reply.locator("figure.code pre")):
            assert await direction(part) == "ltr", part
        await box.fill("hello")
        assert await direction(box) == "ltr"
        assert await layout_faults(page) == []
        assert visit.wrong() == []


async def look_zoomed(visit: Visit, place: str) -> None:
    await visit.go(place)
    assert await layout_faults(visit.page) == [], place
    assert await visit.page.evaluate(COVERED) == [], place


@pytest.mark.requirement("console:zoom")
async def test_at_a_large_zoom_nothing_scrolls_sideways_and_nothing_is_covered(browser: Browser, chat: Talking) -> None:
    place = await chat.keep(called("Grep", "12 found", summary=GIVEN), RICH)
    chat.answers("Zoom.", format_request("Write", {"path": "zoom/a.md", "content": "a\n" * 40}), "Done.")
    async with visiting(browser, chat.host, size=ZOOMED) as visit:
        for one in ("/chat", place, "/approvals", "/activity", "/settings"):
            await look_zoomed(visit, one)
        await visit.go("/chat")
        reply = await say(visit, "Zoom.")
        await expect(reply.locator(".apr-card .patch-lines")).to_be_visible()
        assert await layout_faults(visit.page) == []
        assert await visit.page.evaluate(COVERED) == []
        [waiting] = (await chat.host.api("GET", "/v1/approvals?state=pending"))["data"]
        await look_zoomed(visit, f"/approvals/{waiting['id']}")
        await visit.page.get_by_role("button", name="Deny", exact=True).click()
        await expect(visit.page.get_by_role("article")).to_contain_text("by owner")
        await look_zoomed(visit, f"/activity?call={waiting['call_id']}")
        assert visit.wrong() == []


async def put_on_paper(page: Page) -> dict[str, Any]:
    await page.emulate_media(media="print")
    await page.set_viewport_size({"width": 700, "height": 990})  # about what A4 has between its margins
    return cast("dict[str, Any]", await page.evaluate(ON_PAPER))


def count_pages(paper: bytes) -> int:
    return len(re.findall(rb"/Type\s*/Page\b", paper))


@pytest.mark.requirement("console:print")
async def test_a_conversation_prints_whole_in_light_colours_and_without_controls(
    browser: Browser, chat: Talking
) -> None:
    said = [user("Draw it."), assistant({"kind": "text", "text": RICH}, called("Grep", "12 found", summary=GIVEN))]
    for n in range(40):
        said += [user(f"Question {n}"), assistant({"kind": "text", "text": f"**Answer {n}** " + "word " * 80})]
    place = await keep(chat.host, said, title="On paper")
    async with visiting(browser, chat.host, theme="dark") as visit:
        await visit.go(place)
        await expect(visit.page.locator(".chat-message").first).to_be_attached()
        assert await visit.page.locator(".chat-message").count() < len(said)  # a screen draws what is near
        await visit.page.evaluate(PRINT)
        await visit.page.keyboard.press("Control+p")
        await visit.page.wait_for_function("() => window.printed")
        printed = await visit.page.evaluate("window.printed")
        assert (printed["undrawn"], printed["messages"]) == (0, len(said))
        assert all(f"Answer {n}" in printed["text"] for n in range(40))
        await visit.page.locator(".chat-scroll").evaluate("(view) => { view.scrollTop = 0 }")
        await drawn(visit.page.locator(".chat-message.assistant").first)
        assert count_pages(await visit.page.pdf(format="A4", print_background=True)) >= 4
        paper = await put_on_paper(visit.page)
        assert (paper["controls"], paper["wide"], paper["ink"]) == ([], 0, "rgb(28, 29, 31)")
        await expect(visit.page.locator(".stage svg").first).to_be_visible()
        await expect(visit.page.locator(".chat-summary").first).to_be_visible()
        assert await visit.page.locator("figure.code pre").first.evaluate("(pre) => pre.clientHeight") > 60, "it wraps"
        assert visit.wrong() == []


@pytest.mark.requirement("console:print")
async def test_approvals_and_the_panel_of_a_call_print_without_the_page_around_them(
    browser: Browser, filled: Host
) -> None:
    calls = (await filled.api("GET", "/v1/calls?tool=Edit"))["data"]
    async with visiting(browser, filled, theme="dark") as visit:
        await visit.go(f"/activity?call={calls[0]['id']}&part=patch")
        await expect(visit.page.get_by_role("dialog")).to_be_visible()
        paper = await put_on_paper(visit.page)
        assert (paper["controls"], paper["wide"]) == ([], 0)
        await expect(visit.page.get_by_role("dialog").get_by_role("heading").first).to_be_visible()
        await expect(visit.page.locator(".act-row").first).to_be_hidden()
        await visit.page.emulate_media(media="screen")
        await visit.go("/approvals?tab=history")
        paper = await put_on_paper(visit.page)
        assert (paper["controls"], paper["wide"]) == ([], 0)
        assert visit.wrong() == []
