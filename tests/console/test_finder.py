"""Finding: the finder on every page, the search of Activity, and the way to what went wrong yesterday."""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime, timedelta
from urllib.parse import parse_qs, urlparse
from zoneinfo import ZoneInfo

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Route, expect

from tests.console.flows import Steps
from tests.console.hosting import ZONE, Host
from tests.console.looks import access_faults, layout_faults
from tests.console.seeding import call, seed, untranslated
from tests.console.visit import DESKTOP, PHONE, Visit, visiting

pytestmark = pytest.mark.asyncio(loop_scope="session")
BOTH = pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def known(filled: Host) -> AsyncIterator[Host]:
    """The server with data, a conversation, and a call that failed just after the last midnight but one."""
    conversation = {
        "title": "Watering the orchids", "model": "tour", "version": 0, "settings": {},
        "messages": [{"role": "user", "text": "How often?"}],
    }  # fmt: skip
    await filled.api("PUT", "/v1/conversations/orchids", conversation)
    midnight = datetime.now(ZoneInfo(ZONE)).replace(hour=0, minute=0, second=0) - timedelta(days=1)
    began = midnight.timestamp() + 1
    failed = (replace(one, created=began, updated=began) for one in call(777, {}, tool="Gardener", error="no water"))
    await seed(filled.home, failed)
    yield filled


async def open_finder(visit: Visit, text: str) -> None:
    await visit.page.get_by_role("button", name=re.compile("^(Find|搜索)$")).click()
    await visit.page.get_by_role("dialog").get_by_role("combobox").fill(text)


@pytest.mark.requirement("finder:ranked", "finder:touch")
async def test_the_finder_ranks_names_and_finds_every_kind_by_keyboard(browser: Browser, known: Host) -> None:
    async with visiting(browser, known) as visit:
        page = visit.page
        await visit.go("/status")
        field, options = page.get_by_role("dialog").get_by_role("combobox"), page.locator(".finder-option")
        await page.keyboard.press("Control+k")
        await expect(field).to_be_focused()
        await expect(page.get_by_role("group", name="Actions")).to_contain_text("New schedule")
        for typed, first, kind in (
            ("read", "Read", "Tools"),  # though others contain it
            ("科学计算器", "Scientific calculator", "Tools"),  # in the other language
            ("端口", "Port", "Settings"),
            ("not found", "NOT_FOUND", "Error codes"),
            ("new sch", "New schedule", "Actions"),
            ("audit", "Audit trail", "Pages"),
            ("doctor", "Settings: Doctor", "Pages"),
            ("openai", "Model providers", "Pages"),
            ("provid", "Model providers", "Pages"),
        ):
            await field.fill(typed)
            await expect(options.first.locator(".finder-title")).to_have_text(first)
            await expect(page.get_by_role("group", name=kind)).to_be_visible()
        await field.fill("orchids")
        await expect(page.get_by_role("group", name="Conversations")).to_contain_text("Watering the orchids")
        for typed, kind, text in (
            ("missing.txt", "Calls", "NOT_FOUND"),
            ("missing.txt", "Calls", "Read · missing.txt"),
            ("not_found", "Calls", "Read"),
            ("Timelapse", "Tasks", "Timelapse"),
            ("1+1", "Schedules", "SciCalculator"),
            (f"call_{777:032x}", "Calls", "Gardener"),
        ):
            await field.fill(typed)
            await expect(page.get_by_role("group", name=kind)).to_contain_text(text)
        await field.fill("code:NOT_FOUND tool:Read")
        await expect(options.first).to_contain_text("Show calls: code:NOT_FOUND tool:Read")
        assert await access_faults(page) == []
        await field.fill("public url")
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/settings?setting=public_url")
        await expect(page.locator("[data-linked] input")).to_be_focused()
        await page.keyboard.press("Control+k")
        await expect(page.get_by_role("group", name="Recent")).to_contain_text("Public URL")
        await field.fill("read")
        await expect(page.locator(".finder-foot")).not_to_contain_text("Searching")
        await page.keyboard.press("ArrowDown")
        await expect(options.nth(1)).to_have_attribute("aria-selected", "true")
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("dialog")).to_have_count(0)
        assert visit.wrong() == []


@pytest.mark.requirement("finder:touch")
async def test_on_a_phone_the_finder_fills_the_screen_and_is_used_by_touch(browser: Browser, known: Host) -> None:
    async with visiting(browser, known, size=PHONE, lang="zh", theme="dark") as visit:
        await visit.go("/tools")
        await open_finder(visit, "")
        box = await visit.page.locator(".finder-box .sheet").bounding_box()
        assert box is not None
        assert (box["x"], box["y"], box["width"], box["height"]) == (0, 0, *PHONE)
        assert await layout_faults(visit.page) == []
        assert await access_faults(visit.page) == []
        option = visit.page.get_by_role("option", name="新建定时任务")
        size = await option.bounding_box()
        assert size is not None
        assert size["height"] >= 44
        await option.tap()
        await visit.page.wait_for_url("**/schedule?form=new")
        await expect(visit.page.get_by_role("dialog")).to_be_visible()
        await visit.go("/chat")
        await open_finder(visit, "安装")
        await visit.page.get_by_role("option", name="安装插件").tap()
        await expect(visit.page.get_by_role("dialog")).to_contain_text("zip")
        await visit.go("/chat")
        await open_finder(visit, "密钥")
        await visit.page.get_by_role("option", name="新建 API 密钥").tap()
        await expect(visit.page.get_by_role("dialog")).to_be_visible()
        await visit.go("/chat?lang=pseudo")
        await visit.page.locator("button.finder").click()
        await expect(visit.page.locator(".finder-option").first).to_be_visible()
        assert await untranslated(visit.page) == []
        assert visit.wrong() == []


