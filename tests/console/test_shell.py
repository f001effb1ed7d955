"""What holds on every page, in every size, theme and language."""

import itertools

import pytest
from playwright.async_api import Browser

from tests.console.hosting import Host
from tests.console.looks import access_faults, layout_faults
from tests.console.visit import DESKTOP, PHONE, TABLET, visiting

pytestmark = pytest.mark.asyncio(loop_scope="session")
PAGES = (
    "/chat",
    "/tools",
    "/tools/Edit",
    "/activity",
    "/tasks",
    "/schedule",
    "/approvals",
    "/settings",
    "/status",
    "/welcome",
)
LOOKS = {
    "desktop-light-en": (DESKTOP, "light", "en"),
    "phone-dark-zh": (PHONE, "dark", "zh"),
    "tablet-light-zh": (TABLET, "light", "zh"),
    "phone-light-pseudo": (PHONE, "light", "pseudo"),
}


@pytest.mark.requirement("console:no-errors", "console:layout", "console:accessible")
@pytest.mark.parametrize(("path", "look"), list(itertools.product(PAGES, LOOKS)), ids=str)
async def test_a_page_fits_can_be_used_by_everybody_and_has_no_fault(
    browser: Browser, filled: Host, path: str, look: str
) -> None:
    size, theme, lang = LOOKS[look]
    async with visiting(browser, filled, size=size, theme=theme, lang=lang) as visit:
        await visit.go(path)
        assert await layout_faults(visit.page, phone=size == PHONE) == []
        assert await access_faults(visit.page) == []
        assert visit.wrong() == []
