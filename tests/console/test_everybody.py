"""The console for people who hear it, who use only keys, and who choose the colours themselves."""

import asyncio
import os

import pytest
from playwright.async_api import Browser, Locator, Page, Route, expect

from tests.console.hosting import Host
from tests.console.looks import access_faults
from tests.console.talking import Talking, ended, say
from tests.console.visit import DESKTOP, PHONE, visiting
from toolyard.protocol.requests.scanner import format_request

pytestmark = pytest.mark.asyncio(loop_scope="session")
SOAK = os.environ.get("HYPOTHESIS_PROFILE") == "soak"
OPEN = (
    *("/chat?open=options", "/chat?open=list", "/tools/Edit?tab=description", "/tools/SciCalculator?tab=manifest"),
    *("/tools/SciCalculator?tab=config", "/tools/SciCalculator?tab=logs", "/tools/SciCalculator?tab=docs"),
    *("/schedule?form=new", "/approvals?tab=history", "/approvals?tab=rules", "/settings?tab=keys"),
    *("/settings?tab=mcp", "/settings?tab=raw", "/settings?tab=doctor", "/settings?tab=backup"),
    *("/settings?tab=looks", "/settings?tab=about"),
)
TITLES = {
    "en": {
        "/chat": "Chat · Toolyard",
        "/tools": "Tools · Toolyard",
        "/tools/Read": "Read · Tools · Toolyard",
        "/settings?tab=keys": "Keys · Settings · Toolyard",
        "/approvals?tab=rules": "Rules · Approvals · Toolyard",
        "/schedule?form=new": "New schedule · Schedules · Toolyard",
    },
    "zh": {
        "/status": "状态 · Toolyard",
        "/tools/SciCalculator": "科学计算器 SciCalculator · 工具 · Toolyard",
        "/settings?tab=keys": "密钥 · 设置 · Toolyard",
    },
}
# Until two frames are drawn: then a browser has taken the focus from whatever cannot have it.
FRAMES = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
LOOK = """() => [...document.querySelectorAll('.rail [aria-current], [role=tab][aria-selected=true]')]
  .filter((one) => one.checkVisibility())
  .map((one) => getComputedStyle(one).outlineStyle)"""


async def panels(host: Host) -> list[str]:
    """Addresses with a panel open: a call, a task and a schedule."""
    calls = (await host.api("GET", "/v1/calls"))["data"]
    edit = next(call["id"] for call in calls if call["tool"] == "Edit")
    task = (await host.api("GET", "/v1/tasks"))["data"][0]["id"]
    schedule = (await host.api("GET", "/v1/schedules"))["data"][0]["id"]
    parts = ("patch", "input", "timeline")
    return [
        *(f"/activity?call={edit}&part={part}" for part in parts),
        f"/tasks?task={task}",
        f"/schedule?schedule={schedule}",
    ]


@pytest.mark.requirement("craft:no-findings")
@pytest.mark.parametrize(("look", "size"), [("light-en", DESKTOP), ("dark-zh", PHONE)])
async def test_panels_dialogs_and_tabs_have_no_finding_of_axe(
    browser: Browser, filled: Host, look: str, size: tuple[int, int]
) -> None:
    theme, lang = look.split("-")
    async with visiting(browser, filled, size=size, theme=theme, lang=lang) as visit:
        paths = [*OPEN, *await panels(filled)]
        # The soak looks at all of them in both sizes; else each half is looked at in one.
        for path in paths if SOAK else paths[size == PHONE :: 2]:
            await visit.go(path)
            assert (path, await access_faults(visit.page)) == (path, [])
        await visit.page.keyboard.press("Control+k")
        await expect(visit.page.get_by_role("combobox").last).to_be_focused()
        assert await access_faults(visit.page) == []
        assert visit.wrong() == []


@pytest.mark.requirement("craft:announced")
async def test_a_finished_reply_and_a_waiting_approval_are_announced_once(browser: Browser, chat: Talking) -> None:
    chat.answers("Say it aloud.", "It was **said**.")
    chat.answers("Write aloud.", format_request("Write", {"path": "aloud.txt", "content": "x"}), "It is **done**.")
    async with visiting(browser, chat.host) as visit:
        page = visit.page
        await visit.go("/chat")
        said = page.locator("[role=status]").filter(has_text="Reply finished")
        await expect(said).to_have_count(0)
        await ended(await say(visit, "Say it aloud."))
        await expect(said).to_have_count(1)
        assert await page.locator(".chat-scroll").get_attribute("aria-live") == "off"  # not each word
        reply = await say(visit, "Write aloud.")
        await expect(page.locator(".hush[role=alert]")).to_contain_text("Write needs your approval")
        await reply.get_by_role("button", name="Deny", exact=True).click()
        await expect(page.locator(".hush[role=alert]")).to_have_text("")
        await ended(reply)
        assert visit.wrong() == []