# Letter by letter, with no time between them however slow the machine is.
TYPE_AT_ONCE = """(field, text) => {
  for (let end = 1; end <= text.length; end++) {
    field.value = text.slice(0, end);
    field.dispatchEvent(new Event('input', { bubbles: true }));
  }
}"""


@pytest.mark.requirement("finder:bounded")
async def test_local_results_do_not_wait_for_the_server_which_is_asked_once_for_a_pause(
    browser: Browser, known: Host
) -> None:
    async with visiting(browser, known) as visit:
        visit.allowed.append("Failed to load resource")
        asked: list[str] = []
        held = asyncio.Event()

        async def hold(route: Route) -> None:
            query = parse_qs(urlparse(route.request.url).query)
            asked.extend(query.get("search", [""]))
            assert int(query["limit"][0]) <= 10
            await held.wait()
            await route.continue_()

        await visit.go("/status")
        await open_finder(visit, "")
        await visit.page.route(re.compile(r"/v1/conversations\?"), hold)
        await visit.page.get_by_role("dialog").get_by_role("combobox").evaluate(TYPE_AT_ONCE, "scicalc")
        await expect(visit.page.get_by_role("option").first).to_contain_text("SciCalculator")
        await expect(visit.page.locator(".finder-foot")).to_contain_text("Searching")
        async with asyncio.timeout(60):
            while "scicalc" not in asked:
                await visit.page.evaluate("1")
        assert [one for one in asked if one] == ["scicalc"]  # not one for each letter
        async with visit.page.expect_event("requestfailed", lambda request: "scicalc" in request.url):
            await visit.page.keyboard.type("ulator")  # what was asked before counts no more
        held.set()
        await expect(visit.page.locator(".finder-foot")).not_to_contain_text("Searching")
        assert visit.wrong() == []


@BOTH
@pytest.mark.requirement("activity:search")
async def test_the_search_of_activity_understands_keys_and_suggests_them(
    browser: Browser, known: Host, size: tuple[int, int]
) -> None:
    async with visiting(browser, known, size=size) as visit:
        page = visit.page
        await visit.go("/activity")
        field, options = (
            page.get_by_role("combobox", name="Search calls"),
            page.locator(".act-suggestions [role=option]"),
        )
        rows = page.locator("main [data-row]")
        await field.click()
        await expect(options).to_have_count(6)
        await options.filter(has_text="code:").click()
        await page.keyboard.type("not_f")
        await expect(options.first).to_contain_text("does not exist")
        assert await layout_faults(page) == []
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/activity?code=NOT_FOUND")
        await page.keyboard.type("tool:Read missing")
        await page.wait_for_url("**/activity?code=NOT_FOUND&tool=Read&q=missing")
        await expect(rows).to_have_count(1)
        await expect(rows.first).to_contain_text("NOT_FOUND")
        await page.reload()
        await visit.settle()
        await expect(field).to_have_value("code:NOT_FOUND tool:Read missing")
        await expect(rows).to_have_count(1)
        await field.fill("colour:red code:NOPE")
        await page.keyboard.press("Enter")
        await expect(page.locator(".act-hint")).to_contain_text("There is no filter “colour:”")
        await expect(page.locator(".act-hint")).to_contain_text("“NOPE” is not an error code")
        await expect(page.locator("main .empty")).to_be_visible()
        await field.fill("code:EXECUTION_ERROR caller:owner since:yesterday before:today")
        await expect(rows.filter(has_text="Gardener")).to_have_count(1)
        await rows.filter(has_text="Gardener").click()
        await page.get_by_role("dialog").get_by_role("link", name="EXECUTION_ERROR").click()
        await page.wait_for_url("**/activity?code=EXECUTION_ERROR")
        await expect(field).to_have_value("code:EXECUTION_ERROR")
        assert await access_faults(page) == []
        assert visit.wrong() == []


@BOTH
@pytest.mark.requirement("flow:yesterday")
async def test_what_went_wrong_yesterday_is_found_in_four_steps(
    browser: Browser, known: Host, size: tuple[int, int]
) -> None:
    async with visiting(browser, known, size=size) as visit:
        await visit.go("/chat")
        page, steps = visit.page, Steps(visit.page, at_most=4)
        await steps.press(page.get_by_role("button", name="Find"))
        await steps.fill(page.get_by_role("dialog").get_by_role("combobox"), "wrong yest")
        await steps.press(page.get_by_role("option", name="What went wrong yesterday"))
        await steps.press(page.locator("main [data-row]").filter(has_text="Gardener"))
        await expect(page.get_by_role("dialog")).to_contain_text("no water")
        await expect(page.get_by_role("dialog").get_by_role("link", name="EXECUTION_ERROR")).to_be_visible()
        steps.check()
        assert visit.wrong() == []
