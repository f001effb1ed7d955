"""A lost server: nothing goes blank, nothing is lost, nothing comes twice; and errors that say what they are."""

import asyncio
import re

import pytest
from playwright.async_api import Browser, Route, WebSocketRoute, expect

from tests.console.hosting import Host
from tests.console.visit import visiting

pytestmark = pytest.mark.asyncio(loop_scope="session")
LOST = ["ERR_CONNECTION_REFUSED", "WebSocket", "Failed to load resource"]


@pytest.mark.requirement("console:offline", "console:live")
async def test_a_killed_server_is_told_and_its_return_brings_every_call_once(browser: Browser, fresh: Host) -> None:
    async with visiting(browser, fresh) as visit:
        visit.allowed += LOST
        await fresh.call("LS", path=".")
        await visit.go("/activity")
        rows = visit.page.locator("main [data-row]")
        await expect(rows).to_have_count(1)
        await fresh.stop()
        banner = visit.page.locator(".banner")
        await expect(banner).to_contain_text("Reconnecting")
        await expect(rows).to_have_count(1)  # the last state stays
        await fresh.start()
        for name in ("a", "b", "c"):
            await fresh.call("Write", path=f"{name}.txt", content=name)
        await expect(banner).to_have_count(0)
        await expect(rows).to_have_count(4)
        await fresh.call("Read", path="a.txt")
        await expect(rows).to_have_count(5)
        assert visit.wrong() == []


@pytest.mark.requirement("console:live")
async def test_what_happens_before_the_page_is_connected_is_shown_as_well(browser: Browser, fresh: Host) -> None:
    async with visiting(browser, fresh) as visit:
        happened = asyncio.Event()

        async def late(socket: WebSocketRoute) -> None:
            await happened.wait()
            socket.connect_to_server()

        await visit.page.route_web_socket(re.compile("/ws"), late)
        await visit.go("/activity")
        await expect(visit.page.locator("main .empty")).to_be_visible()
        await fresh.call("LS", path=".")
        happened.set()
        await expect(visit.page.locator("main [data-row]")).to_have_count(1)
        assert visit.wrong() == []


PAGES = {
    "/activity": "/v1/calls",
    "/tasks": "/v1/tasks",
    "/schedule": "/v1/schedules",
    "/approvals": "/v1/approvals",
    "/tools": "/v1/tool-summaries",
    "/settings": "/v1/settings",
    "/status": "/v1/status",
}


@pytest.mark.requirement("console:offline", "console:lists")
async def test_an_error_of_the_server_is_shown_with_its_request_and_can_be_tried_again(
    browser: Browser, filled: Host
) -> None:
    async with visiting(browser, filled) as visit:
        visit.allowed += ["500", "Failed to load resource"]
        broken = True

        async def answer(route: Route) -> None:
            if not broken:
                await route.continue_()
                return
            error = '{"error": {"message": "The disk is on fire.", "type": "server_error", "code": "storage"}}'
            headers = {"X-Request-Id": "req_0123456789abcdef", "Content-Type": "application/json"}
            await route.fulfill(status=500, body=error, headers=headers)

        apis = "|".join(re.escape(filled.url + api) for api in PAGES.values())
        await visit.page.route(re.compile(rf"(?:{apis})(\?.*)?$"), answer)
        fault = visit.page.locator("main .fault")
        for path in PAGES:
            broken = True
            await visit.go(path)
            await expect(fault.first).to_contain_text("The disk is on fire.")
            await expect(fault.first).to_contain_text("storage")
            await expect(fault.first).to_contain_text("req_0123456789abcdef")
            broken = False
            while count := await fault.count():  # each list of a page has its own
                await fault.first.get_by_role("button", name="Try again").click()
                await expect(fault).not_to_have_count(count)
        assert visit.wrong() == []


@pytest.mark.requirement("console:lists")
async def test_a_slow_list_shows_that_it_loads_and_then_its_rows(browser: Browser, filled: Host) -> None:
    async with visiting(browser, filled) as visit:
        waiting: list[Route] = []
        released = False

        async def hold(route: Route) -> None:
            if released:
                await route.continue_()
            else:
                waiting.append(route)

        await visit.page.route(re.compile(r"/v1/calls\?"), hold)
        await visit.page.goto(f"{filled.url}/activity")
        await expect(visit.page.locator("main .skeleton").first).to_be_visible()
        released = True
        for route in waiting:
            await route.continue_()
        await expect(visit.page.locator("main [data-row]").first).to_be_visible()
        assert visit.wrong() == []
