"""A reply while it is written: nothing jumps, it can be stopped, it survives a reload, and a second window follows."""

import asyncio
import json
import re
import time

import pytest
from playwright.async_api import Browser, Page, Route, expect

from tests.console.hosting import START_S
from tests.console.talking import Held, Talking, becomes, drawn, ended, kept_state, reloaded, replies, say, slowly
from tests.console.visit import visiting
from tests.gateway.upstream import Script
from toolyard.protocol.requests.scanner import format_request

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.requirement("console:chat:stream")]
WORDS = "\n\n".join(f"Paragraph {number}: the quick brown fox 跳过 the lazy dog." for number in range(40))
CONTENT = "\n\n".join(
    (
        "# Title\n\nSome words **in bold** and a list:\n\n- one\n- two",
        "```mermaid\ngraph LR\n A[开始] --> B[做] --> C[完]\n```",
        "| a | b |\n|---|---|\n| 1 | 2 |",
        "```python\nfor x in range(3):\n    print(x)\n```",
        "$$\nx^2 + y^2 = z^2\n$$",
        "The last words.",
    )
)
AT_THE_END = """() => {
  const view = document.querySelector('.chat-scroll');
  return view.scrollHeight - view.scrollTop - view.clientHeight < 60;
}"""
SHIFTS = """() => {
  window.shifts = [];
  new PerformanceObserver((list) => {
    for (const one of list.getEntries()) window.shifts.push(one.value);
  }).observe({ type: 'layout-shift', buffered: false });
  window.boxes = new Set(); window.flashes = [];
  new MutationObserver(() => {
    for (const box of document.querySelectorAll('.rendered .pending[data-kind=mermaid], .rendered figure.mermaid'))
      window.boxes.add(box.matches('figure') ? 'figure' : Math.round(box.getBoundingClientRect().height));
    for (const code of document.querySelectorAll('.rendered figure.code'))
      if (!/^(python|sh)$/.test(code.querySelector('.language')?.textContent)) window.flashes.push(code.outerHTML);
    if (document.querySelector('.rendered .warning, .chat-json')) window.flashes.push('a warning');
  }).observe(document.body, { subtree: true, childList: true, characterData: true });
}"""


def reply_of(form: str) -> str:
    if form == "markdown":
        return CONTENT
    chart = {"type": "bar", "data": {"labels": ["甲"], "datasets": [{"label": "n", "data": [3]}]}}
    attachments = {
        "sales": {"type": "chart", "content": chart},
        "flow": {"type": "mermaid", "content": "graph TD\n A-->B-->C"},
        "run": {"type": "code", "language": "sh", "content": "ls -la\npwd"},
    }
    content = "Words first.\n\n{{chart:sales}}\n\n{{mermaid:flow}}\n\n{{code:run}}\n\nThe last words."
    return json.dumps({"think": "I plan it.", "content": content, "attachments": attachments}, ensure_ascii=False)


@pytest.mark.parametrize("form", ["markdown", "structured"])
async def test_a_reply_in_small_pieces_shifts_nothing_and_shows_nothing_that_is_not_so(
    browser: Browser, chat: Talking, form: str
) -> None:
    chat.answers(f"Write {form}.", slowly(reply_of(form), size=3, pause_s=0.008))
    async with visiting(browser, chat.host) as visit:
        await visit.go("/chat")
        await visit.page.evaluate(SHIFTS)
        reply = await say(visit, f"Write {form}.")
        await expect(reply).to_contain_text("The last words.")
        await ended(reply)
        await expect(reply.locator("figure.mermaid svg[role=img]")).to_be_visible()
        assert sum(await visit.page.evaluate("window.shifts")) <= 0.1
        assert await visit.page.evaluate("window.flashes") == []
        boxes = await visit.page.evaluate("[...window.boxes]")
        assert "figure" in boxes
        assert len(boxes) <= 2, f"the box of the diagram changed its height: {boxes}"
        assert visit.wrong() == []


async def at_the_end(page: Page) -> None:
    await page.wait_for_function(AT_THE_END)


