"""The console without a mouse."""

from contextlib import suppress

import pytest
from playwright.async_api import Browser, expect
from playwright.async_api import TimeoutError as TooLate

from tests.console.hosting import Host
from tests.console.visit import PHONE, visiting

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.requirement("console:shell", "console:accessible")
async def test_keys_lead_to_pages_search_lists_and_help(browser: Browser, filled: Host) -> None:
    async with visiting(browser, filled) as visit:
        await visit.go("/status")
        for _ in range(20):  # the second key counts only soon after the first, and the machine may be busy
            await visit.page.keyboard.type("ga")
            with suppress(TooLate):
                await visit.page.wait_for_url("**/activity", timeout=3000)
                break
        await expect(visit.page.locator("main [data-row]").nth(1)).to_be_visible()
        await visit.page.keyboard.press("j")
        await expect(visit.page.locator("main [data-row]").first).to_be_focused()
        await visit.page.keyboard.press("j")
        await expect(visit.page.locator("main [data-row]").nth(1)).to_be_focused()
        await visit.page.keyboard.press("Enter")
        await expect(visit.page.get_by_role("dialog")).to_be_visible()
        await visit.page.keyboard.press("Escape")
        await expect(visit.page.get_by_role("dialog")).to_have_count(0)
        await expect(visit.page.locator("main [data-row]").nth(1)).to_be_focused()  # the focus comes back
        await visit.page.keyboard.press("/")
        await expect(visit.page.locator("[data-search]").first).to_be_focused()
        await visit.page.keyboard.type("?g")  # typing into a field is typing
        await expect(visit.page.get_by_role("dialog")).to_have_count(0)
        await visit.page.locator("main").focus()
        await visit.page.keyboard.press("?")
        await expect(visit.page.get_by_role("dialog")).to_contain_text("Ctrl K")
        assert visit.wrong() == []


@pytest.mark.requirement("console:shell")
async def test_the_finder_finds_pages_and_tools_by_a_few_letters(browser: Browser, filled: Host) -> None:
    async with visiting(browser, filled) as visit:
        await visit.go("/status")
        sought = visit.page.get_by_role("dialog").get_by_role("combobox")
        await visit.page.keyboard.press("Control+k")
        await expect(sought).to_be_focused()
        await visit.page.keyboard.type("scic")
        await expect(visit.page.get_by_role("option").first).to_contain_text("SciCalculator")
        await visit.page.keyboard.press("Enter")
        await visit.page.wait_for_url("**/tools/SciCalculator")
        await expect(sought).to_have_count(0)
        await visit.page.keyboard.press("Control+k")
        await expect(sought).to_be_focused()
        await visit.page.keyboard.type("zzzz")
        await expect(visit.page.get_by_role("dialog")).to_contain_text("No matches")
        await visit.page.keyboard.press("Escape")
        await expect(visit.page.get_by_role("dialog")).to_have_count(0)
        assert visit.wrong() == []


RINGED = """() => {
  const at = document.activeElement;
  if (!at || at === document.body) return null;
  const ring = (node) => {
    const style = node && getComputedStyle(node);
    return style && style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0;
  };
  const around = at.closest('form'); // what one writes in may be ringed as a whole
  const rung = ring(at) || ring(at.nextElementSibling) || getComputedStyle(at).boxShadow !== 'none'
    || (at.matches('textarea') && ring(around));
  return [at.outerHTML.slice(0, 120), Boolean(rung)];
}"""


@pytest.mark.requirement("console:accessible")
async def test_tab_reaches_every_control_once_and_shows_where_it_is(browser: Browser, filled: Host) -> None:
    async with visiting(browser, filled) as visit:
        for path in ("/chat", "/activity", "/approvals", "/settings"):
            await visit.go(path)
            await visit.page.evaluate("document.body.focus()")
            seen: set[str] = set()
            for _ in range(24):
                await visit.page.keyboard.press("Tab")
                told = await visit.page.evaluate(RINGED)
                if told is not None:
                    assert told[1], f"no focus ring on {told[0]}"
                    seen.add(told[0])
            assert (path, len(seen) >= 12) == (path, True)


@pytest.mark.requirement("console:shell")
async def test_on_a_phone_the_pages_are_in_a_bar_at_the_bottom(browser: Browser, filled: Host) -> None:
    async with visiting(browser, filled, size=PHONE, lang="zh") as visit:
        await visit.go("/chat")
        bar = visit.page.locator("nav.bottom")
        await expect(bar.locator("> .entry")).to_have_text(["对话", "活动", "审批", "工具", "更多"])
        await bar.get_by_role("link", name="活动").click()
        await visit.page.wait_for_url("**/activity")
        await bar.get_by_role("button", name="更多").click()
        await visit.page.get_by_role("dialog").get_by_role("link", name="定时任务").click()
        await visit.page.wait_for_url("**/schedule")
        await expect(visit.page.get_by_role("dialog")).to_have_count(0)
        assert visit.wrong() == []
