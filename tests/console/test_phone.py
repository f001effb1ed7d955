"""The console in one hand: nothing covers what is pressed, notches and keyboards leave room, copying works without
HTTPS, and a code signs a phone in."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, Route, expect

from tests.console.hosting import Host, hosting
from tests.console.looks import access_faults, layout_faults
from tests.console.proxying import ProxiedHost
from tests.console.seeding import Desk, modelled
from tests.console.test_install import LAN, WITH_LAN
from tests.console.visit import DESKTOP, PHONE, visiting
from tests.web.test_tls import WITH_ZBAR

pytestmark = pytest.mark.asyncio(loop_scope="session")
COVERED = """([cover, ...covered]) => {
  const box = document.querySelector(cover).getBoundingClientRect();
  return covered.flatMap((selector) => [...document.querySelectorAll(selector)]).map((one) => {
    const other = one.getBoundingClientRect();
    const isBeside = other.right <= box.left || other.left >= box.right;
    const apart = isBeside || other.bottom <= box.top || other.top >= box.bottom;
    return apart ? '' : one.outerHTML.slice(0, 80);
  }).filter(Boolean);
}"""
# Everything in sight that can be pressed and is not wholly between the notch and the bar of the system.
IN_THE_WAY = """([top, bottom]) => [...document.querySelectorAll('a, button, input, select')].filter((one) => {
  const box = one.getBoundingClientRect();
  if (!box.width || one.closest('main, .skip') || (document.querySelector('dialog[open]') && !one.closest('dialog')))
    return false;
  return box.top < top || box.bottom > innerHeight - bottom;
}).map((one) => one.outerHTML.slice(0, 80))"""
# The words of these elements that stand on several lines.
BROKEN_LINES = """(selector) => [...document.querySelectorAll(selector)].filter((one) => {
  const range = document.createRange();
  range.selectNodeContents(one);
  return new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size > 1;
}).map((one) => one.textContent)"""
PULLS = "['html', 'body', 'main'].map((one) => getComputedStyle(document.querySelector(one)).overscrollBehaviorY)"
NOTCH, HOME_BAR = 47, 34
UNTRUSTED = "Cross-Origin-Opener-Policy header has been ignored"  # so is that of every page by HTTP from elsewhere


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def desk(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Desk]:
    """A server that other machines reach by plain HTTP."""
    async with modelled() as model:
        settings = {"OPENAI_BASE_URL": model.provider.url, "OPENAI_API_KEY": "sk-any"}
        options = ("--host", "0.0.0.0", "--allow-remote")
        async with hosting(tmp_path_factory.mktemp("reached"), *options, settings=settings) as host:
            yield Desk(host, model)


def seen_from_elsewhere(host: Host) -> Host:
    return ProxiedHost(host.home, host.project, host.port, address=f"http://{LAN[0]}:{host.port}")


async def read_clipboard(page: Page) -> str:
    """What a person would paste: a page without HTTPS cannot read it in another way."""
    await page.evaluate(
        "() => { const box = document.createElement('textarea'); box.id = 'pasted';"
        " ([...document.querySelectorAll('dialog[open]')].at(-1) ?? document.body).append(box); box.focus(); }"
    )
    await page.keyboard.press("Control+V")
    text = await page.locator("#pasted").input_value()
    await page.evaluate("() => document.querySelector('#pasted').remove()")
    return text


@pytest.mark.requirement("phone:toasts")
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
async def test_a_toast_covers_neither_send_nor_the_bar_nor_the_answers_to_an_approval(
    browser: Browser, desk: Desk, size: tuple[int, int]
) -> None:
    words = "The disk is full, so that nothing can be stored: free some space, and then try it once more."

    async def refuse(route: Route) -> None:
        await route.fulfill(status=500, json={"error": {"message": words, "code": "storage"}})

    await desk.ask(f"toast{size[0]}", "Write", path="a.txt", content="a")
    async with visiting(browser, desk.host, size=size) as visit:
        visit.allowed += ["500", "Failed to load resource"]
        await visit.page.route("**/logout", refuse)
        for path, pressed in (("/chat", ".chat-send"), ("/approvals", ".apr-actions button")):
            await visit.go(path)
            await expect(visit.page.locator(pressed).first).to_be_visible()
            if size == PHONE:  # a slip of the thumb does not sign out
                await visit.page.locator("nav.bottom").get_by_role("button", name="More").click()
            await visit.page.get_by_role("button", name="Sign out").click()
            toast = visit.page.locator(".toasts .toast")
            await expect(toast).to_contain_text(words)
            assert await visit.page.evaluate(COVERED, [".toasts", pressed, "nav.bottom > *"]) == []
            await toast.get_by_role("button", name="Dismiss").click()
            await expect(toast).to_have_count(0)
        assert visit.wrong() == []
    await desk.clear()


@WITH_LAN
@pytest.mark.requirement("phone:copy")
async def test_copying_works_without_https_also_in_a_dialog_and_a_refusal_is_told(browser: Browser, desk: Desk) -> None:
    async with visiting(browser, seen_from_elsewhere(desk.host), size=PHONE) as visit:
        visit.allowed += [UNTRUSTED]
        await visit.go("/settings?tab=about")
        assert not await visit.page.evaluate("isSecureContext")
        first = visit.page.locator("main dd button").first
        await first.click()
        await expect(first).to_have_attribute("aria-label", "Copied")
        await expect(first).to_be_focused()
        assert await read_clipboard(visit.page) == str(desk.host.home)
        await visit.go("/settings?tab=keys")
        await visit.page.get_by_role("button", name="Sign in on a phone").click()
        link = visit.page.locator("dialog .handle")
        await link.get_by_role("button").click()
        assert await read_clipboard(visit.page) == await link.locator("code").inner_text()
        await visit.page.evaluate("() => { document.execCommand = () => false; }")
        await link.get_by_role("button").click()
        toast = visit.page.locator("dialog .toast")
        await expect(toast).to_contain_text("copy it by hand")
        await toast.get_by_role("button", name="Dismiss").click()  # nothing outside the dialog could be pressed
        await expect(toast).to_have_count(0)
        assert visit.wrong() == []


@WITH_LAN
@WITH_ZBAR
@pytest.mark.requirement("phone:sign-in")
async def test_a_phone_that_scans_the_code_is_signed_in_once_with_what_was_chosen(
    browser: Browser, desk: Desk, tmp_path: Path
) -> None:
    outside = seen_from_elsewhere(desk.host)
    made = await desk.host.api("POST", "/v1/keys", {"name": "Phone", "scopes": ["approve"]})
    async with (
        visiting(browser, desk.host, theme="dark") as visit,
        visiting(browser, outside, size=PHONE, signed_in=False) as phone,
    ):
        await visit.go("/settings?tab=keys")
        await visit.page.get_by_role("button", name="Sign in on a phone").click()
        dialog = visit.page.get_by_role("dialog")
        code, address = dialog.get_by_role("img", name="QR code"), dialog.locator(".handle code")
        for choice, scopes in (("", ["admin", "approve", "chat", "tools"]), (made["id"], ["approve"])):
            before = await address.inner_text()
            if choice:
                await dialog.get_by_label("Permissions on the phone").select_option(choice)
                await expect(address).not_to_have_text(before)
            await code.screenshot(path=tmp_path / "code.png")
            link = await scan(tmp_path / "code.png")
            assert link == await address.inner_text()
            assert link.startswith(f"{outside.url}/login?link=")
            await phone.page.goto(link)
            await phone.page.get_by_role("button", name="Sign in").click()
            await phone.settle()
            session = await phone.page.evaluate("fetch('/v1/session').then((one) => one.json())")
            assert session["scopes"] == scopes
            await phone.context.clear_cookies()
            await phone.page.goto(link)
            await phone.page.get_by_role("button", name="Sign in").click()
            await expect(phone.page.get_by_role("alert")).to_contain_text("has been used or has expired")
        assert await access_faults(visit.page) == []
        assert visit.wrong() == []
    await desk.host.api("DELETE", f"/v1/keys/{made['id']}")


async def scan(picture: Path) -> str:
    words = ("--quiet", "--raw", "-Sdisable", "-Sqrcode.enable", str(picture))
    process = await asyncio.create_subprocess_exec("zbarimg", *words, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    return out.decode().strip()


@pytest.mark.requirement("phone:sign-in")
async def test_a_server_that_no_phone_reaches_says_how_it_would_be_reached(browser: Browser, filled: Host) -> None:
    async with visiting(browser, filled, size=(320, 640), lang="zh") as visit:
        await visit.go("/settings?tab=keys")
        await visit.page.get_by_role("button", name="在手机上登录").click()
        dialog = visit.page.get_by_role("dialog")
        await expect(dialog).to_contain_text("其他设备无法访问此服务器")
        await expect(dialog).to_contain_text("--host 0.0.0.0 --allow-remote")
        await expect(dialog).to_contain_text(f"{filled.url}/login?link=")
        assert await layout_faults(visit.page, phone=True) == []
        assert visit.wrong() == []


@pytest.mark.requirement("phone:safe-areas")
async def test_notch_home_bar_and_keyboard_leave_everything_in_reach_and_a_pull_belongs_to_the_browser(
    browser: Browser, filled: Host
) -> None:
    async with visiting(browser, filled, size=PHONE) as visit:
        page = visit.page
        session = await visit.context.new_cdp_session(page)
        insets = {"top": NOTCH, "topMax": NOTCH, "bottom": HOME_BAR, "bottomMax": HOME_BAR}
        await session.send("Emulation.setSafeAreaInsetsOverride", {"insets": insets})
        await visit.go("/chat")
        assert await page.evaluate(IN_THE_WAY, [NOTCH, HOME_BAR]) == []
        assert await page.evaluate(PULLS) == ["auto", "auto", "auto"]
        await page.get_by_role("button", name="More").click()
        await expect(page.get_by_role("dialog")).to_be_visible()
        assert await page.evaluate(IN_THE_WAY, [NOTCH, HOME_BAR]) == []
        assert (await page.evaluate(PULLS))[0] == "none"
        await page.keyboard.press("Escape")
        await visit.go("/activity")
        await page.locator("main [data-row]").first.click()
        await expect(page.locator("dialog.side")).to_be_visible()
        assert await page.evaluate(IN_THE_WAY, [NOTCH, HOME_BAR]) == []
        await page.keyboard.press("Escape")
        await visit.go("/chat")
        # Safari's keyboard lies over the page and makes the part in sight smaller; Chromium's makes the page smaller.
        await page.evaluate(
            "() => { Object.defineProperty(visualViewport, 'height', {value: 500, configurable: true});"
            " visualViewport.dispatchEvent(new Event('resize')); }"
        )
        box = await page.locator(".chat-compose").bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= 500
        await page.evaluate(
            "() => { delete visualViewport.height; visualViewport.dispatchEvent(new Event('resize')); }"
        )
        box = await page.locator("nav.bottom").bounding_box()
        assert box is not None
        assert box["y"] + box["height"] == PHONE[1]
        assert "interactive-widget=resizes-content" in (
            await page.locator("meta[name=viewport]").get_attribute("content") or ""
        )
        assert visit.wrong() == []


@pytest.mark.requirement("console:layout")
async def test_on_the_smallest_phone_no_word_is_broken_and_the_bar_stays_as_high_as_it_is(
    browser: Browser, desk: Desk
) -> None:
    provider = {"near": {"url": desk.model.provider.url, "key": "sk-any"}}
    await desk.host.api("PATCH", "/v1/settings", {"values": {"upstreams": provider}})
    async with visiting(browser, desk.host, size=(320, 640)) as visit:
        bar, heights = visit.page.locator("nav.bottom"), set[float]()
        for path in ("/chat", "/activity", "/approvals", "/tools", "/settings", "/status", "/audit", "/providers"):
            await visit.go(path)
            box = await bar.bounding_box()
            assert box is not None
            heights.add(box["height"])
            assert await visit.page.evaluate(BROKEN_LINES, "nav.bottom span") == [], path
            if path in ("/settings", "/status", "/audit"):  # one word, and links that go below it
                assert await visit.page.evaluate(BROKEN_LINES, "h1") == [], path
        await expect(visit.page.get_by_role("switch", name="In use")).to_have_count(2)
        assert await visit.page.evaluate(BROKEN_LINES, ".switch > span") == []
        assert len(heights) == 1
        assert await layout_faults(visit.page, phone=True) == []
        assert visit.wrong() == []
    await desk.host.api("PATCH", "/v1/settings", {"values": {"upstreams": None}})