@pytest.mark.requirement("craft:focus")
async def test_the_focus_goes_to_new_pages_comes_back_from_dialogs_and_outlives_what_is_deleted(
    browser: Browser, fresh: Host
) -> None:
    for name in ("first", "second", "third"):
        await fresh.api("POST", "/v1/keys", {"name": name, "scopes": ["chat"]})
    async with visiting(browser, fresh) as visit:
        page, press = visit.page, visit.page.keyboard.press
        await visit.go("/status")
        await press("Tab")
        await expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
        await expect(page.get_by_role("link", name="Skip to content")).to_be_in_viewport()
        await press("Enter")
        await expect(page.locator("main")).to_be_focused()
        await press("Tab")
        assert await page.evaluate("document.querySelector('main').contains(document.activeElement)")

        await page.get_by_role("navigation").get_by_role("link", name="Schedules").first.focus()
        await press("Enter")
        await expect(page.get_by_role("heading", level=1, name="Schedules")).to_be_focused()
        await press("Tab")
        await expect(page.get_by_role("button", name="New schedule").first).to_be_focused()
        await press("Enter")
        await expect(page.get_by_role("dialog")).to_be_visible()
        await press("Escape")
        await expect(page.get_by_role("dialog")).to_have_count(0)
        await expect(page.get_by_role("button", name="New schedule").first).to_be_focused()

        await visit.go("/settings?tab=keys")
        rows = page.locator(".settings-keys > li")
        for left in (2, 1):
            await rows.first.get_by_role("button", name="Revoke").focus()
            await press("Enter")
            await page.get_by_role("dialog").get_by_role("button", name="Revoke").focus()
            await press("Enter")
            await expect(rows).to_have_count(left)
            await expect_focus_in(rows.first)
        assert visit.wrong() == []


async def expect_focus_in(place: Locator) -> None:
    async with asyncio.timeout(60):
        while not await place.evaluate("(node) => node.contains(document.activeElement)"):
            await place.page.evaluate("new Promise(requestAnimationFrame)")


@pytest.mark.requirement("craft:forced-colours")
@pytest.mark.parametrize("size", [DESKTOP, PHONE])
async def test_forced_colours_show_by_lines_and_words_what_is_chosen_and_how_things_are(
    browser: Browser, filled: Host, size: tuple[int, int]
) -> None:
    async with visiting(browser, filled, size=size) as visit:
        page = visit.page
        await page.emulate_media(forced_colors="active")
        for path in ("/approvals", "/settings?tab=keys"):
            await visit.go(path)
            outlines: list[str] = await page.evaluate(LOOK)
            assert outlines
            assert set(outlines) == {"solid"}
        await visit.go("/activity")
        chips = page.locator(".chip")
        await expect(chips.first).to_be_visible()
        assert [text for text in await chips.all_inner_texts() if not text.strip()] == []
        assert await border(page, ".chip") == "solid"
        assert await border(page, ".button") == "solid"
        assert visit.wrong() == []


async def border(page: Page, selector: str) -> str:
    style = await page.locator(selector).first.evaluate("(node) => getComputedStyle(node).borderTopStyle")
    return str(style)


@pytest.mark.requirement("craft:titles")
@pytest.mark.parametrize("lang", ["en", "zh"])
async def test_the_title_of_the_window_tells_what_is_open_and_where(browser: Browser, filled: Host, lang: str) -> None:
    async with visiting(browser, filled, lang=lang) as visit:
        for path, title in TITLES[lang].items():
            await visit.go(path)
            await expect(visit.page).to_have_title(title)
        assert visit.wrong() == []


@pytest.mark.requirement("craft:focus")
async def test_a_dialog_with_fields_has_the_focus_on_the_first(browser: Browser, chat: Talking) -> None:
    address = await chat.keep("Kept.", title="An old name")
    async with visiting(browser, chat.host) as visit:
        page, dialog = visit.page, visit.page.get_by_role("dialog")
        await visit.go(address)
        await page.get_by_role("button", name="Conversation actions").click()
        await page.get_by_role("menuitem", name="Rename").click()
        await expect(dialog.get_by_label("Name")).to_be_focused()
        await page.keyboard.type("A new name")  # over the old one
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", level=1, name="A new name")).to_be_visible()
        for path, opens, field in (
            ("/settings?tab=keys", "New key", "Name"),
            ("/providers", "Add provider", "Base URL"),
            ("/approvals?tab=rules", "Add rule", None),
            ("/tools", "Install", None),
            ("/schedule", "New schedule", None),
        ):
            await visit.go(path)
            await page.get_by_role("button", name=opens).first.click()
            await expect(dialog).to_be_visible()
            focused = (
                dialog.get_by_label(field).first if field else dialog.locator(":is(input, select, textarea):focus")
            )
            await expect(focused).to_be_focused()
            await page.keyboard.press("Escape")
        assert visit.wrong() == []


@pytest.mark.requirement("craft:focus")
async def test_a_button_keeps_the_focus_while_it_works_and_works_once_at_a_time(browser: Browser, filled: Host) -> None:
    async with visiting(browser, filled) as visit:
        visit.allowed.append("409")
        asked, answer = asyncio.Queue[str](), asyncio.Event()

        async def hold(route: Route) -> None:
            asked.put_nowait(route.request.url)
            await answer.wait()
            await route.fulfill(status=409, json={"error": {"code": "conflict", "message": "It is running."}})

        await visit.page.route("**/v1/schedules/*/run", hold)
        await visit.go("/schedule")
        button = visit.page.get_by_role("button", name="Run now").first
        await button.focus()
        for _ in range(2):
            await visit.page.keyboard.press("Enter")
            await expect(button).to_have_attribute("aria-busy", "true")
        await visit.page.evaluate(FRAMES)
        await expect(button).to_be_focused()
        answer.set()
        await expect(button).to_be_enabled()
        await expect(button).to_be_focused()
        assert asked.qsize() == 1
        assert visit.wrong() == []
