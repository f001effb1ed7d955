"""A page is light on the wire, the next one is there before somebody goes to it, and a long catalogue stays light."""

import asyncio

import pytest
from playwright.async_api import Browser, CDPSession, Route, expect

from tests.console.hosting import Host
from tests.console.talking import Talking
from tests.console.test_build import FIRST_LOAD_KB
from tests.console.visit import DESKTOP, PHONE, visiting
from toolyard.server_paths import CONSOLE_PAGES

pytestmark = pytest.mark.asyncio(loop_scope="session")
PAGES = (*CONSOLE_PAGES, "/tools/Edit")
# Nothing is idle: only what the page itself needs is loaded.
NEVER_IDLE = "window.requestIdleCallback = () => 0"


class _Wire:
    """The scripts that a page loads, with their bytes on the wire."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self.scripts: dict[str, int] = {}

    async def watch(self, session: CDPSession) -> None:
        session.on("Network.responseReceived", self._note_response)
        session.on("Network.loadingFinished", self._note_end)
        await session.send("Network.enable")
        await session.send("Network.setCacheDisabled", {"cacheDisabled": True})

    def _note_response(self, event: dict[str, object]) -> None:
        response = event["response"]
        assert isinstance(response, dict)
        if "javascript" in str(response["mimeType"]):
            self._names[str(event["requestId"])] = str(response["url"]).rsplit("/", 1)[1]

    def _note_end(self, event: dict[str, object]) -> None:
        name = self._names.get(str(event["requestId"]))
        if name is not None:
            self.scripts[name] = int(str(event["encodedDataLength"]).split(".", maxsplit=1)[0])


@pytest.mark.requirement("craft:first-load")
@pytest.mark.parametrize("lang", ["en", "zh"])
async def test_every_page_has_a_hundred_kilobytes_of_script_on_the_wire_at_most(
    browser: Browser, filled: Host, lang: str
) -> None:
    async with visiting(browser, filled, lang=lang, size=PHONE) as visit:
        await visit.context.add_init_script(NEVER_IDLE)
        wire = _Wire()
        await wire.watch(await visit.context.new_cdp_session(visit.page))
        heavy: dict[str, float] = {}
        for path in PAGES:
            wire.scripts.clear()
            await visit.go(path)
            assert len(wire.scripts) > 2
            kilobytes = sum(wire.scripts.values()) / 1000
            if kilobytes > FIRST_LOAD_KB:
                heavy[path] = kilobytes
        assert heavy == {}
        assert visit.wrong() == []


@pytest.mark.requirement("craft:first-load")
async def test_pages_are_loaded_ahead_when_a_link_is_pointed_at_and_when_the_browser_is_idle(
    browser: Browser, filled: Host
) -> None:
    async with visiting(browser, filled) as visit:
        page = visit.page
        await visit.context.add_init_script("window.idle = []; window.requestIdleCallback = (run) => idle.push(run)")
        await visit.go("/status")
        async with page.expect_response("**/assets/*/tasks.js"):
            await page.get_by_role("link", name="Tasks").hover()
        await page.wait_for_function("() => idle.length > 0")
        async with page.expect_response("**/assets/*/welcome.js"):
            await page.evaluate("window.requestIdleCallback = (run) => setTimeout(run); idle.forEach((run) => run())")
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        for name in ("Schedule", "Settings", "Approvals"):
            await page.get_by_role("navigation").get_by_role("link", name=name).first.click()
            await expect(page.get_by_role("heading", level=1, name=name)).to_be_visible()
        assert [url for url in asked if url.endswith(".js")] == []
        assert visit.wrong() == []


@pytest.mark.requirement("craft:no-waiting")
async def test_a_page_asks_for_the_session_once_and_while_its_scripts_are_on_their_way(
    browser: Browser, filled: Host
) -> None:
    async with visiting(browser, filled) as visit:
        page, arrived = visit.page, asyncio.Event()
        asked: list[str] = []

        async def hold(route: Route) -> None:
            await arrived.wait()
            await route.continue_()

        await page.route("**/assets/*/index.js", hold)
        page.on("request", lambda request: asked.append(request.url))
        async with page.expect_response("**/v1/session"):
            await page.goto(f"{filled.url}/status", wait_until="commit")
        assert await page.locator("main").count() == 0
        arrived.set()
        await visit.settle()
        assert [url for url in asked if url.endswith("/v1/session")] == [f"{filled.url}/v1/session"]
        assert visit.wrong() == []


@pytest.mark.requirement("craft:no-waiting")
async def test_a_session_that_ended_before_the_scripts_came_leads_to_the_login(browser: Browser, filled: Host) -> None:
    async with visiting(browser, filled) as visit:
        visit.allowed += ["401"]

        async def refuse(route: Route) -> None:
            await visit.context.clear_cookies()
            await route.fulfill(status=401, json={"error": {}})

        await visit.page.route("**/v1/session", refuse)
        await visit.page.goto(f"{filled.url}/status?tab=x", wait_until="commit")
        await visit.page.wait_for_url(f"{filled.url}/login?next=%2Fstatus%3Ftab%3Dx&lang=en")
        assert visit.wrong() == []


@pytest.mark.requirement("craft:no-waiting")
async def test_what_draws_texts_comes_with_the_first_text_and_without_it_the_text_is_plain(
    browser: Browser, chat: Talking
) -> None:
    async with visiting(browser, chat.host) as visit:
        page = visit.page
        await visit.context.add_init_script(NEVER_IDLE)
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url.rsplit("/", 1)[1]))
        await visit.go("/chat")
        await expect(page.get_by_role("textbox", name="Message")).to_be_focused()
        assert [name for name in asked if name in ("chat-drawn-text.js", "rendered.js")] == []
        place = await chat.keep("some **bold** words")
        await visit.go(place)
        await expect(page.locator(".rendered strong")).to_have_text("bold")
        await page.route("**/assets/*/chat-drawn-text.js", lambda route: route.abort())
        visit.allowed += ["ERR_FAILED", "Failed to load"]
        await visit.go(place)
        await expect(page.locator(".chat-plain")).to_contain_text("some **bold** words")
        await expect(page.locator(".chat-plain p")).to_be_visible()
        assert visit.wrong() == []


@pytest.mark.requirement("craft:many-tools")
@pytest.mark.parametrize("size", [DESKTOP, PHONE])
async def test_a_thousand_tools_are_scrolled_and_searched_with_only_those_near_the_view_in_the_page(
    browser: Browser, filled: Host, size: tuple[int, int]
) -> None:
    async def answer(route: Route) -> None:
        given = await (await route.fetch()).json()
        sample = next(tool for tool in given["data"] if tool["name"] == "Read")
        for at in range(1000):
            more = {"kind": "mcp", "server": f"server {at % 9}"} if at % 2 else {}
            given["data"].append({**sample, "name": f"Many{at:04}", "display_name": f"Many {at:04}", **more})
        await route.fulfill(json=given)

    async with visiting(browser, filled, size=size) as visit:
        page = visit.page
        await page.route("**/v1/tool-summaries", answer)
        await visit.go("/tools")
        cards = page.locator(".tools-card")
        await expect(cards.first).to_be_visible()
        assert await cards.count() < 150
        await page.locator("main").evaluate("(main) => { main.scrollTop = 9e9; scrollTo(0, 9e9); }")
        await expect(page.get_by_role("link", name="Many 0998")).to_be_in_viewport()
        assert await cards.count() < 150
        await page.get_by_role("searchbox").fill("Many 0500")
        await expect(page.get_by_role("link", name="Many 0500")).to_be_in_viewport()
        await expect(cards).to_have_count(1)
        assert visit.wrong() == []
