"""The page under a host name that the server does not know, in a browser."""

import pytest
from playwright.async_api import Browser, expect

from tests.console.hosting import Host
from tests.console.looks import access_faults, layout_faults
from tests.console.proxying import ProxiedHost
from tests.console.visit import PHONE, visiting

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.requirement("proxy:explained")]


@pytest.mark.parametrize(("lang", "heading"), [("en", "does not know the host name"), ("zh", "不认识主机名")])
async def test_a_browser_shows_which_setting_lets_its_host_name_in(
    browser: Browser, filled: Host, lang: str, heading: str
) -> None:
    stranger = f"http://yard.localhost:{filled.port}"  # browsers find such names on their own machine
    host = ProxiedHost(filled.home, filled.project, filled.port, address=stranger)
    async with visiting(browser, host, lang=lang, size=PHONE, signed_in=False) as visit:
        visit.allowed += ["421"]
        await visit.page.goto(f"{stranger}/chat")
        await expect(visit.page.get_by_role("heading")).to_contain_text(heading)
        await expect(visit.page.locator("pre").first).to_have_text(f'public_url = "{stranger}"')
        width = await visit.page.locator("pre").first.evaluate("(one) => getComputedStyle(one).borderTopWidth")
        assert width == "1px"  # the policy of the page lets its own style in
        assert await layout_faults(visit.page, phone=True) == []
        assert await access_faults(visit.page) == []
        assert visit.wrong() == []