async def test_the_view_stays_at_the_end_only_while_it_is_there_and_stop_ends_the_reply(
    browser: Browser, chat: Talking
) -> None:
    first, _, then = WORDS.partition("Paragraph 21")
    pieces = Held(first, "Paragraph 21" + then, size=30, ends=False)
    chat.answers("Write much.", Script(pieces, pause_s=0.01, then="hang"))
    chat.provider.gone.clear()
    async with visiting(browser, chat.host) as visit:
        await visit.go("/chat")
        reply = await say(visit, "Write much.")
        await expect(reply).to_contain_text("Paragraph 20")
        await at_the_end(visit.page)
        top = await visit.page.get_by_role("log").evaluate(
            "(view) => { view.scrollTop -= 500; return view.scrollTop; }"
        )
        pieces.go_on()
        await expect(reply).to_contain_text("Paragraph 39")
        assert await visit.page.get_by_role("log").evaluate("(view) => view.scrollTop") == top
        await visit.page.get_by_role("button", name="Jump to latest").click()
        await at_the_end(visit.page)
        await visit.page.get_by_role("button", name="Stop").click()
        await expect(reply.locator(".chat-facts")).to_contain_text("Stopped")
        async with asyncio.timeout(START_S):
            await chat.provider.gone.wait()
        await expect(reply).to_contain_text("Paragraph 39")
        await expect(visit.page.get_by_role("button", name="Send")).to_be_visible()
        await reloaded(visit)
        await expect(replies(visit.page).last.locator(".chat-facts")).to_contain_text("Stopped")
        assert visit.wrong() == []


async def test_stop_counts_also_when_the_server_has_not_heard_of_the_reply_yet(browser: Browser, chat: Talking) -> None:
    chat.answers("Never end.", slowly("Words without end.", then="hang"))
    refused = asyncio.Event()

    async def late(route: Route) -> None:
        await refused.wait()
        await route.continue_()

    async with visiting(browser, chat.host) as visit:
        visit.allowed += ["404"]
        await visit.page.route("**/v1/chat/completions", late)
        await visit.go("/chat")
        reply = await say(visit, "Never end.")
        async with visit.page.expect_response("**/v1/interrupt") as answer:
            await visit.page.get_by_role("button", name="Stop").click()
        assert (await answer.value).status == 404
        refused.set()
        await expect(reply.locator(".chat-facts")).to_contain_text("Stopped")
        assert visit.wrong() == []


async def test_a_reload_while_it_is_written_and_a_second_window_end_with_the_same_text(
    browser: Browser, chat: Talking
) -> None:
    pieces = Held(f"{WORDS}\n\n", WORDS, size=16)
    chat.answers("Tell a story.", Script(pieces, pause_s=0.01))
    async with visiting(browser, chat.host) as visit:
        visit.allowed += ["409"]  # both windows keep the end of the reply: one is told that the other was faster
        await visit.go("/chat")
        reply = await say(visit, "Tell a story.")
        await expect(reply).to_contain_text("Paragraph 3:")
        second = await visit.context.new_page()
        visit.watch(second)
        await second.goto(visit.page.url)
        await expect(replies(second).last).to_contain_text("Paragraph 5:")
        await visit.page.reload()
        await expect(replies(visit.page).last).to_contain_text("Paragraph 6:")
        await expect(visit.page.get_by_role("button", name="Stop")).to_be_visible()
        pieces.go_on()
        seen = []
        for page in (visit.page, second):
            await ended(replies(page).last)
            await expect(replies(page)).to_have_count(1)
            seen.append(await replies(page).last.locator(".rendered").inner_text())
        assert seen[0] == seen[1]
        assert re.findall(r"Paragraph (\d+)", seen[0]) == [str(number) for number in range(40)] * 2
        chat.answers("And then?", "**The** end.")
        await say(visit, "And then?")
        await expect(replies(second).last).to_contain_text("The end.")
        await expect(replies(second)).to_have_count(2)
        kept = (await chat.host.api("GET", f"/v1/conversations/{visit.page.url.rsplit('/', 1)[1]}"))["messages"]
        assert [one["role"] for one in kept] == ["user", "assistant"] * 2
        assert visit.wrong() == []


async def test_a_window_that_has_lost_a_reply_does_not_take_it_from_the_one_that_reads_it(
    browser: Browser, chat: Talking
) -> None:
    pieces = Held("The first words. ", "**And** the last.", size=4)
    chat.answers("Say two things.", Script(pieces, pause_s=0.01))
    async with visiting(browser, chat.host) as visit:
        visit.allowed += ["404", "409"]
        await visit.go("/chat")
        reply = await say(visit, "Say two things.")
        await expect(reply).to_contain_text("The first")
        second = await visit.context.new_page()
        await second.clock.install(time=time.time() + 60)  # to this window it began long ago
        await second.route("**/v1/chats/*/stream*", lambda route: route.fulfill(status=404, json={}))
        await second.goto(visit.page.url)
        await expect(replies(second).last.get_by_role("alert")).to_be_visible()
        assert await becomes(lambda: kept_state(visit), lambda state: state != "running") == "failed"
        pieces.go_on()
        assert await becomes(lambda: kept_state(visit), lambda state: state != "failed") == "done"
        for page in (visit.page, second):
            await expect(replies(page).last).to_contain_text("And the last.")
            await expect(replies(page).last.get_by_role("alert")).to_have_count(0)
        assert visit.wrong() == []


