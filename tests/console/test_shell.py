"""What holds on every page, in every size, theme and language."""

import os
import re

import pytest
from playwright.async_api import Browser, Page, expect

from tests.console.hosting import Host
from tests.console.looks import access_faults, layout_faults, own_texts
from tests.console.visit import DESKTOP, PHONE, TABLET, visiting
from toolyard.server_paths import CONSOLE_PAGES

pytestmark = pytest.mark.asyncio(loop_scope="session")
PAGES = (*CONSOLE_PAGES, "/tools/Edit")
SIZES = {"desktop": DESKTOP, "tablet": TABLET, "phone": PHONE}
ALL = [f"{size}-{theme}-{lang}" for size in SIZES for theme in ("light", "dark") for lang in ("en", "zh", "pseudo")]
SAMPLE = ["desktop-light-en", "phone-dark-zh", "phone-light-pseudo"]
LOOKS = ALL if os.environ.get("HYPOTHESIS_PROFILE") == "soak" else SAMPLE

CHINESE = re.compile(r"[\u4e00-\u9fff]")
SIZE = re.compile(r"[·\s]*[\d.,]+ (B|KiB|MiB|GiB)")
# Names of the console's own language switch, and of things that have one name everywhere.
SAME = frozenset(("中文", "English", "切换到中文", "Switch to English", "Toolyard", "owner", "tour"))


@pytest.mark.requirement("console:no-errors", "console:layout", "console:accessible", "console:languages")
@pytest.mark.parametrize("look", LOOKS)
async def test_every_page_fits_speaks_one_language_can_be_used_by_everybody_and_has_no_fault(
    browser: Browser, filled: Host, look: str
) -> None:
    size, theme, lang = look.split("-")
    async with visiting(browser, filled, size=SIZES[size], theme=theme, lang=lang) as visit:
        for path in PAGES:
            await visit.go(path)
            faults = [
                *await layout_faults(visit.page, phone=size == "phone"),
                *await access_faults(visit.page),
                *await foreign_words(visit.page, lang),
                *visit.wrong(),
            ]
            assert (path, faults) == (path, [])


async def foreign_words(page: Page, lang: str) -> list[str]:
    """Words of the console's own that are not of its language.

    The stretched language marks each text of a dictionary: what has letters and no mark would be the same on a Chinese
    page, so it is there that Chinese pages are looked at.
    """
    texts = [text for text in await own_texts(page) if text not in SAME]
    if lang == "en":
        return [text for text in texts if CHINESE.search(text)]
    if lang == "pseudo":
        plain = [text for text in texts if re.search(r"[A-Za-z]{3,}", text) and "xx" not in text]
        return [text for text in plain if not SIZE.fullmatch(text)]
    return []


@pytest.mark.requirement("console:root")
async def test_an_address_that_there_is_not_says_so_and_leads_home(browser: Browser, filled: Host) -> None:
    async with visiting(browser, filled, size=PHONE) as visit:
        visit.allowed += ["response 404", "status of 404"]
        await visit.go("/actvity?state=error")
        await expect(visit.page.get_by_role("heading", name="Page not found")).to_be_visible()
        await visit.page.get_by_role("button", name="Go to chat").click()
        await visit.page.wait_for_url("**/chat")
        assert visit.wrong() == []


@pytest.mark.requirement("console:languages", "console:settings")
async def test_every_setting_is_explained_in_chinese(browser: Browser, filled: Host) -> None:
    async with visiting(browser, filled, lang="zh") as visit:
        await visit.go("/settings")
        settings = (await filled.api("GET", "/v1/settings"))["settings"]
        names = [one["name"] for one in settings if one["group"] != "upstream"]  # which have a page of their own
        await expect(visit.page.locator(".settings-one")).to_have_count(len(names))
        told = await visit.page.locator(".settings-one").all_inner_texts()
        assert [text for text in told if not CHINESE.search(re.sub("立即生效|重启后生效", "", text))] == []
        assert visit.wrong() == []
