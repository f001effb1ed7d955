"""A page is light on the wire, and the next one is there before somebody goes to it."""

import pytest
from playwright.async_api import Browser, CDPSession, expect

from tests.console.hosting import Host
from tests.console.test_build import FIRST_LOAD_KB
from tests.console.visit import PHONE, visiting
from toolyard.web.security.scope import CONSOLE_PAGES

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
        async with page.expect_response("**/assets/tasks-*.js"):
            await page.get_by_role("link", name="Tasks").hover()
        async with page.expect_response("**/assets/welcome-*.js"):
            await page.evaluate("window.requestIdleCallback = (run) => setTimeout(run); idle.forEach((run) => run())")
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        for name in ("Schedule", "Settings", "Approvals"):
            await page.get_by_role("navigation").get_by_role("link", name=name).first.click()
            await expect(page.get_by_role("heading", level=1, name=name)).to_be_visible()
        assert [url for url in asked if url.endswith(".js")] == []
        assert visit.wrong() == []