async def test_what_is_said_while_the_change_of_another_window_is_on_its_way_stays(
    browser: Browser, chat: Talking
) -> None:
    chat.answers("And now?", "**Now** as well.")
    path = await chat.keep("Yes.")
    place = f"/v1/conversations/{path.rsplit('/', 1)[1]}"
    read, said = asyncio.Event(), asyncio.Event()

    async def late(route: Route) -> None:
        """The first answer is what was there when it was asked for, and comes after what is said here."""
        if route.request.method != "GET" or read.is_set():
            await route.continue_()
            return
        read.set()
        answer = await route.fetch()
        await said.wait()
        await route.fulfill(response=answer)

    async with visiting(browser, chat.host) as visit:
        visit.allowed += ["409"]
        await visit.go(path)
        await visit.page.route(f"**{place}", late)
        stored = await chat.host.api("GET", place)
        kept = ("model", "settings", "messages", "version")
        await chat.host.api("PUT", place, {"title": "Another title"} | {key: stored[key] for key in kept})
        async with asyncio.timeout(START_S):
            await read.wait()
        reply = await say(visit, "And now?")
        async with visit.page.expect_response(lambda one: one.url.endswith(place) and one.request.method == "GET"):
            said.set()
        await ended(reply)
        await expect(replies(visit.page).last).to_contain_text("Now as well.")
        await expect(replies(visit.page)).to_have_count(2)
        assert visit.wrong() == []


@pytest.mark.requirement("console:chat:faults")
async def test_a_provider_that_refuses_is_quoted_and_the_words_are_not_lost(browser: Browser, chat: Talking) -> None:
    body = b'{"error": {"message": "You have <b>no</b> credit left.", "type": "billing", "code": "no_credit"}}'
    chat.answers("Be refused.", Script([body], status=402, kind="application/json"), "Paid, **thanks**.")
    async with visiting(browser, chat.host) as visit:
        visit.allowed += ["402"]
        await visit.go("/chat")
        reply = await say(visit, "Be refused.")
        await expect(reply.get_by_role("alert")).to_contain_text("You have <b>no</b> credit left.")
        await reloaded(visit)
        await expect(visit.page.get_by_role("article", name="You")).to_contain_text("Be refused.")
        await replies(visit.page).last.get_by_role("alert").get_by_role("button", name="Retry").click()
        await expect(replies(visit.page).last).to_contain_text("Paid, thanks.")
        await expect(replies(visit.page)).to_have_count(1)
        assert visit.wrong() == []


@pytest.mark.requirement("console:chat:faults")
async def test_a_reply_that_the_provider_cut_off_says_so_and_can_be_asked_for_again(
    browser: Browser, chat: Talking
) -> None:
    pieces = Held("These words came, ", "then nothing", size=4, ends=False)
    chat.answers("Break off.", Script(pieces, pause_s=0.01, then="cut"), "Now **all** of it.")
    async with visiting(browser, chat.host) as visit:
        await visit.go("/chat")
        reply = await say(visit, "Break off.")
        await expect(reply.locator(".rendered")).to_contain_text("These words")
        pieces.go_on()  # what was not read before the cut is lost
        line = reply.get_by_role("alert")
        await expect(line).to_contain_text("The provider closed the connection; the text above is incomplete.")
        await expect(line).to_contain_text("upstream_cut_off")
        await expect(reply.locator(".rendered")).to_contain_text("These words")
        await line.get_by_role("button", name="Retry").click()
        await expect(replies(visit.page)).to_have_count(1)
        await expect(replies(visit.page).last).to_contain_text("Now all of it.")
        await drawn(replies(visit.page).last)
        await expect(visit.page.get_by_role("alert").filter(has_text="closed the connection")).to_have_count(0)
        assert visit.wrong() == []


async def test_a_reply_that_goes_on_after_an_approval_is_followed(browser: Browser, chat: Talking) -> None:
    arguments = {"path": "follow.txt", "content": "a line\n" * 30}
    first = f"{WORDS}\n\n{format_request('Write', arguments)}"
    chat.answers("Write and go on.", first, slowly(WORDS, size=60))
    async with visiting(browser, chat.host) as visit:
        await visit.go("/chat")
        reply = await say(visit, "Write and go on.")
        allow = reply.get_by_role("button", name="Allow once")
        await expect(allow).to_be_enabled()
        await at_the_end(visit.page)
        await allow.click()
        await ended(reply)
        await expect(reply.get_by_text("Paragraph 39")).to_have_count(2)
        await at_the_end(visit.page)
        await visit.page.get_by_role("log").evaluate("(view) => { view.scrollTop -= 140; }")
        await expect(visit.page.get_by_role("button", name="Jump to latest")).to_be_visible()
        assert visit.wrong() == []
